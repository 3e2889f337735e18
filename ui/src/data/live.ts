// What goes on: runs come to a library, and those that are being recorded grow; their server says so.
import { effect } from '@preact/signals';
import type { Library } from '../model';
import { again, doc } from './docs';
import { place } from './place';

const every = 5000; // ms between two looks at the list of runs

/** watch looks at the list while it is seen, and follows the run that is looked at while it is recorded. */
export function watch(): void {
	setInterval(() => {
		if (place.peek().view === 'runs' && !document.hidden) again((p) => p === 'library.json');
	}, every);
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

function follow(run: string): EventSource {
	const events = new EventSource(`run/${encodeURIComponent(run)}/live`), of = `run/${run}/`;
	events.addEventListener('grown', () => again((p) => p.startsWith(of) && !p.includes('/turn/')));
	events.addEventListener('ended', () => {
		events.close();
		again((p) => p === 'library.json' || p.startsWith(of));
	});
	return events;
}
