// The index of a run, as columns of numbers.
import type { Index, Lane } from '../model';

export interface Rows {
	count: number;
	block: number;
	kinds: string[];
	lanes: Lane[];
	texts: string[];
	seq: (row: number) => number;
	rowOf: (seq: number) => number; // -1 for none
	kind: ArrayLike<number>;
	lane: ArrayLike<number>;
	start: Float64Array; // ms
	took: ArrayLike<number>;
	turn: ArrayLike<number>;
	size: ArrayLike<number>;
	flag: ArrayLike<number>;
	title: ArrayLike<number>;
	end: number; // ms
}

export const flags = { failed: 1, side: 8 };

const known = new WeakMap<Index, Rows>();

export function rowsOf(x: Index): Rows {
	let r = known.get(x);
	if (!r) known.set(x, (r = build(x)));
	return r;
}

function build(x: Index): Rows {
	const n = x.rows, start = new Float64Array(n), ints = (c: number[] | null) => Int32Array.from(c ?? []);
	const seqs = x.seq?.length ? x.seq : null;
	let at = 0, end = 1;
	for (let i = 0; i < n; i++) {
		at += x.start[i]!;
		start[i] = at;
		end = Math.max(end, at + x.took[i]!);
	}
	let places: Map<number, number> | null = null;
	const find = (seq: number) => {
		places ??= new Map(seqs!.map((s, i) => [s, i]));
		return places.get(seq) ?? -1;
	};
	return {
		count: n, block: x.block || 1, kinds: x.kinds ?? [], lanes: x.lanes ?? [], texts: x.texts ?? [],
		seq: (row) => (seqs ? seqs[row]! : row),
		rowOf: (seq) => (seqs ? find(seq) : seq >= 0 && seq < n ? seq : -1),
		kind: ints(x.kind), lane: ints(x.lane), start, took: Float64Array.from(x.took ?? []), turn: ints(x.turn),
		size: Float64Array.from(x.size ?? []), flag: ints(x.flag), title: ints(x.title), end,
	};
}

export interface Filter {
	groups: ReadonlySet<string>; // of lanes; empty for all
	flag: number; // one of these bits; 0 for all
	text: string;
}

/** filtered gives the rows that a filter leaves, null for all. */
export function filtered(r: Rows, f: Filter): Int32Array | null {
	const text = f.text.trim().toLowerCase();
	if (!f.groups.size && !f.flag && !text) return null;
	const lanes = r.lanes.map((l) => !f.groups.size || f.groups.has(l.group));
	const kinds = r.kinds.map((k) => k.toLowerCase().includes(text));
	const texts = r.texts.map((t) => t.toLowerCase().includes(text));
	const out = new Int32Array(r.count);
	let n = 0;
	for (let i = 0; i < r.count; i++) {
		if (!lanes[r.lane[i]!] || (f.flag && !(r.flag[i]! & f.flag))) continue;
		if (text && !texts[r.title[i]!] && !kinds[r.kind[i]!]) continue;
		out[n++] = i;
	}
	return out.subarray(0, n);
}
