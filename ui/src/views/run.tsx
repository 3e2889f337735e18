// One run: its timeline above, what it is made of below, in tabs.
import { h } from 'preact';
import type { Detail, Index } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { place, within, type Tab } from '../data/place';
import { rowsOf, type Rows } from '../data/rows';
import { useKeys } from '../parts/keys';
import { Badge, Fence, Link, Wait, toneOf } from '../parts/small';
import { Line, Name } from '../parts/text';
import { AboutView, sealBroken } from './about';
import { FilesView } from './files';
import { RecordsView } from './records';
import { ReportView } from './report';
import { SearchView } from './search';
import { TerminalView } from './terminal';
import { Timeline } from './timeline';
import { TurnsView } from './turns';

export interface Shown {
	id: string;
	detail: Detail;
	rows: Rows;
}

export function RunView({ id }: { id: string }) {
	const index = doc<Index>(`run/${id}/index.json`); // asked for beside run.json
	return <Wait of={doc<Detail>(`run/${id}/run.json`)}>{(detail) =>
		<Wait of={index}>{(index) => <Loaded id={id} detail={detail} rows={rowsOf(index)} />}</Wait>
	}</Wait>;
}

const turnsOf = (d: Detail): number => list(d.conversations).reduce((n, c) => n + list(c.turns).length, 0);

function Loaded(shown: Shown) {
	const { id, detail, rows } = shown, p = place.value;
	const all: [Tab, string, number | null][] = [
		['record', 'Records', rows.count], ['turn', 'Turns', turnsOf(detail)], ['file', 'Files', detail.files],
		['terminal', 'Terminal', detail.terminal ? null : 0], ['report', 'Replay', detail.report ? null : 0], ['about', 'About', list(detail.problems).length || null],
		...(p.tab === 'search' ? [['search', 'Search', null] as [Tab, string, null]] : []),
	];
	useKeys(all.map(([tab, name], i) => ({ key: String(i + 1), does: name.toLowerCase(), act: () => within({ tab }) })));
	const View = ({ record: RecordsView, turn: TurnsView, file: FilesView, terminal: TerminalView, report: ReportView, about: AboutView, search: SearchView })[p.tab];
	const onKey = (e: KeyboardEvent) => { // along the tabs, as their role promises
		const here = all.findIndex(([tab]) => tab === p.tab), n = all.length;
		const to = ({ ArrowLeft: here + n - 1, ArrowRight: here + 1, Home: 0, End: n - 1 } as Record<string, number>)[e.key];
		if (to === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		const tab = all[to % n]![0];
		within({ tab });
		document.getElementById(`tab-${tab}`)?.focus();
	};
	return <div class="run">
		<Head detail={detail} rows={rows} />
		<Timeline {...shown} />
		<Damage of={detail} />
		<div class="tabs" role="tablist" aria-label="Parts of the run" onKeyDown={onKey}>
			{all.map(([tab, name, n]) => <a role="tab" id={`tab-${tab}`} aria-selected={p.tab === tab} tabIndex={p.tab === tab ? 0 : -1} aria-controls="part" href={`#run/${encodeURIComponent(id)}/${tab}`}
				class={n === 0 ? 'none' : ''} onClick={(e: MouseEvent) => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); within({ tab }); } }}>
				{name}{n ? <span class="dim"> {format.short(n)}</span> : null}
			</a>)}
		</div>
		<div id="part" class="part" role="tabpanel" aria-labelledby={`tab-${p.tab}`}><Fence key={p.tab} of={p.what}><View {...shown} /></Fence></div>
	</div>;
}

/** Damage says above everything that there is more, or other, than was recorded. */
function Damage({ of: d }: { of: Detail }) {
	const bad = list(d.problems).filter(() => d.state !== 'recording'), broken = sealBroken(d); // what is being written may be torn
	if (!bad.length && !broken) return null;
	return <p class="fault damage" role="alert">
		{broken && <span><strong>The seal is broken:</strong> <Name text={d.seal?.checked ?? 'its document is missing'} most={300} />. </span>}
		{bad.length > 0 && <span><strong>The recording is {d.state === 'interrupted' ? 'unfinished' : 'damaged'}:</strong> {bad[0]!.path && !bad[0]!.what.startsWith(bad[0]!.path) && <code><Line text={bad[0]!.path} most={120} /></code>} <Name text={bad[0]!.what} most={300} />{bad.length > 1 && `, and ${format.count(bad.length - 1)} more`}. </span>}
		<Link to={{ run: d.id, tab: 'about' }}>About</Link> lists it.
	</p>;
}

function Head({ detail: d, rows }: { detail: Detail; rows: Rows }) {
	const t = d.totals, status = d.verdict?.status;
	return <div class="head">
		<h1><code><Line text={list(d.argv).join(' ')} most={400} /></code></h1>
		<div class="chips">
			{d.state !== 'finished' && <Badge tone={toneOf(d.state)}>{d.state}</Badge>}
			{status && <Link to={{ run: d.id, tab: 'report' }} label={`the last replay: ${status}`}><Badge tone={toneOf(status)}>{status}</Badge></Link>}
			{sealBroken(d) && <Badge tone="bad">seal broken</Badge>}
			{d.exit && <Badge tone={d.exit.code === 0 && !d.exit.signal ? 'quiet' : 'bad'}>{d.exit.signal || `exit ${d.exit.code}`}</Badge>}
			{d.parent && <Link to={{ run: d.parent }}>fork of {d.parent.slice(0, 20)}{d.fork_seq != null && ` at ${d.fork_seq}`}</Link>}
			{list(t?.models).length > 0 && <span><Line text={list(t?.models).join(', ')} most={80} /></span>}
			{t && <span>{format.plural(t.turns, 'turn')}</span>}
			{t && <span>{format.plural(t.tools, 'tool call')}</span>}
			{t && <span title={`${format.count(t.input_tokens)} in (${format.count(t.cached_tokens)} cached), ${format.count(t.output_tokens)} out`}>{format.short(t.input_tokens)} → {format.short(t.output_tokens)} tokens</span>}
			{t && t.cost_usd != null && <span>{format.cost(t.cost_usd)}</span>}
			<span>{format.span(rows.end)}</span>
			{d.refused > 0 && <Badge tone="warn">{format.plural(d.refused, 'refusal')}</Badge>}
		</div>
	</div>;
}
