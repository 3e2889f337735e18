// The last replay held against its recording: what differs, field by field, and what was compared, masked, and not looked at.
import { h, type ComponentChildren } from 'preact';
import type { Report, FidelityReport, Divergence, MaskedPair, RequestRef } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { place, within } from '../data/place';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Badge, Empty, Facts, Link, Section, Wait, toneOf } from '../parts/small';
import { Split } from '../parts/split';
import { Line, Name, plain } from '../parts/text';
import { DivergenceView } from './divergence';
import type { Shown } from './run';

export function ReportView({ id, detail }: Shown) {
	if (!detail.report) return <Empty title="Not replayed yet">Replay it: <code>tapedeck replay {id}</code></Empty>;
	return <Wait of={doc<Report>(`run/${id}/report.json`)}>{(r) => r.fidelity ? <Verdict id={id} report={r} of={r.fidelity} status={detail.verdict?.status ?? ''} summary={detail.verdict?.summary ?? ''} /> : <Empty title="The replay left no report" />}</Wait>;
}

const words = (category: string) => category.replace(/_/g, ' ');

/** follows: from another divergence; one from the work tree stands for itself. */
const follows = (d: Divergence): boolean => !!d.follows && !d.follows.includes('work tree');

function Row({ d, first }: { d: Divergence; first: boolean }) {
	return <div class="divergence-row">
		<span class="num dim">{d.seq ?? '–'}</span>
		<span class="title"><b>{words(d.category)}</b> <span class="dim"><Line text={d.message} /></span></span>
		{follows(d) && !first ? <Badge tone="quiet" title={plain(d.follows ?? '')}>follows</Badge> : <span />}
	</div>;
}

function Verdict({ id, report, of: f, status, summary }: { id: string; report: Report; of: FidelityReport; status: string; summary: string }) {
	const all = list(f.divergences), { what } = place.value, n = what === '' ? -1 : Number(what), chosen = n < all.length ? n : -1;
	const choose = (i: number) => { if (i >= 0 && i < all.length) within({ tab: 'report', what: String(i) }, n >= 0); };
	useKeys([
		{ key: 'j', does: 'next divergence', act: () => choose(chosen + 1) },
		{ key: 'k', does: 'previous divergence', act: () => choose(Math.max(0, chosen - 1)) },
		{ key: 'Escape', does: 'close the divergence', act: () => within({ tab: 'report', what: '' }) },
	]);
	return <Split open={chosen >= 0} name="divergence" onClose={() => within({ tab: 'report', what: '' })}
		side={chosen >= 0 && <DivergenceView key={chosen} run={id} replay={report.replay} of={all[chosen]!} />}>
		<div class="report-side" tabIndex={0} role="region" aria-label="The verdict">
			<div class="verdict-line"><Verdicted status={status || (all.length ? 'diverged' : 'faithful')} summary={summary} /></div>
			<Facts of={[
				['replayed', format.date(report.at)], ['program', report.other ? 'another than was recorded' : ''], ['mode', f.mode], ['records', `${format.count(f.recorded_records)} recorded, ${format.count(f.replay_records)} replayed`], ['score', f.score.toFixed(3)],
				['crossed', f.crossed == null ? '' : String(f.crossed)], ['screens compared', f.screens ? format.count(f.screens) : ''], ['calls of models', f.model_calls ? format.count(f.model_calls) : ''], ['calls of tool servers', f.mcp_calls ? format.count(f.mcp_calls) : ''],
			]} />
			<Section level={2} title="Divergences" note={format.count(all.length + (f.omitted ?? 0))}>
				{all.length ? <div style={{ height: `${Math.min(all.length, 14) * 28 + 2}px` }} class="framed"><VirtualList label="Divergences" id="divergence" class="whole" count={all.length} chosen={chosen} row={(i) => <Row d={all[i]!} first={i === 0} />} onChoose={choose} /></div>
					: <p class="good">None: the replay did what was recorded.</p>}
			</Section>
			{chosen < 0 && all.length > 0 && <Section level={2} title="The first"><DivergenceView run={id} replay={report.replay} of={all[0]!} level={3} /></Section>}
			<Requests title="Asked for, not recorded" of={list(f.refused)} />
			<Requests title="Recorded, never asked for" of={list(f.unasked)} />
			<Masked id={id} pairs={list(f.masked_pairs)} more={f.more_masked_pairs ?? 0} counts={f.masked ?? {}} />
			{list(f.side).length > 0 && <Section level={2} title="Side traffic" note="nothing depends on it">{list(f.side).map((s) => <p><code><Name text={`${s.method} ${s.host}${s.path}`} most={200} /></code> <span class="dim">{s.recorded} recorded, {s.replay} replayed, {s.differ} differ</span></p>)}</Section>}
			<Texts title="Asked for and not compared" of={list(f.not_compared)} tone="bad" />
			<Texts title="Never looked at" of={list(f.not_covered)} tone="warn" />
			<Texts title="Notes" of={list(f.notes)} tone="" />
		</div>
	</Split>;
}

/** Verdicted says a verdict once: its summary may begin with it. */
function Verdicted({ status, summary }: { status: string; summary: string }): ComponentChildren {
	const said = summary.toLowerCase().startsWith(status.toLowerCase()) ? summary.slice(status.length).replace(/^[:,.]?\s*/, '') : summary;
	return <span><strong class={toneOf(status)}>{status}</strong>{said && ': '}<Name text={said} most={400} /></span>;
}

function Texts({ title, of, tone }: { title: string; of: string[]; tone: string }): ComponentChildren {
	return of.length ? <Section level={2} title={title} note={format.count(of.length)}><ul class={tone}>{of.slice(0, 300).map((t) => <li><Name text={t} most={500} /></li>)}</ul></Section> : null;
}

function Requests({ title, of }: { title: string; of: RequestRef[] }): ComponentChildren {
	if (!of.length) return null;
	return <Section level={2} title={title} note={format.count(of.length)}><ul>{of.slice(0, 300).map((r) => <li class="request">
		<code><Line text={r.method} /> <Name text={r.url} most={200} /></code>{r.seq != null && <span class="dim"> record {r.seq}</span>}
		{r.cause && <p class="dim"><Name text={r.cause} most={500} /></p>}
	</li>)}</ul></Section>;
}

function Masked({ id, pairs, more, counts }: { id: string; pairs: MaskedPair[]; more: number; counts: Record<string, number> }): ComponentChildren {
	const used = Object.entries(counts);
	if (!pairs.length && !used.length) return null;
	return <Section level={2} title="Masked" note={used.map(([k, n]) => `${k} ${n}`).join(', ')}>
		{pairs.length > 0 && <div class="wide" tabIndex={0} role="region" aria-label="What masks hid"><table class="table"><thead><tr><th>mask</th><th>where</th><th>recorded</th><th>replayed</th><th>records</th></tr></thead>
			<tbody>{pairs.slice(0, 500).map((p) => <tr>
				<th scope="row"><Line text={p.mask} />{p.settled && <span class="dim" title="the two values stand for each other everywhere"> settled</span>}</th>
				<td>{p.seq != null && <Link to={{ run: id, tab: 'record', what: String(p.seq) }}>{p.seq}</Link>} <Name text={p.place} most={120} /></td>
				<td><code><Name text={p.recorded} most={120} /></code></td><td><code><Name text={p.replay} most={120} /></code></td><td class="num">{p.records}</td>
			</tr>)}</tbody></table></div>}
		{more > 0 && <p class="dim">{format.count(more)} more pairs</p>}
	</Section>;
}
