// What stood at a path when.
import type { File, FileState } from '../model';
import { list } from './docs';

export type Mark = 'same' | 'added' | 'changed' | 'deleted' | 'absent';

/** stateAt gives the number of the state that holds at an instant, -1 for what was there before the run. */
export function stateAt(f: File, at: number | null): number {
	const states = list(f.states);
	if (at === null) return states.length - 1;
	let n = -1;
	while (n + 1 < states.length && states[n + 1]!.at <= at) n++;
	return n;
}

export const stateOf = (f: File, n: number): FileState | null => (n < 0 ? f.before : (f.states[n] ?? null));

const there = (s: FileState | null): boolean => s !== null && !s.gone;

/** markAt says what had become of a file by an instant. */
export function markAt(f: File, at: number | null): Mark {
	const n = stateAt(f, at), now = there(stateOf(f, n));
	if (n < 0) return now ? 'same' : 'absent';
	if (!now) return there(f.before) ? 'deleted' : 'absent';
	return there(f.before) ? 'changed' : 'added';
}
