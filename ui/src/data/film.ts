// What a terminal showed: the records of terminal.json (package cassette/picture says what each is), and the screen at an instant.

export interface Style { fg: number; bg: number; under: number; attr: number; line: number; link: string }
export interface Run { text: string; style: number; cols: number }
export interface Line { wrapped: boolean; runs: Run[] }
export interface Mark { t: number; kind: string; label: string }

export interface Screen {
	ids: number[]; // line of each row
	cursor: [row: number, col: number, shape: number, wide?: number] | 0;
	size: [rows: number, cols: number];
	title: string;
	colors: Record<string, string> | null;
}

interface More { size?: [number, number]; title?: string; colors?: Record<string, string> | null }
interface Frame { t: number; rows: number[]; cursor: Screen['cursor'] | null; more: More }

export interface Film {
	styles: Style[];
	lines: (Line | null)[];
	frames: Frame[];
	marks: Mark[];
	keys: Screen[]; // every so many frames the whole screen
	end: number; // ms
	largest: [rows: number, cols: number];
}

const every = 64;

export function filmOf(records: unknown): Film {
	const f: Film = { styles: [], lines: [null], frames: [], marks: [], keys: [], end: 0, largest: [24, 80] };
	let size: [number, number] = [24, 80];
	for (const r of records as any[][]) {
		switch (r[0]) {
			case 0: size = [r[1].rows, r[1].cols]; f.largest = r[1].largest; break;
			case 1: f.styles.push({ fg: r[1], bg: r[2], under: r[3], attr: r[4], line: r[5], link: r[6] ?? '' }); break;
			case 2: f.lines.push(lineOf(r)); break;
			case 3: f.frames.push({ t: r[1], rows: r[3], cursor: r[4], more: r[5] ?? {} }); break;
			case 4: f.marks.push({ t: r[1], kind: r[2], label: r[3] }); break;
			case 6: f.end = r[1]; break;
		}
	}
	let s: Screen = { ids: [], cursor: 0, size, title: '', colors: null };
	f.frames.forEach((frame, i) => {
		s = step(s, frame);
		if (i % every === 0) f.keys.push({ ...s, ids: s.ids.slice() });
	});
	return f;
}

function lineOf(r: any[]): Line {
	const runs: Run[] = [];
	for (let i = 2; i < r.length; i += 3) runs.push({ text: r[i], style: r[i + 1], cols: r[i + 2] || [...r[i]].length });
	return { wrapped: r[1] === 1, runs };
}

function step(s: Screen, f: Frame): Screen {
	const m = f.more, ids = m.size ? s.ids.slice(0, m.size[0]) : s.ids;
	for (let i = 0; i < f.rows.length; i += 2) ids[f.rows[i]!] = f.rows[i + 1]!;
	return { ids, cursor: f.cursor ?? s.cursor, size: m.size ?? s.size, title: m.title ?? s.title, colors: m.colors === undefined ? s.colors : m.colors };
}

/** frameAt gives the last frame that is not after an instant, 0 for before the first. */
export function frameAt(f: Film, t: number): number {
	let lo = 0, hi = f.frames.length - 1;
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (f.frames[mid]!.t <= t) lo = mid;
		else hi = mid - 1;
	}
	return Math.max(0, lo);
}

export function screenAt(f: Film, frame: number): Screen | null {
	const key = Math.floor(frame / every), first = f.keys[key];
	if (!first) return null;
	let s: Screen = { ...first, ids: first.ids.slice() };
	for (let i = key * every + 1; i <= frame; i++) s = step(s, f.frames[i]!);
	return s;
}
