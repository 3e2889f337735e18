// Runs that are being recorded: their server says when they have grown.
import { effect } from '@preact/signals';
import { again } from './docs';
import { place } from './place';

/** watch follows the run that is looked at. */
export function watch(): void {
	let events: EventSource | null = null, of = '';
	effect(() => {
		const { run } = place.value;
		if (run === of) return;
		of = run;
		events?.close();
		events = run ? follow(run) : null;
	});
}

function follow(run: string): EventSource {
	const events = new EventSource(`run/${encodeURIComponent(run)}/live`), of = `run/${run}/`;
	const derived = ['run', 'index', 'files', 'terminal', 'report'].map((n) => `${of}${n}.json`);
	events.addEventListener('grown', () => again((p) => derived.includes(p) || p.startsWith(`${of}records/`)));
	events.addEventListener('ended', () => {
		events.close();
		again((p) => p === 'library.json' || p.startsWith(of));
	});
	return events;
}
