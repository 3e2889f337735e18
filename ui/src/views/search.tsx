// What a search found, each place with a way to it.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Hit } from '../model';
import { list } from '../data/docs';
import * as format from '../data/format';
import { place, within } from '../data/place';
import { search, type Missed, type Progress } from '../data/search';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Empty, Fault } from '../parts/small';
import { Split } from '../parts/split';
import { Line, Name } from '../parts/text';
import { RecordView } from './record';
import type { Shown } from './run';

export function HitRow({ of, title }: { of: Hit; title: string }) {
	return <div class="hit-row">
		<span class="num dim">{of.seq}</span><span class="dim"><Line text={title} most={80} /></span><span class="dim"><Line text={of.where} most={40} /></span>
		<span class="title"><Line text={of.text.slice(0, of.at)} /><mark><Line text={of.text.slice(of.at, of.at + of.len)} /></mark><Line text={of.text.slice(of.at + of.len)} /></span>
	</div>;
}

const nothing: Progress = { hits: [], done: 0, more: false, missed: { records: 0, payloads: 0, bytes: 0, why: '' } };

/** missedText says what was not looked at. */
function missedText(m: Missed): string {
	const parts = [m.records ? format.plural(m.records, 'record') : '', m.payloads ? `${format.plural(m.payloads, 'payload')} of ${format.bytes(m.bytes)}` : ''].filter(Boolean);
	return parts.length ? `Not looked at: ${parts.join(' and ')}. ${m.why[0]!.toUpperCase()}${m.why.slice(1)}.` : '';
}

export function SearchView({ id, detail, rows }: Shown) {
	const { what } = place.value, [got, setGot] = useState(nothing), [error, setError] = useState(''), [chosen, setChosen] = useState(-1);
	useEffect(() => {
		const stop = new AbortController(), turns = new Set(list(detail.conversations).flatMap((c) => list(c.turns).map((t) => t.seq)));
		setGot(nothing);
		setError('');
		setChosen(-1);
		if (what) search(id, rows, turns, what, (p) => { if (!stop.signal.aborted) setGot(p); }, stop.signal).catch((e: Error) => { if (!stop.signal.aborted) setError(e.message); });
		return () => stop.abort();
	}, [id, what]);
	const hit = got.hits[chosen], missed = missedText(got.missed), title = (x: Hit) => rows.texts[rows.title[rows.rowOf(x.seq)] ?? -1] ?? '';
	useKeys([
		{ key: 'j', does: 'next hit', act: () => setChosen(Math.min(got.hits.length - 1, chosen + 1)) },
		{ key: 'k', does: 'previous hit', act: () => setChosen(Math.max(0, chosen - 1)) },
		{ key: 'Escape', does: 'close the record', act: () => setChosen(-1) },
		{ key: 'r', does: 'the record of the hit', act: () => { if (hit) within({ tab: 'record', what: String(hit.seq) }); } },
	]);
	if (!what) return <Empty title="Search everything in this run">Press <kbd>/</kbd> and write what to look for.</Empty>;
	if (error) return <Fault what={`The search failed: ${error}`} />;
	return <Split open={!!hit} name="record" onClose={() => setChosen(-1)} side={hit && <RecordView key={hit.seq} id={id} rows={rows} row={rows.rowOf(hit.seq)} detail={detail} />}>
		<div class="bar"><span role="status">{format.count(got.hits.length)}{got.more ? ' or more' : ''} found{got.done < 1 && `, ${Math.floor(100 * got.done)}% looked through`}</span>
			{got.done < 1 && <progress value={got.done} max={1} aria-label="Looked through" />}</div>
		{missed && <p class="missed" role="status"><Name text={missed} most={400} /></p>}
		{got.hits.length ? <VirtualList label="Found" id="hit" class="fill" count={got.hits.length} chosen={chosen} row={(i) => <HitRow of={got.hits[i]!} title={title(got.hits[i]!)} />} onChoose={setChosen} />
			: got.done === 1 && <Empty title={missed ? 'Not found in what is here' : 'Not found'} />}
	</Split>;
}
