// A JSON value as people read it: keys and values, long texts as texts, what is deep folded.
import { h } from 'preact';
import { Block, Line, Name } from './text';

const wide = 72; // characters that stand in a line

export function Json({ value, depth = 0 }: { value: unknown; depth?: number }) {
	if (typeof value === 'string') return value.length > wide || value.includes('\n') ? <Block text={value} label="Value" /> : <span class="str"><Name text={value} /></span>;
	if (value === null || typeof value !== 'object') return <span class="lit">{String(value)}</span>;
	const entries = Array.isArray(value) ? value.map((v, i) => [String(i), v] as const) : Object.entries(value);
	if (!entries.length) return <span class="lit">{Array.isArray(value) ? '[]' : '{}'}</span>;
	const text = depth > 0 ? JSON.stringify(value) : '';
	if (depth > 0 && text.length <= wide) return <span class="lit"><Line text={text} /></span>;
	const rows = <dl class="json">{entries.slice(0, 200).map(([k, v]) => <div><dt><Line text={k} most={80} /></dt><dd><Json value={v} depth={depth + 1} /></dd></div>)}
		{entries.length > 200 && <div><dt>…</dt><dd class="dim">{entries.length - 200} more, in the raw bytes</dd></div>}
	</dl>;
	if (depth < 2) return rows;
	return <details><summary><Line text={text} most={wide} /></summary>{rows}</details>;
}
