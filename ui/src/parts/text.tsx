// Text of recordings: never markup, what is invisible in it shown, cut where it is long.
import { h, Fragment, type ComponentChild } from 'preact';
import { useState } from 'preact/hooks';
import { bytes } from '../data/format';

// Control characters, directions, what takes no room, tags: each may make a text look like another.
const hidden =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function symbol(c: string): string {
	const code = c.codePointAt(0)!;
	if (code < 32) return String.fromCharCode(0x2400 + code);
	return code === 127 ? '␡' : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** plain is a text for a place that holds no elements: a title, a canvas. */
export const plain = (s: string, most = 300): string =>
	(s.length > most ? s.slice(0, most) + '…' : s).replace(hidden, symbol).replace(/[\n\t]/g, ' ');

function shown(s: string): ComponentChild[] {
	const out: ComponentChild[] = [];
	let last = 0;
	for (const m of s.matchAll(hidden)) {
		out.push(s.slice(last, m.index), <span class="ctl">{symbol(m[0])}</span>);
		last = m.index + m[0].length;
	}
	out.push(s.slice(last));
	return out;
}

/** Line is a text in a line, cut at the end of its room; line ends in it are shown. */
export function Line({ text, most = 300, title }: { text: string; most?: number; title?: boolean }) {
	const cut = text.length > most;
	return <bdi class="text" title={title || cut ? plain(text, 2000) : undefined}>
		{shown((cut ? text.slice(0, most) : text).replace(/\r?\n/g, '↵'))}{cut && '…'}
	</bdi>;
}

/** Name is a name in full: a long one is cut, with a way to see all of it. */
export function Name({ text, most = 300 }: { text: string; most?: number }) {
	const [all, setAll] = useState(false);
	if (all || text.length <= most) return <bdi class="text whole">{shown(text)}</bdi>;
	return <Fragment>
		<bdi class="text">{shown(text.slice(0, most))}…</bdi>{' '}
		<button type="button" class="link" onClick={() => setAll(true)}>show all ({bytes(text.length)})</button>
	</Fragment>;
}

const step = 200_000;

/** Block is a text of lines. What is long is shown in steps. */
export function Block({ text, most = 6000, prose = false, label }: { text: string; most?: number; prose?: boolean; label?: string }) {
	const [room, setRoom] = useState(most);
	const cut = text.length > room + 500;
	const part = cut ? text.slice(0, room) : text;
	return <div class="block">
		{prose ? <Prose text={part} /> : <pre class="text" tabIndex={0} role="region" aria-label={label ?? 'Text'}>{shown(part)}</pre>}
		{cut && <p class="more">
			<button type="button" class="link" onClick={() => setRoom(room + step)}>show {text.length - room > step ? `${bytes(step)} more` : 'all'}</button>
			<span class="dim"> {bytes(text.length - room)} not shown</span>
		</p>}
	</div>;
}

/** Prose is what people and models write: its fenced code is set apart, else it stands as it is. */
function Prose({ text }: { text: string }) {
	const parts = text.split(/^(```[^\n]*\n[\s\S]*?(?:^```[ \t]*$|$(?![\s\S])))/m);
	return <div class="prose text">{parts.map((p) =>
		p.startsWith('```') ? <pre class="code">{shown(p.replace(/^```[^\n]*\n/, '').replace(/\n?```[ \t]*$/, ''))}</pre> : shown(p.replace(/^\n|\n+$/g, '')),
	)}</div>;
}
