// One turn of a model: what was said before, what is new, the answer, how it came.
import { h, type ComponentChild } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Chunk, Message, Part, Payload as Raw, Tool, Turn, TurnRow } from '../model';
import { list, load } from '../data/docs';
import * as format from '../data/format';
import { Json } from '../parts/json';
import { Payload } from '../parts/payload';
import { Badge, Facts, Fault } from '../parts/small';
import { Block, Line, Name } from '../parts/text';

const path = (id: string, seq: number) => `run/${id}/turn/${seq}.json`;

/** Known is what the index knows of a turn. */
const Known = ({ of: t, provider = '', stop = '' }: { of: TurnRow; provider?: string; stop?: string }) => <Facts of={[
	['model', <Line text={t.model} most={80} />], ['provider', provider && <Line text={provider} />], ['latency', format.span(t.latency)],
	['tokens', <span>{format.count(t.input_tokens)} in{t.cached_tokens > 0 && ` (${format.count(t.cached_tokens)} cached)`}, {format.count(t.output_tokens)} out</span>],
	['cost', t.cost_usd == null ? '' : format.cost(t.cost_usd)], ['stopped', stop && <Line text={stop} />],
]} />;

/** First is how a turn begins that cannot be read, and why it cannot. */
const First = ({ of: t, why }: { of: TurnRow; why: string }) => <div>
	{([['user', t.prompt], ['assistant', t.answer || t.tools?.map((x) => `calls ${x}`).join(', ')]] as const).map(([role, text]) => text && <section class={`said ${role}`}><h3>{role} <span class="dim">the first words</span></h3><Block text={text} prose /></section>)}
	<p class="missed" role="status">What else was said is missing: <Name text={why} most={400} /></p>
</div>;

/** TurnWithout is a turn whose document is not there. */
export const TurnWithout = ({ of, why }: { of: TurnRow; why: string }) => <div class="turn"><Known of={of} /><First of={of} why={why} /></div>;

export function TurnView({ id, turn: t }: { id: string; turn: Turn }) {
	const unread = t.error !== '' && !t.said && !list(t.messages).length && !t.keep;
	return <div class="turn">
		<Known of={t} provider={t.provider} stop={t.stop} />
		{unread ? <First of={t} why={t.error} /> : t.error && <Fault what={t.error} />}
		<Before id={id} turn={t} />
		{list(t.messages).map((m) => <Said of={m} />)}
		{t.said && <Said of={t.said} answer />}
		{list(t.chunks).length > 0 && <Chunks of={list(t.chunks)} took={t.latency} />}
		<Raws id={id} request={t.request} response={t.response} />
	</div>;
}

/** Before is what a turn repeats of those before it: system, tools, messages; folded, for it was read there. */
function Before({ id, turn: t }: { id: string; turn: Turn }) {
	return <div>
		{(t.system !== null || t.previous !== null) && <Folded title="System" note={t.system === null ? 'as in the turn before' : format.bytes(t.system.length)}>
			{() => <Chased id={id} turn={t} find={(x) => x.system} show={(s) => <Block text={s} prose />} />}
		</Folded>}
		{(list(t.declared).length > 0 || t.same_declared) && <Folded title="Tools" note={t.same_declared ? 'as in the turn before' : format.count(list(t.declared).length)}>
			{() => <Chased id={id} turn={t} find={(x) => (x.same_declared ? null : list(x.declared))} show={(d) => <Declared of={d} />} />}
		</Folded>}
		{list(t.params).length > 0 && <Folded title="Parameters" note={list(t.params).map((p) => p.name).join(', ').slice(0, 80)}>
			{() => <dl class="json">{list(t.params).map((p) => <div><dt><Line text={p.name} /></dt><dd><Json value={p.value} /></dd></div>)}</dl>}
		</Folded>}
		{t.keep > 0 && <Folded title={format.plural(t.keep, 'earlier message')} note={t.previous === null ? '' : 'said in the turns before'}>
			{() => <Earlier id={id} turn={t} />}
		</Folded>}
	</div>;
}

/** Folded makes what is in it when it is opened. */
function Folded({ title, note, children }: { title: string; note: string; children: () => ComponentChild }) {
	const [open, setOpen] = useState(false);
	return <details class="section" onToggle={(e) => setOpen(e.currentTarget.open)}><summary>{title} <span class="dim"><Line text={note} /></span></summary>{open && children()}</details>;
}

interface Coming<T> { value?: T; error?: string }

function useComing<T>(make: () => Promise<T>, of: unknown): Coming<T> {
	const [got, setGot] = useState<Coming<T>>({});
	useEffect(() => {
		let gone = false;
		make().then((value) => { if (!gone) setGot({ value }); }, (e: Error) => { if (!gone) setGot({ error: e.message }); });
		return () => { gone = true; };
	}, [of]);
	return got;
}

/** Chased looks for what a turn has of the turns before it. */
function Chased<T>({ id, turn, find, show }: { id: string; turn: Turn; find: (t: Turn) => T | null; show: (x: T) => ComponentChild }) {
	const { value, error } = useComing(async () => {
		let t = turn, found = find(t);
		for (let n = 0; found === null && t.previous !== null && n < 10000; n++) {
			t = await load<Turn>(path(id, t.previous));
			found = find(t);
		}
		return { found };
	}, turn);
	if (error) return <Fault what={error} />;
	if (!value) return <p class="dim">Reading …</p>;
	return value.found === null ? <p class="dim">none</p> : <div>{show(value.found)}</div>;
}

