// What a timeline looks like: one pass over the records that are seen, at most one mark a pixel and lane.
import * as format from '../data/format';
import { flags, type Rows } from '../data/rows';
import { dark } from '../parts/theme';
import { from, type Band, type Bands } from './lanes';

export const axis = 22, band = 18; // pixels high

export interface Scene {
	rows: Rows;
	bands: Bands;
	from: number; // ms
	to: number;
	width: number; // pixels
	height: number;
	chosen: number; // a row of the index, -1 for none
	first: number; // that of the first divergence
	over: number;
	at: number | null; // the instant that is pointed at
}

/** gutter is the room of the lanes' names. */
export const gutter = (width: number): number => Math.round(Math.min(170, width * 0.22));

type Colors = Record<string, string>;
const names = ['bg', 'surface', 'line', 'text', 'dim', 'accent', 'bad', 'chosen', 'model', 'tool', 'http', 'process', 'file', 'network', 'terminal', 'clock', 'other'];

/** colors are those of the style sheet, as a canvas wants them; they change with the theme alone. */
function colors(of: Element): Colors {
	if (known?.dark === dark.peek()) return known.colors;
	const probe = document.createElement('i'), out: Colors = {};
	of.parentElement!.append(probe);
	for (const n of names) {
		probe.style.color = `var(--${n})`;
		out[n] = getComputedStyle(probe).color;
	}
	out.font = getComputedStyle(probe).fontFamily;
	probe.remove();
	known = { dark: dark.peek(), colors: out };
	return out;
}

let known: { dark: boolean; colors: Colors } | null = null;

/** base draws all but what is pointed at, which changes more often, on a canvas that is not shown. */
export function base(shown: HTMLCanvasElement, s: Scene): HTMLCanvasElement {
	const canvas = document.createElement('canvas'), dpr = devicePixelRatio || 1, c = colors(shown), g = canvas.getContext('2d')!;
	canvas.width = Math.round(s.width * dpr);
	canvas.height = Math.round(s.height * dpr);
	g.scale(dpr, dpr);
	g.fillStyle = c.bg!;
	g.fillRect(0, 0, s.width, s.height);
	const { left, x } = measure(s);
	grid(g, c, s, x, left);
	s.bands.all.forEach((b, i) => lane(g, c, s, b, axis + i * band, x, left));
	labels(g, c, s, left);
	return canvas;
}

export function draw(canvas: HTMLCanvasElement, below: HTMLCanvasElement, s: Scene): void {
	const dpr = devicePixelRatio || 1, g = canvas.getContext('2d')!, { left, x } = measure(s);
	if (canvas.width !== below.width || canvas.height !== below.height) {
		canvas.width = below.width;
		canvas.height = below.height;
		canvas.style.width = `${s.width}px`;
		canvas.style.height = `${s.height}px`;
	}
	g.setTransform(1, 0, 0, 1, 0, 0);
	g.drawImage(below, 0, 0);
	g.scale(dpr, dpr);
	pointers(g, colors(canvas), s, x, left);
}

function measure(s: Scene): { left: number; x: X } {
	const left = gutter(s.width);
	return { left, x: (ms) => left + ((ms - s.from) / (s.to - s.from)) * (s.width - left) };
}

type X = (ms: number) => number;

function grid(g: CanvasRenderingContext2D, c: Colors, s: Scene, x: X, left: number): void {
	const span = s.to - s.from, room = Math.max(1, Math.floor((s.width - left) / 90));
	const rough = span / room, ten = 10 ** Math.floor(Math.log10(rough));
	const step = Math.max(1, ten * ([1, 2, 5, 10].find((m) => m * ten >= rough) ?? 10));
	g.fillStyle = c.surface!;
	g.fillRect(0, 0, s.width, axis);
	g.font = `11px ${c.font}`;
	g.textBaseline = 'middle';
	for (let t = Math.ceil(s.from / step) * step; t < s.to; t += step) {
		g.fillStyle = c.line!;
		g.fillRect(Math.round(x(t)), 0, 1, s.height);
		g.fillStyle = c.dim!;
		if (x(t) < s.width - 110) g.fillText(format.instant(t, step < 10 ? 3 : step < 1000 ? 2 : 0), x(t) + 8, axis / 2 + 1); // beside a sign
	}
	g.fillStyle = c.line!;
	g.fillRect(0, axis - 1, s.width, 1);
}

function lane(g: CanvasRenderingContext2D, c: Colors, s: Scene, b: Band, y: number, x: X, left: number): void {
	const r = s.rows;
	let until = -1, marked = -1; // the pixels that are drawn up to
	for (let i = from(b, r, s.from); i < b.rows.length; i++) {
		const row = b.rows[i]!, at = r.start[row]!;
		if (at > s.to) break;
		const x0 = Math.max(left, x(at)), x1 = Math.max(x0 + 2, Math.min(s.width, x(at + r.took[row]!))), end = Math.floor(x1);
		if (x1 <= left) continue;
		if (end > until) {
			const begin = Math.max(x0, until), gap = x1 - x0 > 5 && x0 >= until ? 1 : 0;
			g.fillStyle = c[b.group] ?? c.other!;
			g.fillRect(begin, y + 4, x1 - begin - gap, band - 8);
			until = end;
		}
		if (r.flag[row]! & flags.failed && end > marked) { // a line below what failed
			g.fillStyle = c.bad!;
			g.fillRect(x0, y + band - 4, Math.max(3, x1 - x0 - 1), 3);
			marked = end;
		}
	}
}

function labels(g: CanvasRenderingContext2D, c: Colors, s: Scene, left: number): void {
	g.fillStyle = c.bg!;
	g.fillRect(0, axis, left, s.height - axis);
	g.save();
	g.beginPath();
	g.rect(0, axis, left - 8, s.height);
	g.clip();
	s.bands.all.forEach((b, i) => {
		const y = axis + i * band + band / 2;
		g.fillStyle = c[b.group] ?? c.other!;
		g.fillRect(12, y - 4, 8, 8);
		g.fillStyle = c.text!;
		g.fillText(b.title, 26, y + 1);
	});
	g.restore();
	g.fillStyle = c.line!;
	g.fillRect(left - 1, 0, 1, s.height);
}

function pointers(g: CanvasRenderingContext2D, c: Colors, s: Scene, x: X, left: number): void {
	for (const [row, color, wide] of [[s.over, c.text!, 1], [s.first, c.bad!, 2], [s.chosen, c.accent!, 2]] as const) {
		if (row < 0) continue;
		const i = s.bands.of(row);
		const x0 = x(s.rows.start[row]!), x1 = Math.max(x0 + 2, x(s.rows.start[row]! + s.rows.took[row]!));
		if (i < 0 || x1 < left || x0 > s.width) continue;
		g.strokeStyle = color;
		g.lineWidth = wide;
		g.strokeRect(Math.max(left, x0) - 1.5, axis + i * band + 2.5, x1 - Math.max(left, x0) + 3, band - 5);
		if (row === s.first) mark(g, color, x0, '≠');
	}
	if (s.at !== null && x(s.at) >= left) {
		g.fillStyle = c.accent!;
		g.fillRect(Math.round(x(s.at)), 0, 1.5, s.height);
		mark(g, c.accent!, x(s.at), '▾');
	}
}

function mark(g: CanvasRenderingContext2D, color: string, x: number, sign: string): void {
	g.fillStyle = color;
	g.font = 'bold 13px sans-serif';
	g.fillText(sign, x - 4.5, axis - 7);
}
