// What cannot be read, or is not here, and why.
import { h } from 'preact';
import type { Absent, Problem } from '../model';
import { list } from '../data/docs';
import * as format from '../data/format';
import { Name } from '../parts/text';

export function Problems({ of, absent }: { of: Problem[] | null; absent?: Absent[] | null }) {
	const bad = list(of), left = list(absent);
	if (!bad.length && !left.length) return null;
	return <div class="problems">
		{bad.length > 0 && <details class="fault" open={bad.length < 4}>
			<summary>{format.plural(bad.length, 'problem')} of this recording</summary>
			<ul>{bad.slice(0, 200).map((p) => <li>{p.path && <code><Name text={p.path} /></code>} <Name text={p.what} /></li>)}</ul>
		</details>}
		{left.length > 0 && <details class="note">
			<summary>{format.plural(left.length, 'document')} left out of this file, {format.bytes(left.reduce((n, a) => n + a.size, 0))}</summary>
			<ul>{left.slice(0, 200).map((a) => <li><code><Name text={a.path} most={60} /></code> {format.bytes(a.size)}: <Name text={a.why} /></li>)}</ul>
		</details>}
	</div>;
}
