// What goes on: runs come to a library, and those that are being recorded grow; their server says so.
import { effect } from '@preact/signals';
import type { Index, Library } from '../model';
import { again, doc, outdated } from './docs';
import { place } from './place';
import { gone } from './source';

const every = 5000; // ms between two looks at the list of runs
const often = 1000; // ms between two looks at what waits for a person

/** watch looks at the list while it is seen, and follows the run that is looked at while it is recorded. */
export function watch(): void {
	setInterval(() => {
		if (place.peek().view === 'runs' && !document.hidden) again((p) => p === 'library.json');
	}, every);
	setInterval(() => {
		const p = place.peek(), daemon = doc<Library>('library.json').peek().value?.daemon;
		if (daemon && !document.hidden) again((path) => path === 'daemon.json' || (p.view === 'daemon' && path === `daemon/run/${p.what}.json`));
	}, often);
	let events: EventSource | null = null, of = '';
	effect(() => {
		const { run } = place.value, grows = doc<Library>('library.json').value.value?.runs.find((r) => r.id === run)?.state === 'recording';
		const to = grows ? run : '';
		if (to === of) return;
		of = to;
		events?.close();
		events = to ? follow(to) : null;
	});
}

/** follow asks for what has come: the index and the numbers at once, the last blocks of records and the rest when they are looked at. */
function follow(run: string): EventSource {
	const events = new EventSource(`run/${encodeURIComponent(run)}/live`), of = `run/${run}/`;
	const always = (p: string) => p === `${of}index.json` || p === `${of}run.json`;
	const blockOf = (p: string) => Number(/\/records\/(\d+)\.json$/.exec(p)?.[1] ?? Infinity);
	events.addEventListener('grown', () => {
		const index = doc<Index>(`${of}index.json`).peek().value, last = index ? Math.floor(index.rows / (index.block || 1)) : 0;
		outdated((p) => p.startsWith(of) && !p.includes('/turn/') && blockOf(p) >= last);
		again(always);
	});
	events.addEventListener('ended', () => {
		events.close();
		outdated((p) => p.startsWith(of));
		again((p) => p === 'library.json' || always(p));
	});
	events.addEventListener('open', () => { gone.value = false; });
	events.addEventListener('error', () => { gone.value = events.readyState === EventSource.CONNECTING; }); // an end closes them
	return events;
}
