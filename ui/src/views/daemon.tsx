// The runs of a daemon, turn by turn, and what waits there for a person.
import { h } from 'preact';
import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import type { DaemonField, DaemonIntent, DaemonRun, DaemonTrace, DaemonTurn, DaemonView as View, Library } from '../model';
import { again, doc, list } from '../data/docs';
import * as format from '../data/format';
import { go } from '../data/place';
import { post } from '../data/source';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Badge, Empty, Facts, Fault, Link, Section, Wait, type Tone } from '../parts/small';
import { Block, Line, Name } from '../parts/text';

const chosen = signal('');

export function DaemonView({ what, library }: { what: string; library: Library }) {
	if (what) return <Wait of={doc<DaemonTrace>(`daemon/run/${what}.json`)}>{(t) => <Trace of={t} library={library} />}</Wait>;
	return <Wait of={doc<View>('daemon.json')}>{(view) => <Runs of={view} />}</Wait>;
}

const toneOf = (r: DaemonRun): Tone => (r.status === 'in_progress' ? 'calm' : r.status === 'completed' ? 'good' : 'warn');

function Runs({ of: view }: { of: View }) {
	const runs = list(view.runs), at = runs.findIndex((r) => r.id === chosen.value);
	const move = (by: number) => { chosen.value = runs[Math.max(0, Math.min(runs.length - 1, at + by))]?.id ?? ''; };
	const open = (i: number) => { if (runs[i]) go({ view: 'daemon', what: runs[i]!.id }); };
	useKeys([
		{ key: 'j', does: 'next', act: () => move(1) },
		{ key: 'k', does: 'previous', act: () => move(-1) },
		{ key: 'Enter', does: 'open', act: () => open(at) },
	]);
	return <div class="runs daemon">
		<h1 class="hidden">Runs of the daemon</h1>
		<p class="bar dim"><Line text={view.name} /> {format.plural(runs.length, 'run')}</p>
		{view.error && <Fault what={view.error} />}
		<Waiting intents={list(view.intents)} />
		{runs.length
			? <VirtualList label="Runs" id="trace" class="fill" count={runs.length} chosen={at} row={(i) => <Row run={runs[i]!} />} onChoose={(i) => { chosen.value = runs[i]!.id; }} onOpen={open} />
			: !view.error && <Empty title="No runs here">An agent starts one with <code>runs.start</code>, or <code>tapedeck record --daemon</code>.</Empty>}
	</div>;
}

function Row({ run }: { run: DaemonRun }) {
	return <div class="trace-row">
		<span><Badge tone={toneOf(run)}>{run.status.replace('_', ' ')}</Badge></span>
		<span class="name"><strong><Line text={run.intent} most={160} /></strong> <span class="dim"><Line text={run.agent} most={60} /></span></span>
		<span class="num" title="turns">{format.count(run.turns)}</span>
		<span class="num" title="took">{run.ended ? format.span(run.ended - run.started) : '…'}</span>
		<span class="when">{format.date(run.started).slice(0, 16)}</span>
	</div>;
}

const seen = new Map<string, DaemonIntent>(); // in the order in which they came, what has ended too

/** Waiting is what a person is to decide; of parameters the names are known and nothing more. What has ended stays in its place until the
 * person says so, for else the next would come to lie under the hand that was about to decide it. */
function Waiting({ intents }: { intents: DaemonIntent[] }) {
	const [, show] = useState(0);
	for (const i of intents) seen.set(i.id, i);
	if (!seen.size) return null;
	const waits = new Set(intents.map((i) => i.id));
	const clear = () => {
		for (const id of seen.keys()) if (!waits.has(id)) seen.delete(id);
		show((n) => n + 1);
	};
	return <Section title="Waiting for a decision" note={format.count(intents.length)} level={2}>
		{[...seen.values()].map((i) => <Intent key={i.id} of={i} over={!waits.has(i.id)} />)}
		{seen.size > waits.size && <button type="button" onClick={clear}>Put away what is decided</button>}
	</Section>;
}

