// What a recording is: where it was made, what of the program was seen and what was not, whether its seal holds, what cannot be read.
import { h, type ComponentChild } from 'preact';
import type { Detail, Library } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { Json } from '../parts/json';
import { Badge, Facts, Link, Section, toneOf } from '../parts/small';
import { Line, Name } from '../parts/text';
import { Problems } from './problems';
import type { Shown } from './run';

export function AboutView({ detail: d, id }: Shown) {
	const library = doc<Library>('library.json').value.value, absent = list(library?.absent).filter((a) => a.path.startsWith(`run/${id}/`));
	return <div class="about" tabIndex={0} role="region" aria-label="About the recording">
		<Problems of={d.problems} absent={absent} />
		<Section level={2} title="Recording"><Facts of={[
			['id', <code>{d.id}</code>], ['state', <Badge tone={toneOf(d.state)}>{d.state}</Badge>], ['started', format.date(d.started)], ['directory', <code><Name text={d.cwd} /></code>],
			['host', <Line text={d.host} />], ...Object.entries(d.versions ?? {}).filter(([, v]) => v).map(([k, v]) => [k, <Name text={v} />] as [string, ComponentChild]),
			['asked', list(d.upstreams).length ? <span><Name text={list(d.upstreams).join(', ')} most={600} /></span> : ''],
		]} /></Section>
		<Coverage of={d} />
		<Section level={2} title="Refusals">{d.refused ? <p><Badge tone="warn">{d.refused}</Badge> times the program wanted out in a way that could not be seen or was not let through. <Link to={{ run: id }}>Records</Link> of that are marked as failed.</p> : <p class="dim">Nothing was refused.</p>}</Section>
		<Seal of={d} />
		{Object.keys(d.masks ?? {}).length > 0 && <Section level={2} title="Masks" note="volatile parts, taken out before records are compared"><dl class="json">{Object.entries(d.masks).map(([k, n]) => <div><dt><Line text={k} /></dt><dd>{format.plural(n, 'use')}</dd></div>)}</dl></Section>}
		{d.fork && <Section level={2} title="Fork" note={d.parent ? <span>of <Link to={{ run: d.parent }}>{d.parent}</Link></span> : ''}><Json value={d.fork} /></Section>}
		{list(d.notes).length > 0 && <Section level={2} title="Notes">{list(d.notes).map((n) => <blockquote class="note"><Link to={{ run: id, tab: 'record', what: String(n.seq) }}>record {n.seq}</Link> <strong><Line text={n.kind} /></strong> <Name text={n.text} /> <span class="dim"><Line text={n.author} /></span></blockquote>)}</Section>}
	</div>;
}

function Coverage({ of: d }: { of: Detail }) {
	if (!list(d.coverage).length) return <Section level={2} title="What was seen"><p class="dim">Not known yet: it is written when a run ends.</p></Section>;
	return <Section level={2} title="What was seen" note="and what was not">
		<table class="table"><thead><tr><th>axis</th><th>how</th><th>not covered</th></tr></thead>
			<tbody>{list(d.coverage).map((c) => <tr><th scope="row"><Line text={c.axis} /></th><td><Name text={c.how} /></td>
				<td>{list(c.gaps).length ? <ul>{list(c.gaps).map((g) => <li class="warn"><Name text={g} /></li>)}</ul> : <span class="dim">–</span>}</td></tr>)}</tbody>
		</table>
	</Section>;
}

/** sealBroken: one that is too large to be checked here is not. */
export const sealBroken = (d: Detail): boolean => (d.seal ? !/^(holds|not checked)/.test(d.seal.checked) : d.sealed);

function Seal({ of: d }: { of: Detail }) {
	if (!d.seal) return <Section level={2} title="Seal"><p class="dim">{d.sealed ? 'The recording says that it is sealed, but its seal is missing.' : 'Not sealed.'}</p></Section>;
	return <Section level={2} title="Seal" note={<Badge tone={sealBroken(d) ? 'bad' : toneOf(d.seal.checked)}>{d.seal.checked === 'holds' ? 'holds' : sealBroken(d) ? 'broken' : 'not checked'}</Badge>}>
		<Facts of={[['checked', <Name text={d.seal.checked} />], ['root', <code><Name text={d.seal.root} /></code>], ['key', <code><Name text={d.seal.key} /></code>]]} />
	</Section>;
}