/** earlier gives the first messages of a turn, which stand in those before it. */
async function earlier(id: string, turn: Turn): Promise<Message[]> {
	const chain: Turn[] = [turn];
	for (let t = turn; t.keep > 0 && t.previous !== null; chain.push(t)) t = await load<Turn>(path(id, t.previous));
	let all: Message[] = [];
	for (const t of chain.reverse()) {
		if (t === turn) return all.slice(0, t.keep);
		all = [...all.slice(0, t.keep), ...list(t.messages), ...(t.said ? [t.said] : [])];
	}
	return all;
}

function Earlier({ id, turn }: { id: string; turn: Turn }) {
	const { value, error } = useComing(() => earlier(id, turn), turn);
	if (error) return <Fault what={error} />;
	return value ? <div>{value.map((m) => <Said of={m} />)}</div> : <p class="dim">Reading …</p>;
}

function Declared({ of }: { of: Tool[] }) {
	return <div>{of.map((t) => <details class="tool"><summary><code><Line text={t.name} most={100} /></code> <span class="dim"><Line text={t.description.split('\n')[0] ?? ''} most={160} /></span></summary>
		<Block text={t.description} prose /><Json value={t.schema} />
	</details>)}</div>;
}

export function Said({ of, answer = false }: { of: Message; answer?: boolean }) {
	return <section class={`said ${['system', 'user', 'assistant', 'tool'].includes(of.role) ? of.role : 'other'} ${answer ? 'answer' : ''}`}>
		<h3><Line text={of.role} most={40} />{answer && <span class="dim"> answers</span>}</h3>
		{list(of.parts).map((p) => <PartView of={p} />)}
	</section>;
}

const signs: [string, RegExp][] = [['png', /^\x89PNG/], ['jpeg', /^\xff\xd8\xff/], ['gif', /^GIF8/], ['webp', /^RIFF[^]{4}WEBP/]];

/** imageOf is a whole image of a kind that can do nothing but be seen, by its own first bytes; '' for others. */
function imageOf(p: Part): string {
	if (p.more || !/^[A-Za-z0-9+/]{16}[A-Za-z0-9+/]*=*$/.test(p.text)) return '';
	const head = atob(p.text.slice(0, 16)), kind = signs.find(([, sign]) => sign.test(head))?.[0];
	return kind ? `data:image/${kind};base64,${p.text}` : '';
}

function PartView({ of: p }: { of: Part }) {
	const more = p.more > 0 && <p class="dim">{format.bytes(p.more)} more stand in the raw bytes</p>;
	switch (p.type) {
		case 'text': return <div><Block text={p.text} prose />{more}</div>;
		case 'thinking': return <details class="thinking"><summary>thought <span class="dim">{format.bytes(p.text.length)}</span></summary><Block text={p.text} prose />{more}</details>;
		case 'call': return <div class="call"><h4>calls <code><Name text={p.name} most={100} /></code> <span class="dim id"><Line text={p.id} most={40} /></span></h4>{p.args == null ? p.text && <Block text={p.text} /> : <Json value={p.args} />}{more}</div>;
		case 'result': return <div class="result"><h4>{p.name ? <code><Name text={p.name} most={100} /></code> : 'a tool'} gives {p.fail && <Badge tone="bad">failed</Badge>} <span class="dim id"><Line text={p.id} most={40} /></span></h4><Block text={p.text} />{more}</div>;
		case 'image': return imageOf(p) ? <img class="image" src={imageOf(p)} alt={`image, ${format.bytes((p.text.length * 3) / 4)}`} /> : <p class="dim">image <Line text={p.mime} most={60} />{p.more > 0 && `, ${format.bytes(p.more)}`}</p>;
		default: return <div><Block text={p.text} />{more}</div>;
	}
}

/** Chunks is a streamed answer on its times: how much had come when, and what each piece added. */
function Chunks({ of, took }: { of: Chunk[]; took: number }) {
	const end = Math.max(took, of[of.length - 1]!.at, 1), most = Math.max(...of.map((c) => c.size), 1);
	return <details class="section"><summary>{format.plural(of.length, 'chunk')} <span class="dim">first after {format.span(of[0]!.at)}, last after {format.span(of[of.length - 1]!.at)}</span></summary>
		<div class="chunks" aria-hidden="true">{of.slice(0, 1500).map((c) => <i style={{ left: `${(100 * c.at) / end}%`, height: `${8 + (92 * c.size) / most}%` }} />)}</div>
		<ol class="pieces" tabIndex={0}>{of.slice(0, 500).map((c) => <li><span class="num">{format.instant(c.at)}</span> <span class="num dim">{format.bytes(c.size)}</span> {c.text ? <Line text={c.text} /> : <span class="dim">–</span>}</li>)}
			{of.length > 500 && <li class="dim">{of.length - 500} more</li>}</ol>
	</details>;
}

function Raws({ id, request, response }: { id: string; request: Raw | null; response: Raw | null }) {
	const one = (of: Raw | null, title: string) => of && <Folded title={title} note={format.bytes(of.size)}>{() => <Payload run={id} of={of} label={title} />}</Folded>;
	return <div>{one(request, 'Raw request')}{one(response, 'Raw response')}</div>;
}
