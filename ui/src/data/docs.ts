// Documents that were asked for, each once.
import { signal, type Signal } from '@preact/signals';
import { json, openSource } from './source';

export const source = openSource();

export interface Doc<T> {
	value?: T;
	error?: string;
}

const most = 300; // documents that are kept
const docs = new Map<string, Signal<Doc<unknown>>>();

/** doc is a document, asked for when somebody first looks. */
export function doc<T>(path: string): Signal<Doc<T>> {
	let d = docs.get(path);
	if (!d) {
		d = signal<Doc<unknown>>({});
		docs.set(path, d);
		fill(path, d);
		if (docs.size > most) docs.delete(docs.keys().next().value!);
	}
	return d as Signal<Doc<T>>;
}

function fill(path: string, d: Signal<Doc<unknown>>): void {
	json<unknown>(source, path).then(
		(value) => { d.value = { value }; },
		(e: Error) => { d.value = { ...d.peek(), error: e.message }; },
	);
}

/** again reads documents anew that have grown; what they held stands until then. */
export function again(matches: (path: string) => boolean): void {
	for (const [path, d] of docs) if (matches(path)) fill(path, d);
}

/** load is doc for those who can wait. */
export function load<T>(path: string): Promise<T> {
	const known = docs.get(path)?.peek().value;
	return known === undefined ? json<T>(source, path) : Promise.resolve(known as T);
}

export const list = <T>(x: T[] | null | undefined): T[] => x ?? [];
