// The conversations of a run: their turns in a list, the one that is chosen beside it.
import { h } from 'preact';
import { signal } from '@preact/signals';
import type { Conversation, Turn, TurnRow } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { place, within } from '../data/place';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Empty, Wait, Link } from '../parts/small';
import { Split } from '../parts/split';
import { Line, plain } from '../parts/text';
import type { Shown } from './run';
import { TurnView, TurnWithout } from './turn';

const only = signal(''); // a lane; '' for all

interface One { turn: TurnRow; of: Conversation; n: number }

function Row({ one: { turn: t, n }, many }: { one: One; many: boolean }) {
	return <div class="turn-row">
		<span class="num seq">{many && <span class={`lane c${n % 6}`} title="conversation">{n + 1}</span>}{t.number}</span>
		<span class="title">
			{t.error ? <b class="bad" title="failed">✕ </b> : null}
			<span class="asks"><Line text={t.prompt} most={160} /></span>
			<span class="answers"><Line text={t.answer || t.error} most={160} /></span>
		</span>
		<span class="names">{list(t.tools).slice(0, 4).map((x) => <code><Line text={x} most={24} /></code>)}{list(t.tools).length > 4 && ` +${t.tools.length - 4}`}</span>
		<span class="num tokens" title={`${format.count(t.input_tokens)} in, ${format.count(t.output_tokens)} out`}>{format.short(t.input_tokens)} → {format.short(t.output_tokens)}</span>
		<span class="num took">{format.span(t.latency)}</span>
		<span class="num cost">{t.cost_usd == null ? '' : format.cost(t.cost_usd)}</span>
	</div>;
}

export function TurnsView({ id, detail, rows }: Shown) {
	const conversations = list(detail.conversations);
	const all = conversations.flatMap((of, n) => list(of.turns).map((turn) => ({ turn, of, n })))
		.filter((x) => !only.value || x.of.lane === only.value).sort((a, b) => a.turn.start - b.turn.start);
	const seq = place.value.what === '' ? -1 : Number(place.value.what), chosen = all.findIndex((x) => x.turn.seq === seq);
	const choose = (i: number) => { if (all[i]) within({ tab: 'turn', what: String(all[i]!.turn.seq) }, seq >= 0); };
	useKeys([
		{ key: 'j', does: 'next turn', act: () => choose(chosen + 1) },
		{ key: 'k', does: 'previous turn', act: () => choose(Math.max(0, chosen - 1)) },
		{ key: 'r', does: 'the record of the turn', act: () => { if (seq >= 0) within({ tab: 'record', what: String(seq) }); } },
		{ key: 'Escape', does: 'close the turn', act: () => within({ tab: 'turn', what: '' }) },
	]);
	if (!conversations.length) return <Empty title="No model was asked">{rows.count} records are in <Link to={{ run: id }}>the list</Link>.</Empty>;
	const one = chosen >= 0 ? all[chosen]! : null;
	return <Split open={seq >= 0} name="turn" onClose={() => within({ tab: 'turn', what: '' })} side={!one ? <Empty title={`Record ${seq} is no turn`}><Link to={{ run: id, tab: 'record', what: String(seq) }}>What it is</Link></Empty> : <Wait key={seq} of={doc<Turn>(`run/${id}/turn/${seq}.json`)} without={(why) => <TurnWithout of={one.turn} why={why} />}>{(t) => <article class="record">
		<header><h2>Turn {t.number}{conversations.length > 1 && <span class="dim"> of <Line text={one.of.title || one.of.lane} most={80} /></span>}</h2>
			<p><Link to={{ run: id, tab: 'record', what: String(seq) }}>record {seq}</Link></p></header>
		<TurnView id={id} turn={t} />
	</article>}</Wait>}>
		{conversations.length > 1 && <div class="bar">
			<select aria-label="Which conversation" value={only.value} onChange={(e) => { only.value = e.currentTarget.value; }}>
				<option value="">all {conversations.length} conversations</option>
				{conversations.map((c, n) => <option value={c.lane}>{n + 1}: {plain(c.title || c.lane, 80)}, {format.plural(list(c.turns).length, 'turn')}</option>)}
			</select>
		</div>}
		<VirtualList label="Turns" id="turn" class="fill turns" count={all.length} chosen={chosen} row={(i) => <Row one={all[i]!} many={conversations.length > 1} />} onChoose={choose} />
	</Split>;
}
