// What stood at a path when.
import type { File, FileRow, FileState } from '../model';

export type Mark = 'same' | 'added' | 'changed' | 'deleted' | 'absent';

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
