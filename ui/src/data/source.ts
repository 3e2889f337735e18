// Where documents come from: compressed blocks in this very file, or the server that gave it.
import { signal } from '@preact/signals';
import type { Absent, Library } from '../model';
import * as format from './format';

export interface Source {
	/** Whether a server answers: it searches, and tells of what grows. */
	readonly server: boolean;
	bytes(path: string): Promise<Uint8Array>;
	json<T>(path: string): Promise<T>;
}

export function openSource(): Source {
	const table = document.getElementById('td-table');
	return table ? embedded(table) : { server: true, bytes: async (path) => new Uint8Array(await (await ask(path)).arrayBuffer()), json: async (path) => (await ask(path)).json() };
}

/** gone says that the server answers no more. */
export const gone = signal(false);

const ask = (path: string): Promise<Response> => request(path.split('/').map(encodeURIComponent).join('/'));

/** request asks the server. */
export async function request(url: string, stop?: AbortSignal): Promise<Response> {
	const answer = await fetch(url, { signal: stop }).catch((e: Error) => {
		if (stop?.aborted) throw e;
		gone.value = true;
		throw new Error('tapedeck ui does not answer');
	});
	gone.value = false;
	if (!answer.ok) throw new Error((await answer.text()).slice(0, 500) || `the server says ${answer.status}`);
	return answer;
}

/** post tells the server something; it rejects with what the server says. */
export async function post(path: string, what: unknown): Promise<void> {
	const answer = await fetch(path, { method: 'POST', body: JSON.stringify(what), headers: { 'Content-Type': 'application/json' } });
	if (!answer.ok) throw new Error((await answer.text()).slice(0, 500) || `the server says ${answer.status}`);
}

type Table = Record<string, number[]>; // pieces of a document: block, offset, length, …

const kept = 24; // unpacked blocks: what is looked at stands close together

function embedded(element: Element): Source {
	const blocks = new Map<number, Promise<Uint8Array>>();
	const table = unpack(element).then((b) => new Map(Object.entries(parsed<Table>(b))));
	const block = (n: number): Promise<Uint8Array> => {
		const known = blocks.get(n) ?? unpack(document.getElementById(`td-${n}`));
		blocks.delete(n);
		blocks.set(n, known);
		if (blocks.size > kept) blocks.delete(blocks.keys().next().value!);
		return known;
	};
	const read = async (place: number[]): Promise<Uint8Array> => {
		const pieces: Uint8Array[] = [];
		for (let i = 0; i < place.length; i += 3) {
			const from = place[i + 1]!;
			pieces.push((await block(place[i]!)).subarray(from, from + place[i + 2]!));
		}
		return pieces.length === 1 ? pieces[0]! : joined(pieces);
	};
	let absent: Promise<Absent[]> | null = null;
	const bytes = async (path: string): Promise<Uint8Array> => {
		const place = (await table).get(path);
		if (place) return read(place);
		absent ??= json<Library>('library.json').then((l) => l.absent ?? []);
		throw new Error(whyNot(path, await absent));
	};
	const json = async <T,>(path: string): Promise<T> => parsed<T>(await bytes(path));
	return { server: false, bytes, json };
}

const parsed = <T,>(b: Uint8Array): T => JSON.parse(new TextDecoder().decode(b)) as T;

/** whyNot says of what a file does not hold how large it is, why, and what to do. */
function whyNot(path: string, absent: Absent[]): string {
	const of = absent.find((a) => a.path === path || a.path.startsWith(`${path}.`)); // decoded, where it came encoded
	if (!of) return 'this file does not hold it; tapedeck ui shows the whole recording';
	return `left out of this file${of.size ? `, ${format.bytes(of.size)}` : ''}: ${of.why}`;
}

function joined(pieces: Uint8Array[]): Uint8Array {
	const all = new Uint8Array(pieces.reduce((n, p) => n + p.length, 0));
	let at = 0;
	for (const p of pieces) {
		all.set(p, at);
		at += p.length;
	}
	return all;
}

async function unpack(element: Element | null): Promise<Uint8Array> {
	if (!element) throw new Error('a part of this file is missing');
	const stream = new Blob([fromBase64(element.textContent!.trim())]).stream().pipeThrough(new DecompressionStream('gzip'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
	const native = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array<ArrayBuffer> }).fromBase64;
	if (native) return native.call(Uint8Array, text);
	const binary = atob(text), out = new Uint8Array(binary.length);
	for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
	return out;
}
