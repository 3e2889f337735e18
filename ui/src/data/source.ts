// Where documents come from: compressed blocks in this very file, or the server that gave it.

export interface Source {
	/** Whether a server answers: it searches, and tells of what grows. */
	readonly server: boolean;
	bytes(path: string): Promise<Uint8Array>;
}

export async function json<T>(source: Source, path: string): Promise<T> {
	return JSON.parse(new TextDecoder().decode(await source.bytes(path))) as T;
}

export function openSource(): Source {
	const table = document.getElementById('td-table');
	return table ? embedded(table) : { server: true, bytes: ask };
}

async function ask(path: string): Promise<Uint8Array> {
	const answer = await fetch(path.split('/').map(encodeURIComponent).join('/'));
	if (!answer.ok) throw new Error((await answer.text()).slice(0, 500) || `the server says ${answer.status}`);
	return new Uint8Array(await answer.arrayBuffer());
}

type Table = Record<string, number[]>; // pieces of a document: block, offset, length, …

const kept = 24; // unpacked blocks: what is looked at stands close together

function embedded(element: Element): Source {
	const blocks = new Map<number, Promise<Uint8Array>>();
	const table = unpack(element).then((b) => new Map(Object.entries(JSON.parse(new TextDecoder().decode(b)) as Table)));
	const block = (n: number): Promise<Uint8Array> => {
		const known = blocks.get(n) ?? unpack(document.getElementById(`td-${n}`));
		blocks.delete(n);
		blocks.set(n, known);
		if (blocks.size > kept) blocks.delete(blocks.keys().next().value!);
		return known;
	};
	return {
		server: false,
		async bytes(path) {
			const place = (await table).get(path);
			if (!place) throw new Error('this is not in the file');
			const pieces: Uint8Array[] = [];
			for (let i = 0; i < place.length; i += 3) {
				const from = place[i + 1]!;
				pieces.push((await block(place[i]!)).subarray(from, from + place[i + 2]!));
			}
			return pieces.length === 1 ? pieces[0]! : joined(pieces);
		},
	};
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
	const packed = Uint8Array.from(atob(element.textContent!.trim()), (c) => c.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}
