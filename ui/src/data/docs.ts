// Documents that were asked for, each once.
import { signal, type Signal } from '@preact/signals';
import { openSource } from './source';

export const source = openSource();

export interface Doc<T> {
	value?: T;
	error?: string;
}

interface Kept {
	doc: Signal<Doc<unknown>>;
	asked: number; // how often
	shown: number; // which of these answers doc is
	stale: boolean; // it has grown since
	failed: number; // when, 0 for not
}

const most = 300; // turns, blocks of records and of files that are kept
const patience = 2000; // ms after which what failed is asked for again, where somebody looks
const docs = new Map<string, Kept>(); // what was used last stands last
const many = /\/(turn|records|files)\//;

/** doc is a document, asked for when somebody first looks. */
export function doc<T>(path: string): Signal<Doc<T>> {
	const known = docs.get(path), d = known ?? { doc: signal<Doc<unknown>>({}), asked: 0, shown: 0, stale: true, failed: 0 };
	docs.delete(path);
	docs.set(path, d);
	if (d.stale || (d.failed && performance.now() - d.failed > patience)) fill(path, d);
	if (!known) forget();
	return d.doc as Signal<Doc<T>>;
}

/** forget drops what was looked at longest ago; what each view needs stays. */
function forget(): void {
	let over = docs.size - most;
	for (const path of docs.keys()) if (over > 0 && many.test(path) && docs.delete(path)) over--;
}

/** fill asks for a document; an answer that a later one has overtaken is dropped. */
function fill(path: string, d: Kept): void {
	const n = ++d.asked, put = (to: Doc<unknown>, failed: number) => {
		if (n < d.shown) return;
		Object.assign(d, { shown: n, failed });
		d.doc.value = to;
	};
	Object.assign(d, { stale: false, failed: 0 });
	source.json(path).then((value) => put({ value }, 0), (e: Error) => put({ ...d.doc.peek(), error: e.message }, performance.now()));
}

/** again reads documents anew that have grown; what they held stands until then. */
export function again(matches: (path: string) => boolean): void {
	for (const [path, d] of docs) if (matches(path)) fill(path, d);
}

/** outdated has documents read anew when somebody looks next. */
export function outdated(matches: (path: string) => boolean): void {
	for (const [path, d] of docs) if (matches(path)) d.stale = true;
}

/** load is doc for those who can wait. */
export function load<T>(path: string): Promise<T> {
	const d = docs.get(path), known = d?.stale ? undefined : d?.doc.peek().value;
	return known === undefined ? source.json<T>(path) : Promise.resolve(known as T);
}

export const list = <T>(x: T[] | null | undefined): T[] => x ?? [];
