// One divergence: what it is, what made it, the fields that differ, both sides.
import { h, type ComponentChildren } from 'preact';
import type { Change, Divergence } from '../model';
import { list } from '../data/docs';
import * as format from '../data/format';
import { DiffView, Words } from '../parts/diffview';
import { Facts, Link, Section } from '../parts/small';
import { Block, Line, Name } from '../parts/text';

export function DivergenceView({ run, replay, of: d, level = 2 }: { run: string; replay: string; of: Divergence; level?: 2 | 3 }) {
	const ours = d.category !== 'missing_in_recorded', again = d.replay_seq ?? (ours ? null : d.seq); // whose the seq is
	const Heading = `h${level}` as const, fields = list(d.changes);
	return <article class="record">
		<header>
			<Heading>{d.category.replace(/_/g, ' ')}</Heading>
			<p><Name text={d.message} most={1000} /></p>
			<Facts of={[
				['recorded', ours && d.seq != null ? <Link to={{ run, tab: 'record', what: String(d.seq) }}>record {d.seq}</Link> : ''],
				['replayed', again == null ? '' : replay ? <Link to={{ run: replay, tab: 'record', what: String(again) }}>record {again}</Link> : <span>record {again} <span class="dim">of a replay that was not kept: <code>tapedeck replay -o DIR</code> keeps its records</span></span>],
				['nearest', d.nearest != null ? <Link to={{ run, tab: 'record', what: String(d.nearest) }}>record {d.nearest}</Link> : ''],
				['lane', d.lane ? <Line text={d.lane} most={120} /> : ''], ['why', d.follows ? <Name text={d.follows} /> : ''], ['exchange', d.exchange ? <Line text={d.exchange} most={160} /> : ''],
			]} />
		</header>
		{d.hint && <blockquote class="note"><Name text={d.hint} most={2000} /></blockquote>}
		{fields.length > 0 ? <Section title="Fields that differ" note={format.count(fields.length + (d.more_changes ?? 0))}>
			{fields.map((c) => <ChangeView of={c} />)}
			{!!d.more_changes && <p class="dim">{format.count(d.more_changes)} more</p>}
		</Section> : d.cause ? <Section title="Cause"><Block text={d.cause} label="Cause" /></Section> : null}
		{!fields.length && <Sides was={d.recorded} is={d.replay} />}
		{list(d.annotations).map((n) => <blockquote class="note">{n.side} {n.seq}: <Name text={n.text} /></blockquote>)}
	</article>;
}

/** ChangeView is one field: where it is, what stood there, what stands there now. */
function ChangeView({ of: c }: { of: Change }) {
	const long = (c.was ?? '').includes('\n') || (c.now ?? '').includes('\n') || (c.was ?? '').length + (c.now ?? '').length > 4000;
	return <div class="change">
		<h4><code><Name text={c.path || '(whole)'} most={200} /></code>{c.in && <span class="dim"> in <Line text={c.in} most={80} /></span>} <span class="dim"><Line text={c.op} />{c.line ? `, line ${c.line}` : ''}</span></h4>
		{c.was && c.now ? long ? <DiffView was={c.was} is={c.now} label="What changed in the field" /> : <Words was={c.was} is={c.now} /> : <div class="pair">{value(c.was, 'was')}{value(c.now, 'is')}</div>}
		{c.coarse && <p class="dim"><Name text={c.coarse} /></p>}
	</div>;
}

const value = (text: string | undefined, side: string): ComponentChildren =>
	text === undefined ? null : <p class={side}><span class="hidden">{side === 'was' ? 'recorded: ' : 'replayed: '}</span><code><Name text={text} most={1000} /></code></p>;

function Sides({ was, is }: { was?: string; is?: string }): ComponentChildren {
	if (!was && !is) return null;
	return <Section title="Both sides"><div class="sides">
		<div><h4>recorded</h4><Block text={was || 'nothing'} label="Recorded" /></div>
		<div><h4>replayed</h4><Block text={is || 'nothing'} label="Replayed" /></div>
	</div></Section>;
}
