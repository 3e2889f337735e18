// The difference of two texts, line by line or word by word: Myers' way, bounded. Where two texts differ in more than it looks for, the rest is one change.

export interface Change {
	op: ' ' | '-' | '+';
	text: string;
	old: number; // number of the line, from 1; 0 where it is in the other alone
	now: number;
}

const depth = 1000; // changes that are looked for

export const diff = (was: string, is: string): Change[] => between(lines(was), lines(is));

/** words is the difference within a text, word by word. */
export const words = (was: string, is: string): Change[] => between(was.match(word) ?? [], is.match(word) ?? []);

const word = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;

function between(a: string[], b: string[]): Change[] {
	const out: Change[] = [];
	let head = 0, tail = 0;
	while (head < a.length && head < b.length && a[head] === b[head]) head++;
	while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
	const put = (op: Change['op'], i: number, j: number) => out.push({ op, text: op === '+' ? b[j]! : a[i]!, old: op === '+' ? 0 : i + 1, now: op === '-' ? 0 : j + 1 });
	for (let i = 0; i < head; i++) put(' ', i, i);
	for (const [op, i, j] of middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) put(op, i + head, j + head);
	for (let i = tail; i > 0; i--) put(' ', a.length - i, b.length - i);
	return out;
}

function lines(s: string): string[] {
	const out = s.split('\n');
	if (out[out.length - 1] === '') out.pop();
	return out;
}

type Step = [Change['op'], number, number];

function middle(a: string[], b: string[]): Step[] {
	const n = a.length, m = b.length, most = Math.min(n + m, depth), kept: Int32Array[] = [];
	const at = (v: Int32Array, k: number) => v[k + most + 1]!;
	const v = new Int32Array(2 * most + 3);
	for (let d = 0; d <= most; d++) {
		kept.push(v.slice(most + 1 - d - 1, most + 1 + d + 2));
		for (let k = -d; k <= d; k += 2) {
			let x = k === -d || (k !== d && at(v, k - 1) < at(v, k + 1)) ? at(v, k + 1) : at(v, k - 1) + 1;
			while (x < n && x - k < m && a[x] === b[x - k]) x++;
			v[k + most + 1] = x;
			if (x >= n && x - k >= m) return back(kept, d, n, m);
		}
	}
	return [...a.map((_, i): Step => ['-', i, 0]), ...b.map((_, j): Step => ['+', n, j])];
}

/** back walks from the end to the beginning along the furthest places that each number of changes reached. */
function back(kept: Int32Array[], d: number, x: number, y: number): Step[] {
	const out: Step[] = [];
	for (; d > 0; d--) {
		const v = kept[d]!, get = (k: number) => v[k + d + 1]!, k = x - y;
		const down = k === -d || (k !== d && get(k - 1) < get(k + 1)), px = down ? get(k + 1) : get(k - 1), py = px - (down ? k + 1 : k - 1);
		while (x > px + (down ? 0 : 1) && y > py + (down ? 1 : 0)) out.push([' ', --x, --y]);
		if (down) out.push(['+', x, --y]);
		else out.push(['-', --x, y]);
	}
	while (x > 0 && y > 0) out.push([' ', --x, --y]);
	return out.reverse();
}

/** hunks leaves out what is the same, but for some lines around each change; what is left out is a number of lines. */
export function hunks(changes: Change[], around = 3): (Change[] | number)[] {
	const near = new Uint8Array(changes.length);
	changes.forEach((c, i) => { if (c.op !== ' ') near.fill(1, Math.max(0, i - around), i + around + 1); });
	const out: (Change[] | number)[] = [];
	for (let i = 0; i < changes.length;) {
		let j = i;
		while (j < changes.length && near[j] === near[i]) j++;
		out.push(near[i] ? changes.slice(i, j) : j - i);
		i = j;
	}
	return out;
}
