// The records of a run: a list with filters, and the one that is chosen beside it.
import { h } from 'preact';
import { useMemo } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Report, TurnRow } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { place, within } from '../data/place';
import { filtered, flags, type Rows } from '../data/rows';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Empty } from '../parts/small';
import { Line } from '../parts/text';
import { Split } from '../parts/split';
import { RecordView } from './record';
import type { Shown } from './run';

const text = signal(''), groups = signal<ReadonlySet<string>>(new Set()), flag = signal(0), byStart = signal(false);

function toggled(of: ReadonlySet<string>, one: string): ReadonlySet<string> {
	const next = new Set(of);
	if (!next.delete(one)) next.add(one);
	return next;
}

interface Marks { first: number; notes: ReadonlySet<number>; turns: ReadonlyMap<number, TurnRow> }

function Row({ rows: r, row, marks }: { rows: Rows; row: number; marks: Marks }) {
	const lane = r.lanes[r.lane[row]!], seq = r.seq(row), f = r.flag[row]!, turn = marks.turns.get(seq); // whose numbers stand in columns
	return <div class="record-row">
		<span class="num seq">{seq}</span>
		<span class="num at">{format.instant(r.start[row]!)}</span>
		<span class="kind"><i class={`dot ${lane?.group ?? 'other'}`} />{r.kinds[r.kind[row]!]}</span>
		{turn ? <span class="title"><Line text={turn.prompt} most={120} /> <span class="dim">→</span> <Line text={[turn.error || turn.answer, ...list(turn.tools)].filter(Boolean).join(' · ')} most={160} /></span>
			: <span class="title"><Line text={r.texts[r.title[row]!] ?? ''} /></span>}
		<span class="marks">
			{marks.first === seq && <b class="bad" title="first divergence">≠</b>}
			{f & flags.failed ? <b class="bad" title="failed or refused">✕</b> : null}
			{marks.notes.has(seq) && <b title="has a note">✎</b>}
			{f & flags.side ? <b class="dim" title="side traffic">~</b> : null}
		</span>
		<span class="num took">{r.took[row]! > 0 ? format.span(r.took[row]!) : ''}</span>
		<span class="num size">{r.size[row]! > 0 ? format.bytes(r.size[row]!) : ''}</span>
	</div>;
}

export function RecordsView({ id, detail, rows }: Shown) {
	const report = detail.report ? doc<Report>(`run/${id}/report.json`).value.value : undefined;
	const marks = useMemo(() => ({ first: report?.first ?? -1, notes: new Set(list(detail.notes).map((n) => n.seq)), turns: new Map(list(detail.conversations).flatMap((c) => list(c.turns).map((t) => [t.seq, t] as const))) }), [report, detail]);
	const some = useMemo(() => filtered(rows, { groups: groups.value, flag: flag.value, text: text.value }), [rows, groups.value, flag.value, text.value]);
	const left = useMemo(() => (byStart.value ? (some ?? Int32Array.from({ length: rows.count }, (_, i) => i)).slice().sort((a, b) => rows.start[a]! - rows.start[b]! || a - b) : some), [rows, some, byStart.value]);
	const count = left ? left.length : rows.count, rowAt = (i: number) => (left ? left[i]! : i);
	const seq = place.value.what === '' ? -1 : Number(place.value.what), row = seq < 0 ? -1 : rows.rowOf(seq);
	const chosen = row < 0 ? -1 : left ? left.indexOf(row) : row;
	const choose = (i: number) => { if (i >= 0 && i < count) within({ tab: 'record', what: String(rows.seq(rowAt(i))) }, seq >= 0); };
	useKeys([
		{ key: 'j', does: 'next record', act: () => choose(chosen + 1) },
		{ key: 'k', does: 'previous record', act: () => choose(Math.max(0, chosen - 1)) },
		{ key: 'f', does: 'filter records', act: () => document.getElementById('filter')?.focus() },
		{ key: 'x', does: 'failed records only', act: () => { flag.value = flag.value ? 0 : flags.failed; } },
		{ key: 'd', does: 'first divergence', act: () => { if (marks.first >= 0) within({ tab: 'record', what: String(marks.first) }); } },
		{ key: 'Escape', does: 'close the record', act: () => within({ tab: 'record', what: '' }) },
	]);
	const kinds = [...new Set(rows.lanes.map((l) => l.group))];
	const none = () => { text.value = ''; groups.value = new Set(); flag.value = 0; };
	return <Split open={row >= 0} name="record" onClose={() => within({ tab: 'record', what: '' })} side={<RecordView key={seq} id={id} rows={rows} row={row} detail={detail} />}>
		<div class="bar">
			<input id="filter" type="search" placeholder="Filter (f)" aria-label="Filter the records by title or kind" value={text.value} onInput={(e) => { text.value = e.currentTarget.value; }} />
			<div class="toggles" role="group" aria-label="Which records">
				{kinds.map((g) => <button type="button" aria-pressed={groups.value.has(g)} onClick={() => { groups.value = toggled(groups.value, g); }}><i class={`dot ${g}`} />{g}</button>)}
				<button type="button" aria-pressed={byStart.value} title="else by when they were written, which is when they ended" onClick={() => { byStart.value = !byStart.value; }}>by start</button>
				<button type="button" aria-pressed={flag.value === flags.failed} onClick={() => { flag.value = flag.value ? 0 : flags.failed; }}>failed</button>
			</div>
			<span class="dim" role="status">{some ? `${format.count(count)} of ${format.count(rows.count)}` : ''}</span>
			{some && <button type="button" class="link" onClick={none}>show all</button>}
		</div>
		{count ? <VirtualList label="Records" id="row" class="fill records" count={count} chosen={chosen} row={(i) => <Row rows={rows} row={rowAt(i)} marks={marks} />} onChoose={choose} />
			: <Empty title={rows.count ? 'No record is like that' : 'Nothing was recorded'}>{rows.count > 0 && <button type="button" class="link" onClick={none}>show all</button>}</Empty>}
	</Split>;
}