function Intent({ of, over }: { of: DaemonIntent; over: boolean }) {
	const [reason, setReason] = useState(''), [fault, setFault] = useState(''), [sent, setSent] = useState(false), [said, setSaid] = useState('');
	const decide = (kind: string, done: string) => {
		setSent(true);
		post('daemon/decide', { intent_id: of.id, decision: { kind, reason } }).then(() => { setFault(''); setSaid(done); }, (e: Error) => setFault(e.message)).finally(() => {
			setSent(false);
			again((p) => p === 'daemon.json');
		});
	};
	const tools = list(of.actions).map((a) => a.tool).join(', ');
	return <article class={`intent ${over ? 'over' : ''}`} aria-label={`${of.agent}: ${tools}`}>
		<p><strong><Line text={of.agent} most={80} /></strong> wants {list(of.actions).map((a) => <code><Line text={`${a.tool}(${list(a.keys).join(', ')})`} most={200} title /></code>)} <span class="dim">denied unless somebody decides before {format.date(of.deadline).slice(11)}</span></p>
		{of.reason && <p class="dim"><Line text={`${list(of.policies).join(', ')}: ${of.reason}`} /></p>}
		{of.escalated && <p class="dim"><Line text={of.escalated} /></p>}
		{over ? <p role="status">{said || 'decided elsewhere, or its time is over'}</p> : <div class="bar">
			<button type="button" disabled={sent} onClick={() => decide('allow', 'allowed')}>Allow</button>
			<button type="button" disabled={sent} onClick={() => decide('deny', 'denied')}>Deny</button>
			<button type="button" disabled={sent} onClick={() => decide('escalate', '')}>Leave to somebody else</button>
			<input type="text" aria-label="Reason" placeholder="Reason" value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
			{of.run && <Link to={{ view: 'daemon', what: of.run }}>its run</Link>}
		</div>}
		{fault && <Fault what={fault} />}
	</article>;
}

function Trace({ of: { run, recording, outcome, turns }, library }: { of: DaemonTrace; library: Library }) {
	const kept = library.runs.find((r) => recording && (r.id === recording || r.name.startsWith(recording)));
	return <div class="about trace" tabIndex={0} role="region" aria-label="A run of the daemon">
		<h1><Line text={run.intent || run.id} most={200} /></h1>
		<Facts of={[
			['agent', <Line text={run.agent} />], ['status', <Badge tone={toneOf(run)}>{run.status.replace('_', ' ')}</Badge>], ['outcome', outcome && <Line text={outcome} />],
			['started', format.date(run.started)], ['took', run.ended ? format.span(run.ended - run.started) : ''], ['turns', format.count(run.turns)],
			['recording', kept ? <Link to={{ run: kept.id }}><Line text={kept.name} /></Link> : recording && <Line text={recording} />],
		]} />
		{list(turns).map((x) => <Turn key={x.index} of={x} />)}
	</div>;
}

function Turn({ of: t }: { of: DaemonTurn }) {
	return <section class={`said ${t.bad ? 'bad' : 'tool'}`}>
		<h2>{t.index} <Name text={t.tool || 'no tool'} most={100} /> {t.mark && <Badge tone={t.bad ? 'bad' : 'good'}>{t.mark}</Badge>}</h2>
		{t.prompt && <Block text={t.prompt} prose />}
		<Fields of={list(t.params)} title="Parameters" turn={t.index} />
		{t.why && <Fault what={t.why} />}
		<Fields of={list(t.output)} title="Output" turn={t.index} />
	</section>;
}

function Fields({ of, title, turn }: { of: DaemonField[]; title: string; turn: number }) {
	if (!of.length) return null;
	return <div><h3 class="dim">{title}</h3>{of.map((f) => <div>
		{f.name && <p><code><Name text={f.name} most={100} /></code></p>}
		<Block text={f.text} label={`${title} of turn ${turn} ${f.name}`} />
		{f.size > f.text.length && <p class="dim">{format.bytes(f.size)} in all</p>}
	</div>)}</div>;
}
