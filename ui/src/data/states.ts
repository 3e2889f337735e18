// What stood at a path when.
import type { File, FileState, Files } from '../model';

export type Mark = 'same' | 'added' | 'changed' | 'deleted' | 'absent';

/** FileRow is a path, and how many bytes stood there when, as in Files. */
export interface FileRow {
	path: string;
	before: number;
	at: number[]; // of each change, ms after the start
	size: number[]; // from then on
}

const known = new WeakMap<Files, FileRow[]>();

/** fileRows are the rows of a list, made once. */
export function fileRows(x: Files): FileRow[] {
	let rows = known.get(x);
	if (!rows) known.set(x, (rows = build(x)));
	return rows;
}

function build(x: Files): FileRow[] {
	const counts = x.count ?? [], more = x.at ?? [], sizes = x.size ?? [];
	let from = 0, now = 0;
	return (x.path ?? []).map((path, i) => {
		const to = from + counts[i]!, at = more.slice(from, to).map((ms) => (now += ms)), size = sizes.slice(from, to);
		from = to;
		return { path, before: x.before![i]!, at, size };
	});
}

/** stateAt gives the number of the state that holds at an instant, -1 for what was there before the run. */
export function stateAt(times: number[], at: number | null): number {
	if (at === null) return times.length - 1;
	let n = -1;
	while (n + 1 < times.length && times[n + 1]! <= at) n++;
	return n;
}

export const stateOf = (f: File, n: number): FileState | null => (n < 0 ? f.before : (f.states[n] ?? null));

const none = -1; // bytes

/** sizeAt is how many bytes stood there at an instant, less than 0 where there were none, or they are not kept. */
export function sizeAt(f: FileRow, at: number | null): number {
	const n = stateAt(f.at, at);
	return n < 0 ? f.before : f.size[n]!;
}

/** markAt says what had become of a file by an instant. */
export function markAt(f: FileRow, at: number | null): Mark {
	const now = sizeAt(f, at) !== none, was = f.before !== none;
	if (stateAt(f.at, at) < 0) return now ? 'same' : 'absent';
	if (!now) return was ? 'deleted' : 'absent';
	return was ? 'changed' : 'added';
}
