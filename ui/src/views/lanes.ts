// The rows of a timeline: lanes, those of a kind folded into one where there are many.
import type { Rows } from '../data/rows';
import { plain } from '../parts/text';

export interface Band {
	title: string;
	group: string;
	rows: Int32Array; // of the index, by their start
	longest: number; // ms that one of them took
}

const folds = 4; // so many lanes of a group stand by themselves
const order = ['model', 'tool', 'http', 'process', 'file', 'network', 'terminal', 'clock', 'other'];

/** bandsOf puts every record in a row; groups in unfolded keep all their lanes. */
export function bandsOf(r: Rows, unfolded: ReadonlySet<string>): Band[] {
	const sizes = new Map<string, number>();
	for (const l of r.lanes) sizes.set(l.group, (sizes.get(l.group) ?? 0) + 1);
	const folded = (g: string) => sizes.get(g)! > folds && !unfolded.has(g);
	const bandOf = new Int32Array(r.lanes.length), bands: Omit<Band, 'rows' | 'longest'>[] = [], known = new Map<string, number>();
	r.lanes.map((l, i) => [l, i] as const).sort((a, b) => order.indexOf(a[0].group) - order.indexOf(b[0].group) || a[1] - b[1]).forEach(([l, i]) => {
		const key = folded(l.group) ? l.group : `lane ${i}`;
		let n = known.get(key);
		if (n === undefined) {
			n = bands.push({ title: folded(l.group) ? `${l.group} (${sizes.get(l.group)})` : plain(l.title || l.name, 80), group: l.group }) - 1;
			known.set(key, n);
		}
		bandOf[i] = n;
	});
	const counts = new Int32Array(bands.length);
	for (let i = 0; i < r.count; i++) counts[bandOf[r.lane[i]!]!]!++;
	const out: Band[] = bands.map((b, n) => ({ ...b, rows: new Int32Array(counts[n]!), longest: 0 }));
	counts.fill(0);
	for (let i = 0; i < r.count; i++) {
		const n = bandOf[r.lane[i]!]!, b = out[n]!;
		b.rows[counts[n]!++] = i;
		b.longest = Math.max(b.longest, r.took[i]!);
	}
	for (const b of out) b.rows.sort((x, y) => r.start[x]! - r.start[y]! || x - y);
	return out.filter((b) => b.rows.length);
}

/** from gives the place in a band of its first record that may be seen from a time on. */
export function from(b: Band, r: Rows, at: number): number {
	let lo = 0, hi = b.rows.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (r.start[b.rows[mid]!]! < at - b.longest) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/** nearest gives the record of a band that is closest to a time, -1 beyond a distance. */
export function nearest(b: Band, r: Rows, at: number, within: number): number {
	let best = -1, least = within;
	for (let i = from(b, r, at - within); i < b.rows.length; i++) {
		const row = b.rows[i]!, start = r.start[row]!, end = start + r.took[row]!;
		if (start > at + within) break;
		const away = at < start ? start - at : at > end ? at - end : 0;
		if (away < least || (away === least && best < 0)) [best, least] = [row, away];
		if (!away && r.took[row]! < (r.took[best] ?? 0)) best = row; // the shorter of two on top of each other
	}
	return best;
}
