// Bytes that a document names: fetched when they are looked at.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { source } from '../data/docs';
import * as format from '../data/format';
import { Json } from './json';
import { Fault } from './small';
import { Block } from './text';

export interface Ref { digest: string; size: number; text: string | null }

/** refOf is a payload of the tape: inline text, or the digest and length of bytes elsewhere. */
export function refOf(x: unknown): Ref | null {
	const p = x as { content_hash?: unknown; text?: unknown; len_bytes?: unknown } | null;
	if (!p || typeof p !== 'object' || 'kind' in p || typeof p.content_hash !== 'string') return null; // a record may have a digest of its own
	if (typeof p.text === 'string') return { digest: p.content_hash, size: p.text.length, text: p.text };
	return { digest: p.content_hash, size: Number(p.len_bytes ?? 0), text: null };
}

const binary = /[\u0000-\u0008\u000e-\u001a]|\ufffd{2}/;

export async function bytesOf(run: string, of: Ref): Promise<Uint8Array> {
	const bytes = of.text !== null ? new TextEncoder().encode(of.text) : await source.bytes(`run/${run}/payload/${of.digest}`);
	return bytes[0] === 0x1f && bytes[1] === 0x8b ? unzipped(bytes) : bytes;
}

const largest = 64 << 20; // of what is unpacked

/** unzipped unpacks what a server sent by gzip; what is none, or is cut, stays as it is. */
async function unzipped(bytes: Uint8Array): Promise<Uint8Array> {
	const reader = new Blob([bytes.slice()]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
	const parts: Uint8Array[] = [];
	let size = 0;
	try {
		for (let r = await reader.read(); !r.done && size < largest; r = await reader.read()) {
			parts.push(r.value);
			size += r.value.length;
		}
	} catch {
		if (!size) return bytes;
	}
	reader.cancel().catch(() => {});
	return new Uint8Array(await new Blob(parts.map((p) => p.slice())).arrayBuffer());
}

interface Got { bytes?: Uint8Array; text?: string; error?: string }

export function usePayload(run: string, of: Ref | null): Got {
	const [got, setGot] = useState<Got>({});
	useEffect(() => {
		let gone = false;
		setGot({});
		if (of) bytesOf(run, of).then(
			(bytes) => { if (!gone) setGot({ bytes, text: new TextDecoder().decode(bytes) }); },
			(e: Error) => { if (!gone) setGot({ error: e.message }); },
		);
		return () => { gone = true; };
	}, [run, of?.digest]);
	return got;
}

/** Payload is bytes as a form of them: JSON as fields, text, or hexadecimal. */
export function Payload({ run, of, label }: { run: string; of: Ref; label: string }) {
	const { bytes, text, error } = usePayload(run, of);
	const [raw, setRaw] = useState(false);
	if (error) return <Fault what={`${label} cannot be shown: ${error}`} />;
	if (!bytes || text === undefined) return <p class="dim" role="status">Reading {format.bytes(of.size)} …</p>;
	if (!bytes.length) return <p class="dim">empty</p>;
	const value = parsed(text), isJson = value !== undefined;
	return <div class="payload">
		<div class="tools">
			<span class="dim">{format.bytes(bytes.length)}</span>
			{isJson && <button type="button" class="link" aria-pressed={raw} onClick={() => setRaw(!raw)}>{raw ? 'fields' : 'raw'}</button>}
			<Save bytes={bytes} name={`${label.replace(/\W+/g, '-')}-${of.digest.slice(0, 12)}`} />
		</div>
		{isJson && !raw ? <Json value={value} /> : <Block text={binary.test(text.slice(0, 2000)) ? hex(bytes) : text} label={label} />}
	</div>;
}

function parsed(text: string): unknown {
	if (text.length > 4_000_000 || !/^\s*[[{]/.test(text)) return undefined;
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

function hex(bytes: Uint8Array): string {
	const lines: string[] = [];
	for (let i = 0; i < Math.min(bytes.length, 65536); i += 16) {
		const part = [...bytes.subarray(i, i + 16)];
		const left = part.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47);
		lines.push(`${i.toString(16).padStart(6, '0')}  ${left}  ${part.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : '·')).join('')}`);
	}
	if (bytes.length > 65536) lines.push(`… ${bytes.length - 65536} bytes more`);
	return lines.join('\n');
}

/** Save writes bytes to a file of the reader's. */
function Save({ bytes, name }: { bytes: Uint8Array; name: string }) {
	const save = () => {
		const a = document.createElement('a');
		a.href = URL.createObjectURL(new Blob([bytes.slice()], { type: 'application/octet-stream' }));
		a.download = name;
		a.click();
		setTimeout(() => URL.revokeObjectURL(a.href), 10000);
	};
	return <button type="button" class="link" onClick={save}>save</button>;
}
