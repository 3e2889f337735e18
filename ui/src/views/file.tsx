// One file: its states over time, what made each, and what it changed.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import type { Cause, File, FileState } from '../model';
import { list } from '../data/docs';
import * as format from '../data/format';
import { place } from '../data/place';
import { stateAt, stateOf } from '../data/states';
import { DiffView } from '../parts/diffview';
import { Payload, usePayload, type Ref } from '../parts/payload';
import { Badge, Fault, Link } from '../parts/small';
import { Line, Name } from '../parts/text';

export function FileView({ id, file, at }: { id: string; file: File; at: number | null }) {
	const states = list(file.states), [picked, setPicked] = useState<{ n: number; at: number | null } | null>(null), [whole, setWhole] = useState(false);
	const n = picked && picked.at === at ? picked.n : stateAt(states.map((s) => s.at), at), state = stateOf(file, n), before = n > 0 ? states[n - 1]! : file.before;
	return <article class="record">
		<header><h2><code><Name text={file.path} most={240} /></code></h2></header>
		<ol class="states" aria-label="States of the file">
			<li class={n < 0 ? 'now' : ''}><button type="button" class="link" aria-pressed={n < 0} onClick={() => setPicked({ n: -1, at })}>before the run</button> <span class="dim">{file.before ? says(file.before) : 'nothing, or not known'}</span></li>
			{states.slice(0, 2000).map((s, i) => <li class={i === n ? 'now' : ''}>
				<button type="button" class="link num" aria-pressed={i === n} onClick={() => setPicked({ n: i, at })}>{format.instant(s.at)}</button> <span class="dim">{says(s, i > 0 ? states[i - 1]! : file.before)}</span>
				<Causes of={list(s.causes)} /> <Link to={{ view: 'run', run: place.value.run, tab: 'record', what: String(s.seq), at }} class="rec">record {s.seq}</Link>
			</li>)}
		</ol>
		<div class="bar inner">
			<div class="toggles" role="group" aria-label="How the file is shown">
				<button type="button" aria-pressed={!whole} onClick={() => setWhole(false)}>what changed</button>
				<button type="button" aria-pressed={whole} onClick={() => setWhole(true)}>whole file</button>
			</div>
		</div>
		{whole || n < 0 ? <Whole id={id} of={state} /> : <Changed id={id} before={before} state={state!} />}
	</article>;
}

function says(s: FileState, before?: FileState | null): string {
	if (s.gone) return 'deleted';
	const parts = [s.target ? `link to ${s.target}` : s.bytes ? format.bytes(s.bytes.size) : 'bytes not kept'];
	if (before && !before.gone && before.mode && before.mode !== s.mode) parts.push(`mode ${before.mode} → ${s.mode}`);
	return parts.join(', ');
}

/** Causes says why a file changed: what is recorded stands apart from what is inferred. */
export function Causes({ of }: { of: Cause[] }) {
	if (!of.length) return <span class="dim">no cause is known</span>;
	return <ul class="causes">{of.map((c) => <li class={c.recorded ? 'recorded' : 'inferred'}>
		<Badge tone={c.recorded ? 'good' : 'warn'} title={c.recorded ? 'this stands on the tape' : 'this is concluded, not recorded'}>{c.recorded ? 'recorded' : 'inferred'}</Badge>{' '}
		<Link to={{ view: 'run', run: place.value.run, tab: c.what === 'turn' ? 'turn' : 'record', what: String(c.seq) }}>{!c.title.startsWith(c.what) && `${c.what} `}<Line text={c.title} most={120} /></Link>
		{c.why && <span class="dim"> <Name text={c.why} most={200} /></span>}
	</li>)}</ul>;
}

const refOf = (s: FileState | null): Ref | null => (s && !s.gone ? s.bytes : null);

function Whole({ id, of }: { id: string; of: FileState | null }) {
	if (!of || of.gone) return <p class="dim">Nothing stood here.</p>;
	if (of.target) return <p>A symbolic link to <code><Name text={of.target} /></code></p>;
	return of.bytes ? <Payload run={id} of={of.bytes} label="file" /> : <p class="dim">Its bytes are not kept.</p>;
}

function Changed({ id, before, state }: { id: string; before: FileState | null; state: FileState }) {
	const old = usePayload(id, refOf(before)), now = usePayload(id, refOf(state));
	const error = old.error ?? now.error;
	if (error) return <Fault what={error} />;
	if ((refOf(before) && old.text === undefined) || (refOf(state) && now.text === undefined)) return <p class="dim" role="status">Reading …</p>;
	if (!state.gone && !state.bytes && !state.target) return <p class="dim">Its bytes are not kept.</p>;
	const text = (s: FileState | null, got?: string) => (s?.target && !s.gone ? `→ ${s.target}\n` : (got ?? ''));
	return <DiffView was={text(before, old.text)} is={text(state, now.text)} label="What changed in the file" />;
}
