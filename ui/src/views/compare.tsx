// Runs side by side, from where they first differ: what each came to, how it ended, and their turns beside each other.
import { h, type ComponentChildren } from 'preact';
import { signal } from '@preact/signals';
import type { Comparison, Detail, Difference, Group, Library, Row, Sample } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { Badge, Empty, Link, Section, Wait } from '../parts/small';
import { Line, Name } from '../parts/text';
import { BesideView } from './beside';

export function CompareView({ library }: { library: Library }) {
	if (!library.compare) return <Empty title="Nothing is compared here">Compare recordings: <code>tapedeck compare A B</code></Empty>;
	return <Wait of={doc<Comparison>('compare.json')}>{(c) => <Compared of={c} />}</Wait>;
}

const picked = signal(1); // the row that stands beside the first

function Compared({ of: c }: { of: Comparison }) {
	const rows = list(c.recordings), ids = rows.map((r, i) => list(c.runs)[i] ?? r.id), other = Math.min(Math.max(1, picked.value), rows.length - 1);
	return <div class="compare" tabIndex={0} role="region" aria-label="Comparison">
		<h1>{format.plural(rows.length, 'run')} <Badge tone={c.differ ? 'warn' : 'good'}>{c.differ ? 'differ' : 'do not differ'}</Badge> <span class="dim">{format.plural(c.same_turns, 'turn')} in common before the first difference</span></h1>
		{list(c.notes).map((n) => <p class="dim"><Name text={n} /></p>)}
		<Table rows={rows} ids={ids} other={other} />
		{rows.length > 1 && <BesideView first={{ id: ids[0]!, row: rows[0]! }} other={{ id: ids[other]!, row: rows[other]! }} />}
		{list(c.groups).length > 0 && <Groups of={list(c.groups)} />}
	</div>;
}

export const nameOf = (r: Row): string => r.path.split('/').pop()!.replace(/\.rec$/, '') || r.id;

/** endedWell: less of a run that failed is no merit. */
const endedWell = (r: Row): boolean => r.exit?.code === 0 && !r.exit.signal && !r.check?.exit && !r.check?.timed_out;

function Table({ rows, ids, other }: { rows: Row[]; ids: string[]; other: number }) {
	const ended = rows.filter(endedWell), best = (of: (r: Row) => number | null | undefined) => Math.min(...ended.map((r) => of(r) ?? Infinity));
	const columns: [string, (r: Row) => number | null | undefined, (n: number) => string][] = [
		['turns', (r) => r.total.turns, format.count], ['tools', (r) => r.total.tools, format.count], ['tokens in', (r) => r.total.input_tokens, format.short],
		['tokens out', (r) => r.total.output_tokens, format.short], ['cost', (r) => r.total.cost_usd, format.cost], ['time', (r) => r.total.duration_ms, format.span],
	];
	return <div class="wide" tabIndex={0} role="region" aria-label="The runs"><table class="table runs-table">
		<thead><tr><th>beside</th><th>run</th><th>leaves the first</th>{columns.map(([name]) => <th class="num">{name}</th>)}<th>ended</th><th>check</th><th>files</th></tr></thead>
		<tbody>{rows.map((r, i) => <tr class={i === other ? 'now' : ''}>
			<td>{i === 0 ? <span class="dim">first</span> : <input type="radio" name="beside" checked={i === other} aria-label={`${nameOf(r)} beside the first`} onChange={() => { picked.value = i; }} />}</td>
			<th scope="row"><Link to={{ run: ids[i] }}><Line text={nameOf(r)} most={80} /></Link>{r.parent && <p class="dim">fork of {r.parent.slice(0, 20)}</p>}</th>
			<td>{r.leaves ? <span>turn {r.leaves.turn}, <Line text={r.leaves.what} /></span> : i > 0 ? <span class="dim">nowhere</span> : ''}</td>
			{columns.map(([, of, show]) => { const n = of(r); return <td class={`num ${n && ended.length > 1 && endedWell(r) && n === best(of) ? 'least' : ''}`}>{n == null ? '–' : show(n)}</td>; })}
			<td>{r.exit ? <Badge tone={r.exit.code || r.exit.signal ? 'bad' : 'quiet'}>{r.exit.signal || `exit ${r.exit.code}`}</Badge> : '–'}</td>
			<td>{r.check ? <Badge tone={r.check.exit || r.check.timed_out ? 'bad' : 'good'} >{r.check.timed_out ? 'timed out' : r.check.exit ? `failed, ${r.check.exit}` : 'passed'}</Badge> : <span class="dim">none</span>}</td>
			<td class="num">{list(r.files).length || <span class="dim">same</span>}</td>
		</tr>)}</tbody>
	</table></div>;
}

/** Leaves says where a run first does something else. */
export function Leaves({ of: d, first, other }: { of: Difference; first: string; other: string }): ComponentChildren {
	const of = [first, other].flatMap((id) => list(doc<Detail>(`run/${id}/run.json`).value.value?.conversations)).find((c) => c.lane === d.conversation);
	return <div class="leaves">
		<p>At turn {d.turn}{d.conversation && <span> of <Line text={of?.title || d.conversation} most={120} /></span>}, in <strong><Line text={d.what} /></strong>:</p>
		<div class="sides">
			<div><h4>first{d.seq != null && <span> <Link to={{ run: first, tab: 'turn', what: String(d.seq) }}>record {d.seq}</Link></span>}</h4><p class="was"><Name text={d.first || 'nothing'} most={800} /></p></div>
			<div><h4>the other{d.other_seq != null && <span> <Link to={{ run: other, tab: 'turn', what: String(d.other_seq) }}>record {d.other_seq}</Link></span>}</h4><p class="is"><Name text={d.other || 'nothing'} most={800} /></p></div>
		</div>
	</div>;
}

const sample = (s: Sample | null): string => (s ? `${+s.mean.toPrecision(4)}${s.n > 1 ? ` ± ${+s.spread.toPrecision(2)}` : ''}` : '–');

function Groups({ of }: { of: Group[] }) {
	return <Section title="Samples" note="runs of the same, together">{of.map((g, i) => <div class="wide" tabIndex={0} role="region" aria-label={`Group ${i + 1}`}><table class="table">
		<caption>Group {i + 1}: runs {list(g.recordings).join(', ')}{i > 0 && ', against group 1'}</caption>
		<thead><tr><th>number</th><th class="num">mean</th><th class="num">95% of the mean</th><th class="num">apart from the first group</th><th>verdict</th></tr></thead>
		<tbody>{list(g.numbers).map((n) => <tr><th scope="row">{n.name}</th><td class="num">{sample(n.sample)}</td>
			<td class="num">{n.sample?.low != null && n.sample.high != null ? `${+n.sample.low.toPrecision(4)} to ${+n.sample.high.toPrecision(4)}` : '–'}</td>
			<td class="num">{n.apart ? `${+n.apart.low.toPrecision(3)} to ${+n.apart.high.toPrecision(3)}` : '–'}</td><td>{n.verdict || '–'}</td></tr>)}</tbody>
	</table></div>)}</Section>;
}
