// One record, with every field of it; a call of a model as people read it first.
import { h } from 'preact';
import type { Detail, Records, Turn } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { Json } from '../parts/json';
import { Payload, refOf } from '../parts/payload';
import { Empty, Facts, Link, Section, Wait } from '../parts/small';
import { Line, Name } from '../parts/text';
import type { Rows } from '../data/rows';
import { TurnView } from './turn';

interface Props { id: string; rows: Rows; row: number; detail: Detail }

export function RecordView({ id, rows, row, detail }: Props) {
	if (row < 0) return <Empty title="No such record" />;
	const block = Math.floor(row / rows.block);
	return <Wait of={doc<Records>(`run/${id}/records/${block}.json`)}>{(records) => {
		const record = records.records[row - records.first] as Taped | undefined;
		return record ? <One id={id} rows={rows} row={row} record={record} detail={detail} /> : <Empty title="This record is not in its block" />;
	}}</Wait>;
}

interface Taped {
	seq: number;
	phase?: string;
	virtual_time_ms?: number;
	monotonic_ms?: number;
	kind?: Record<string, unknown>;
}

const isTurn = (d: Detail, seq: number): boolean => list(d.conversations).some((c) => list(c.turns).some((t) => t.seq === seq));

function One({ id, rows, row, record, detail }: Props & { record: Taped }) {
	const kind = record.kind ?? {}, seq = rows.seq(row), lane = rows.lanes[rows.lane[row]!];
	const turn = isTurn(detail, seq), notes = list(detail.notes).filter((n) => n.seq === seq);
	return <article class="record">
		<header>
			<h2><i class={`dot ${lane?.group ?? 'other'}`} /><Name text={rows.texts[rows.title[row]!] || String(kind.kind ?? '')} most={200} /></h2>
			<Facts of={[
				['record', <code>{seq}</code>], ['kind', <code><Line text={String(kind.kind ?? '?')} /></code>], ['at', format.instant(rows.start[row]!)],
				['took', rows.took[row]! > 0 ? format.span(rows.took[row]!) : ''], ['lane', lane && <Line text={lane.title || lane.name} most={80} />],
				['phase', record.phase && record.phase !== 'user_script' ? record.phase : ''],
			]} />
			{turn && <p><Link to={{ run: id, tab: 'turn', what: String(seq) }}>open in its conversation</Link></p>}
		</header>
		{notes.map((n) => <blockquote class="note"><strong><Line text={n.kind} /></strong> <Name text={n.text} /> <span class="dim"><Line text={n.author} /></span></blockquote>)}
		{turn ? <div>
			<Wait of={doc<Turn>(`run/${id}/turn/${seq}.json`)}>{(t) => <TurnView id={id} turn={t} />}</Wait>
			<details class="section"><summary>The record on the tape</summary><Fields id={id} kind={kind} /></details>
		</div> : <Fields id={id} kind={kind} />}
	</article>;
}

type Pair = [string, string];
const isPairs = (x: unknown): x is Pair[] => Array.isArray(x) && x.length > 0 && x.every((p) => Array.isArray(p) && p.length === 2 && typeof p[0] === 'string');

/** Fields shows what stands in a record: short values first, then lists and bytes. */
function Fields({ id, kind }: { id: string; kind: Record<string, unknown> }) {
	const entries = Object.entries(kind).filter(([k, v]) => k !== 'kind' && v !== null && v !== '');
	const large = (v: unknown) => typeof v === 'object' && !(Array.isArray(v) && v.every((x) => typeof x === 'string'));
	const short = entries.filter(([, v]) => !large(v));
	return <div>
		{short.length > 0 && <dl class="json">{short.map(([k, v]) => <div><dt><Line text={k} /></dt><dd>{Array.isArray(v) ? <Words of={v as string[]} /> : <Json value={v} depth={1} />}</dd></div>)}</dl>}
		{entries.filter(([, v]) => large(v)).map(([k, v]) => <Large id={id} name={k} value={v} />)}
	</div>;
}

const Words = ({ of }: { of: string[] }) => <span class="words">{of.slice(0, 300).map((w) => <code><Name text={w} /></code>)}</span>;

function Large({ id, name, value }: { id: string; name: string; value: unknown }) {
	const payload = refOf(value);
	if (payload) return <Section title={name.replace(/_/g, ' ')}><Payload run={id} of={payload} label={name} /></Section>;
	if (isPairs(value)) {
		return <details class="section" open={value.length < 6}><summary>{name.replace(/_/g, ' ')} <span class="dim">{value.length}</span></summary>
			<dl class="json">{value.map(([k, v]) => <div><dt><Line text={k} /></dt><dd><Json value={v} depth={1} /></dd></div>)}</dl>
		</details>;
	}
	return <details class="section"><summary>{name.replace(/_/g, ' ')}</summary><Json value={value} /></details>;
}
