// Search over everything that a run holds: by the server, or here, a block of records at a time, so that nothing waits for it.
import type { Found, Hit, Records } from '../model';
import { list, load, source } from './docs';
import type { Rows } from './rows';
import { request } from './source';
import { bytesOf, refOf } from '../parts/payload';

export const most = 500; // hits

export interface Progress {
	hits: Hit[];
	done: number; // from 0 to 1
	more: boolean;
	missed: Missed;
}

/** Missed is what could not be looked at, and why the first of it could not. */
export interface Missed { records: number; payloads: number; bytes: number; why: string }

export async function search(run: string, rows: Rows, turns: ReadonlySet<number>, what: string, tell: (p: Progress) => void, stop: AbortSignal): Promise<void> {
	const look = new Looking(run, what);
	if (source.server) {
		const found = await ask(run, what, stop);
		return tell({ hits: list(found.hits), done: 1, more: found.more, missed: look.missed });
	}
	let told = 0;
	for (let row = 0; row < rows.count && !look.full; row++) {
		if (stop.aborted) return;
		await look.row(rows, row, turns);
		if (performance.now() - told > 50) {
			tell({ hits: look.hits.slice(), done: row / rows.count, more: false, missed: look.missed });
			await new Promise((r) => setTimeout(r));
			told = performance.now();
		}
	}
	tell({ hits: look.hits, done: 1, more: look.full, missed: look.missed });
}

/** ask has a server search a run, '' for all. */
export async function ask(run: string, what: string, stop: AbortSignal): Promise<Found> {
	return (await (await request(`search.json?run=${encodeURIComponent(run)}&q=${encodeURIComponent(what)}`, stop)).json()) as Found;
}

class Looking {
	hits: Hit[] = [];
	missed: Missed = { records: 0, payloads: 0, bytes: 0, why: '' };
	private block = -1;
	private records: Records | null = null; // of that block, null where it is not there
	private seen = new Map<string, 'hit' | 'none' | 'missed'>(); // payloads, which may stand in many records

	private readonly forms: string[];

	constructor(readonly run: string, what: string) { this.forms = formsOf(what); }

	get full(): boolean { return this.hits.length >= most; }

	/** row looks through a record; where that or bytes of it are not there, through its turn, and last at its title. */
	async row(rows: Rows, row: number, turns: ReadonlySet<number>): Promise<void> {
		const seq = rows.seq(row), before = this.hits.length;
		await this.open(Math.floor(row / rows.block));
		const record = this.records?.records[row - this.records.first] as { kind?: unknown } | undefined;
		if (!record) this.missed.records++;
		const whole = record ? await this.value(seq, record.kind) : false;
		if (!whole && turns.has(seq) && this.hits.length === before) {
			await load(`run/${this.run}/turn/${seq}.json`).then((t) => this.value(seq, t, 'turn'), (e: Error) => this.miss(e));
		}
		if (this.hits.length === before) this.put(seq, rows.texts[rows.title[row]!] ?? '', 'title');
	}

	private async open(block: number): Promise<void> {
		if (block === this.block) return;
		this.block = block;
		this.records = await load<Records>(`run/${this.run}/records/${block}.json`).catch((e: Error) => this.miss(e));
	}

	private miss(e: Error): null {
		this.missed.why ||= e.message;
		return null;
	}

	/** value looks through every text of a value, and reports whether all of it was there. */
	private async value(seq: number, value: unknown, where = ''): Promise<boolean> {
		if (typeof value === 'string') this.put(seq, value, where);
		if (value === null || typeof value !== 'object' || this.full) return true;
		if (refOf(value)) return this.payload(seq, value, where);
		let whole = true;
		for (const [k, v] of Object.entries(value)) whole = (await this.value(seq, v, Array.isArray(value) ? where : k)) && whole;
		return whole;
	}

	/** payload looks through bytes; they are read once, if they do not have the text. */
	private async payload(seq: number, value: object, where: string): Promise<boolean> {
		const ref = refOf(value)!, known = this.seen.get(ref.digest), before = this.hits.length;
		if (known === 'none' || known === 'missed') return known === 'none';
		try {
			this.put(seq, new TextDecoder().decode(await bytesOf(this.run, ref)), where);
			this.seen.set(ref.digest, this.hits.length > before ? 'hit' : 'none');
			return true;
		} catch (e) {
			this.miss(e as Error);
			this.missed.payloads++;
			this.missed.bytes += ref.size;
			this.seen.set(ref.digest, 'missed');
			return false;
		}
	}

	private put(seq: number, text: string, where: string): void {
		const { at, len } = find(text, this.forms);
		if (at < 0) return;
		const from = Math.max(0, at - 60);
		this.hits.push({ run: this.run, seq, where: where.replace(/_/g, ' '), text: text.slice(from, at + len + 140), at: at - from, len });
	}
}

/** lower has letters of ASCII in lower case, as the search by a server does: every text stays as long as it is. */
const lower = (s: string): string => s.replace(/[A-Z]+/g, (x) => x.toLowerCase());

/** formsOf are a text as it reads, and as it is written in JSON. */
const formsOf = (what: string): string[] => [...new Set([what, JSON.stringify(what).slice(1, -1)])].map(lower);

/** find returns where one of the forms stands first, at -1 for nowhere. */
function find(text: string, forms: string[]): { at: number; len: number } {
	const low = lower(text), places = forms.map((f) => ({ at: low.indexOf(f), len: f.length })).filter((p) => p.at >= 0);
	return places.sort((a, b) => a.at - b.at)[0] ?? { at: -1, len: 0 };
}
