// Two texts as the difference between them.
import { h } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import * as format from '../data/format';
import { diff, hunks, words, type Change } from './diff';
import { Line } from './text';

const most = 2_000_000; // characters of a text that is compared

export function DiffView({ was, is, label }: { was: string; is: string; label: string }) {
	const [around, setAround] = useState(3), [room, setRoom] = useState(1500);
	const changes = useMemo(() => (was.length + is.length > 2 * most ? null : diff(was, is)), [was, is]);
	if (!changes) return <p class="dim">These texts are too long to be compared here: {format.bytes(was.length)} and {format.bytes(is.length)}.</p>;
	const added = changes.filter((c) => c.op === '+').length, gone = changes.filter((c) => c.op === '-').length;
	if (!added && !gone) return <p class="dim">Nothing differs in the lines.</p>;
	let n = 0;
	return <div>
		<p class="dim"><span class="good">+{format.count(added)}</span> <span class="bad">−{format.count(gone)}</span> {format.plural(added + gone, 'line')}</p>
		<div class="diff" role="region" tabIndex={0} aria-label={label}>
			{hunks(changes, around).map((part) => typeof part === 'number'
				? <button type="button" class="gap" onClick={() => setAround(1e9)}>{format.plural(part, 'line')} the same</button>
				: part.map((c) => (n++ < room ? <Row of={c} /> : null)))}
			{n > room && <button type="button" class="gap" onClick={() => setRoom(room + 20000)}>{format.plural(n - room, 'line')} more</button>}
		</div>
	</div>;
}

const said = { ' ': '', '+': 'added', '-': 'removed' };

function Row({ of: c }: { of: Change }) {
	return <div class={`line ${c.op === '+' ? 'added' : c.op === '-' ? 'gone' : ''}`}>
		<span class="at">{c.old || ''}</span><span class="at">{c.now || ''}</span><span class="sign">{c.op}{c.op !== ' ' && <span class="hidden">{said[c.op]}</span>}</span>
		<code><Line text={c.text} most={2000} /></code>
	</div>;
}

/** Words is two short texts, each with what the other has not marked in it. */
export function Words({ was, is }: { was: string; is: string }) {
	const changes = useMemo(() => words(was, is), [was, is]);
	const side = (op: '-' | '+') => changes.filter((c) => c.op === ' ' || c.op === op).map((c) => (c.op === ' ' ? <Line text={c.text} most={2000} />
		: op === '-' ? <del><Line text={c.text} most={2000} /></del> : <ins><Line text={c.text} most={2000} /></ins>));
	return <div class="pair">
		<p class="was"><span class="hidden">recorded: </span><code>{side('-')}</code></p>
		<p class="is"><span class="hidden">replayed: </span><code>{side('+')}</code></p>
	</div>;
}
