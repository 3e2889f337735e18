// Keys: what a view does on them, and the sheet that lists them.
import { h } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';

export interface Key {
	key: string; // as KeyboardEvent.key says it
	does: string;
	act: (e: KeyboardEvent) => void;
}

const layers: { keys: Key[] }[] = []; // of the views that are shown; the last one is asked first
const sheet = signal(false);

/** useKeys binds keys while a view is shown. */
export function useKeys(keys: Key[]): void {
	const layer = useRef<{ keys: Key[] }>({ keys });
	layer.current!.keys = keys;
	useEffect(() => {
		const mine = layer.current!;
		layers.push(mine);
		return () => { layers.splice(layers.indexOf(mine), 1); };
	}, []);
}

const typing = (e: KeyboardEvent) => (e.target as Element).closest?.('input, textarea, select, [contenteditable]');

addEventListener('keydown', (e) => {
	if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) return;
	if (e.key === 'Escape' && typing(e)) (e.target as HTMLElement).blur();
	if (typing(e) || document.querySelector('dialog[open]')) return;
	for (let i = layers.length - 1; i >= 0; i--) {
		const found = layers[i]!.keys.find((k) => k.key === e.key);
		if (!found) continue;
		e.preventDefault();
		return found.act(e);
	}
});

export const showKeys = () => { sheet.value = true; };

/** what arrows do within parts of a page, which hear them while they have the focus. */
const parts: [string, string][] = [
	['↑ ↓ Home End', 'in a list: choose'],
	['← →', 'in the timeline: move; on the terminal: step'],
	['+ − 0', 'in the timeline: zoom in, out, show all'],
	['Enter', 'open what is chosen, and go into it'],
];

export function KeySheet() {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => { if (sheet.value) dialog.current?.showModal(); }, [sheet.value]);
	if (!sheet.value) return null;
	const all = new Map(layers.flatMap((l) => l.keys).filter((k) => k.does).map((k) => [k.key, k.does]));
	return <dialog ref={dialog} class="sheet" aria-labelledby="keys-title" onClose={() => { sheet.value = false; }}>
		<h2 id="keys-title">Keys</h2>
		<dl>{[...all, ...parts].map(([key, does]) => <div><dt>{key.split(' ').map((k) => <kbd>{k}</kbd>)}</dt><dd>{does}</dd></div>)}</dl>
		<form method="dialog"><button type="submit">Close</button></form>
	</dialog>;
}
