// What a search over all runs found.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Found, Library } from '../model';
import { list } from '../data/docs';
import * as format from '../data/format';
import { go } from '../data/place';
import { ask } from '../data/search';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Empty, Fault } from '../parts/small';
import { HitRow } from './search';

export function SearchAllView({ what, library }: { what: string; library: Library }) {
	const [found, setFound] = useState<Found | null>(null), [error, setError] = useState(''), [chosen, setChosen] = useState(-1);
	useEffect(() => {
		const stop = new AbortController();
		if (what) ask('', what, stop.signal).then(setFound, (e: Error) => { if (!stop.signal.aborted) setError(e.message); });
		return () => stop.abort();
	}, [what]);
	const hits = list(found?.hits), nameOf = (id: string) => library.runs.find((r) => r.id === id)?.name ?? id;
	const open = (i: number) => { if (hits[i]) go({ view: 'run', run: hits[i]!.run, tab: 'record', what: String(hits[i]!.seq) }); };
	useKeys([
		{ key: 'j', does: 'next hit', act: () => setChosen(Math.min(hits.length - 1, chosen + 1)) },
		{ key: 'k', does: 'previous hit', act: () => setChosen(Math.max(0, chosen - 1)) },
		{ key: 'Enter', does: 'open', act: () => open(chosen) },
	]);
	if (error) return <Fault what={`The search failed: ${error}`} />;
	if (!found) return <p class="empty" role="status">{what ? 'Looking through every run …' : 'Write what to look for.'}</p>;
	return <div class="runs">
		<h1 class="hidden">Search</h1>
		<div class="bar"><span role="status">{format.count(hits.length)}{found.more ? ' or more' : ''} found in {format.plural(new Set(hits.map((x) => x.run)).size, 'run')}</span></div>
		{hits.length ? <VirtualList label="Found" id="hit" class="fill" count={hits.length} chosen={chosen} row={(i) => <HitRow of={hits[i]!} title={nameOf(hits[i]!.run)} />} onChoose={setChosen} onOpen={open} />
			: <Empty title="Not found" />}
	</div>;
}
