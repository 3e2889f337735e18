// Search over everything that a run holds: by the server, or here, a block of records at a time, so that nothing waits for it.
import type { Found, Hit, Records } from '../model';
import { list, load, source } from './docs';
import type { Rows } from './rows';
import { bytesOf, refOf } from '../parts/payload';

export const most = 500; // hits

export interface Progress { hits: Hit[]; done: number; more: boolean } // done: from 0 to 1

export async function search(run: string, rows: Rows, what: string, tell: (p: Progress) => void, stopped: () => boolean): Promise<void> {
	if (source.server) {
		const answer = await fetch(`search.json?run=${encodeURIComponent(run)}&q=${encodeURIComponent(what)}`);
		if (!answer.ok) throw new Error((await answer.text()).slice(0, 500));
		const found = (await answer.json()) as Found;
		return tell({ hits: list(found.hits), done: 1, more: found.more });
	}
	const hits: Hit[] = [], blocks = Math.ceil(rows.count / rows.block), seen = new Map<string, boolean>();
	let told = 0;
	for (let b = 0; b < blocks && hits.length < most; b++) {
		const { first, records } = await load<Records>(`run/${run}/records/${b}.json`);
		for (let i = 0; i < records.length && hits.length < most; i++) {
			if (stopped()) return;
			await searchOne(run, rows.seq(first + i), (records[i] as { kind?: unknown }).kind, what, hits, seen);
			if (performance.now() - told > 50) {
				tell({ hits: hits.slice(), done: (b + i / records.length) / blocks, more: false });
				await new Promise((r) => setTimeout(r));
				told = performance.now();
			}
		}
	}
	tell({ hits, done: 1, more: hits.length >= most });
}

/** searchOne looks through every text of a record; bytes that stand in many records are read once, if they do not have the text. */
async function searchOne(run: string, seq: number, value: unknown, what: string, hits: Hit[], seen: Map<string, boolean>, where = ''): Promise<void> {
	if (typeof value === 'string') return put(run, seq, value, what, where, hits);
	if (value === null || typeof value !== 'object' || hits.length >= most) return;
	const payload = refOf(value);
	if (!payload) {
		for (const [k, v] of Object.entries(value)) await searchOne(run, seq, v, what, hits, seen, Array.isArray(value) ? where : k);
		return;
	}
	if (seen.get(payload.digest) === false) return;
	const before = hits.length;
	try {
		put(run, seq, new TextDecoder().decode(await bytesOf(run, payload)), what, where, hits);
	} catch {
		/* it is not in the file: the page says so where it is looked at */
	}
	seen.set(payload.digest, hits.length > before);
}

function put(run: string, seq: number, text: string, what: string, where: string, hits: Hit[]): void {
	const at = find(text, what);
	if (at < 0) return;
	const from = Math.max(0, at - 60);
	hits.push({ run, seq, where: where.replace(/_/g, ' '), text: text.slice(from, at + what.length + 140), at: at - from, len: what.length });
}

/** find is indexOf without regard to case. */
function find(text: string, what: string): number {
	const lower = text.toLowerCase();
	return lower.length === text.length ? lower.indexOf(what.toLowerCase()) : text.indexOf(what);
}
