// Two runs beside each other: where they part, their turns, their tools, their files.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import type { Detail, Row, TurnRow } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { Link, Section } from '../parts/small';
import { Line, Name } from '../parts/text';
import { Leaves, nameOf } from './compare';

interface Side { id: string; row: Row }

export function BesideView({ first, other }: { first: Side; other: Side }) {
	return <div>
		<h2><Line text={nameOf(first.row)} /> <span class="dim">beside</span> <Line text={nameOf(other.row)} /></h2>
		{other.row.leaves ? <Section title="Where they part"><Leaves of={other.row.leaves} first={first.id} other={other.id} /></Section> : <p class="dim">They do not differ.</p>}
		<Turns first={first} other={other} />
		<Tools first={first.row} other={other.row} />
		{list(other.row.files).length > 0 && <Section title="Files that are left otherwise" note={format.count(other.row.files.length)}><table class="table">
			<thead><tr><th>path</th><th>first</th><th>other</th></tr></thead>
			<tbody>{other.row.files.slice(0, 500).map((f) => <tr><th scope="row"><Link to={{ run: other.id, tab: 'file', what: f.path }}><Name text={f.path} most={200} /></Link></th><td><Name text={f.first} /></td><td><Name text={f.other} /></td></tr>)}</tbody>
		</table></Section>}
	</div>;
}

const turnsOf = (d: Detail | undefined): TurnRow[] => list(d?.conversations).flatMap((c) => list(c.turns)).sort((a, b) => a.start - b.start);

function Turns({ first, other }: { first: Side; other: Side }) {
	const [room, setRoom] = useState(60);
	const a = doc<Detail>(`run/${first.id}/run.json`).value, b = doc<Detail>(`run/${other.id}/run.json`).value;
	if (!a.value || !b.value) return <p class="dim">{a.error ?? b.error ?? 'Reading …'}</p>;
	const left = turnsOf(a.value), right = turnsOf(b.value), most = Math.max(left.length, right.length);
	const cell = (t: TurnRow | undefined, run: string) => t
		? <td><Link to={{ run, tab: 'turn', what: String(t.seq) }}>{t.error ? <b class="bad">✕ </b> : null}<Line text={t.answer || t.error || 'no words'} most={110} /></Link>
			<p class="dim">{list(t.tools).slice(0, 5).map((x) => <code><Line text={x} most={30} /> </code>)} {format.span(t.latency)}, {format.short(t.input_tokens)} → {format.short(t.output_tokens)}</p></td>
		: <td class="dim">–</td>;
	return <Section title="Turns"><div class="wide" tabIndex={0} role="region" aria-label="Turns of both"><table class="table beside">
		<thead><tr><th class="num">turn</th><th>{nameOf(first.row)}</th><th>{nameOf(other.row)}</th></tr></thead>
		<tbody>{Array.from({ length: Math.min(most, room) }, (_, i) => <tr class={i < other.row.same_turns ? 'same' : i === other.row.same_turns ? 'parts' : ''}>
			<th scope="row" class="num">{i + 1}{i < other.row.same_turns && <span title="the same in both"> =</span>}</th>{cell(left[i], first.id)}{cell(right[i], other.id)}
		</tr>)}</tbody>
	</table></div>
	{most > room && <button type="button" class="link" onClick={() => setRoom(room + 500)}>{format.plural(most - room, 'turn')} more</button>}
	</Section>;
}

function Tools({ first, other }: { first: Row; other: Row }) {
	const names = [...new Set([...list(first.tools), ...list(other.tools)].map((t) => t.name))].sort();
	if (!names.length) return null;
	const of = (r: Row, name: string) => list(r.tools).find((t) => t.name === name);
	return <Section title="Tools"><table class="table">
		<thead><tr><th>tool</th><th class="num">first</th><th class="num">other</th><th>called otherwise than in the first</th></tr></thead>
		<tbody>{names.slice(0, 300).map((name) => <tr><th scope="row"><code><Line text={name} most={80} /></code></th><td class="num">{of(first, name)?.calls ?? 0}</td><td class="num">{of(other, name)?.calls ?? 0}</td>
			<td>{list(of(other, name)?.other_arguments).map((c) => <p><span class="dim">turn {c.turn}</span> <code><Name text={c.arguments} most={160} /></code></p>)}{!!of(other, name)?.more && <p class="dim">{of(other, name)!.more} more</p>}</td></tr>)}</tbody>
	</table></Section>;
}
