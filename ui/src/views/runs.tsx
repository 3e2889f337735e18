// The runs: newest first, forks below what they were made from.
import { h } from 'preact';
import { useMemo } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Library, Run } from '../model';
import { list } from '../data/docs';
import * as format from '../data/format';
import { go } from '../data/place';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Badge, Empty, toneOf } from '../parts/small';
import { Line, plain } from '../parts/text';
import { Problems } from './problems';

type Order = 'newest' | 'cost' | 'turns' | 'name';

const text = signal(''), order = signal<Order>('newest'), only = signal(''), chosen = signal('');

interface Node { run: Run; depth: number }

/** tree puts forks below their parents; in another order than that of time all stand by themselves. */
function tree(runs: Run[]): Node[] {
	const ids = new Set(runs.map((r) => r.id)), forks = new Map<string, Run[]>(), roots: Run[] = [];
	for (const r of runs) {
		if (r.parent && ids.has(r.parent)) forks.set(r.parent, [...(forks.get(r.parent) ?? []), r]);
		else roots.push(r);
	}
	const out: Node[] = [], seen = new Set<string>();
	const add = (run: Run, depth: number) => {
		if (seen.has(run.id)) return;
		seen.add(run.id);
		out.push({ run, depth });
		for (const f of forks.get(run.id) ?? []) add(f, depth + 1);
	};
	roots.forEach((r) => add(r, 0));
	runs.forEach((r) => add(r, 0)); // of a circle
	return out;
}

const by: Record<Exclude<Order, 'newest'>, (a: Run, b: Run) => number> = {
	cost: (a, b) => (b.totals?.cost_usd ?? -1) - (a.totals?.cost_usd ?? -1),
	turns: (a, b) => (b.totals?.turns ?? -1) - (a.totals?.turns ?? -1),
	name: (a, b) => a.name.localeCompare(b.name),
};

const statusOf = (r: Run): string => r.verdict?.status || (r.state === 'finished' ? '' : r.state);
const words = (r: Run): string => [r.name, r.id, ...list(r.argv), ...list(r.totals?.models), statusOf(r)].join(' ').toLowerCase();

function shownRuns(all: Run[]): Node[] {
	const want = text.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
	const runs = all.filter((r) => (!only.value || statusOf(r) === only.value) && (!want.length || want.every((w) => words(r).includes(w))));
	if (order.value === 'newest') return tree(runs);
	return runs.sort(by[order.value]).map((run) => ({ run, depth: 0 }));
}

function Row({ node: { run, depth } }: { node: Node }) {
	const t = run.totals, status = statusOf(run);
	return <div class="run-row">
		<span class="verdict">{status ? <Badge tone={toneOf(status)} title={plain(run.verdict?.summary ?? '')}>{status}</Badge> : <span class="dim">not replayed</span>}</span>
		<span class="name">
			{depth > 0 && <span class="fork" style={{ width: `${Math.min(depth, 8)}em` }} aria-label="a fork">└</span>}
			<strong><Line text={run.name || run.id} most={120} /></strong> <span class="argv"><Line text={list(run.argv).join(' ')} /></span>
		</span>
		<span class="model"><Line text={list(t?.models).join(', ')} most={60} /></span>
		<span class="num" title="turns">{t ? format.count(t.turns) : '–'}</span>
		<span class="num" title="calls of tools">{t ? format.count(t.tools) : '–'}</span>
		<span class="num" title="tokens in and out">{t ? format.short(t.input_tokens + t.output_tokens) : '–'}</span>
		<span class="num" title="cost">{t ? format.cost(t.cost_usd) : '–'}</span>
		<span class="num" title="records">{format.short(run.records)}</span>
		<span class="when">{run.started ? <time dateTime={new Date(run.started).toISOString()}>{format.date(run.started).slice(0, 16)}</time> : '–'}</span>
		<span class="exit">{run.exit && (run.exit.signal || run.exit.code !== 0) ? <Badge tone="bad">{run.exit.signal || `exit ${run.exit.code}`}</Badge> : ''}{run.sealed && <span title="sealed">▣</span>}</span>
	</div>;
}

export function RunsView({ library }: { library: Library }) {
	const all = list(library.runs);
	const nodes = useMemo(() => shownRuns(all), [all, text.value, only.value, order.value]);
	const at = nodes.findIndex((n) => n.run.id === chosen.value);
	const open = () => { if (nodes[at]) go({ run: nodes[at]!.run.id }); };
	const move = (by: number) => { chosen.value = nodes[Math.max(0, Math.min(nodes.length - 1, at + by))]?.run.id ?? ''; };
	useKeys([
		{ key: 'j', does: 'next', act: () => move(1) },
		{ key: 'k', does: 'previous', act: () => move(-1) },
		{ key: 'Enter', does: 'open', act: open },
		...(library.compare ? [{ key: 'c', does: 'the comparison', act: () => go({ view: 'compare' }) }] : []),
	]);
	const statuses = [...new Set(all.map(statusOf).filter(Boolean))].sort();
	const spent = nodes.reduce((n, { run }) => n + (run.totals?.cost_usd ?? 0), 0);
	return <div class="runs">
		<h1 class="hidden">Runs</h1>
		<div class="bar">
			<input type="search" placeholder="Name, command, model, verdict" aria-label="Filter the runs" value={text.value} onInput={(e) => { text.value = e.currentTarget.value; }} />
			<select aria-label="Which runs" value={only.value} onChange={(e) => { only.value = e.currentTarget.value; }}>
				<option value="">every verdict</option>
				{statuses.map((s) => <option value={s}>{s}</option>)}
			</select>
			<select aria-label="Order" value={order.value} onChange={(e) => { order.value = e.currentTarget.value as Order; }}>
				<option value="newest">newest first</option><option value="cost">by cost</option><option value="turns">by turns</option><option value="name">by name</option>
			</select>
			<span class="dim" role="status">{nodes.length === all.length ? format.plural(all.length, 'run') : `${format.count(nodes.length)} of ${format.plural(all.length, 'run')}`}{spent > 0 && `, ${format.cost(spent)}`}</span>
		</div>
		<Problems of={library.problems} absent={library.absent} />
		<div class="run-row heads" aria-hidden="true">
			<span>verdict</span><span>run</span><span>model</span><span class="num">turns</span><span class="num">tools</span><span class="num">tokens</span><span class="num">cost</span><span class="num">records</span><span>started, UTC</span><span />
		</div>
		{nodes.length
			? <VirtualList label="Runs" id="run" class="fill" count={nodes.length} chosen={at} row={(i) => <Row node={nodes[i]!} />} onChoose={(i) => { chosen.value = nodes[i]!.run.id; }} onOpen={(i) => go({ run: nodes[i]!.run.id })} />
			: <Empty title={all.length ? 'No run is like that' : 'No recordings here'}>{!all.length && <span>Record one: <code>tapedeck record -- COMMAND</code></span>}</Empty>}
	</div>;
}
