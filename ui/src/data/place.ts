// Where the page is: what stands behind # in its address.
//
//	/                    the runs
//	compare              the comparison
//	daemon               the runs of a daemon, and what waits there
//	daemon/ID            one of these runs
//	search/TEXT          a search over every run, where a server has them
//	run/ID               a run; its first tab
//	run/ID/TAB           one of tabs
//	run/ID/record/SEQ    a record
//	run/ID/turn/SEQ      a turn
//	run/ID/file/PATH     a file, percent-encoded
//	run/ID/report/N      a divergence, from 0
//	run/ID/search/TEXT   a search
//
// Behind ? stands at=MS, an instant of the run.
import { signal } from '@preact/signals';

export const tabs = ['record', 'turn', 'file', 'terminal', 'report', 'about', 'search'] as const;
export type Tab = (typeof tabs)[number];

export interface Place {
	view: 'runs' | 'compare' | 'daemon' | 'search' | 'run';
	run: string;
	tab: Tab;
	what: string; // a seq, a path, a number, a text; '' for none
	at: number | null; // ms after the start of the run
}

const nowhere: Place = { view: 'runs', run: '', tab: 'record', what: '', at: null };

export function parse(hash: string): Place {
	const [path = '', query = ''] = hash.replace(/^#/, '').split('?');
	const [view, run = '', tab = '', what = ''] = path.split('/').filter(Boolean).map(decoded);
	if (view === 'compare') return { ...nowhere, view };
	if (view === 'daemon') return { ...nowhere, view, what: run };
	if (view === 'search') return { ...nowhere, view, what: run };
	if (view !== 'run' || !run) return nowhere;
	const at = new URLSearchParams(query).get('at');
	return {
		view, run, what,
		tab: tabs.find((t) => t === tab) ?? 'record',
		at: at !== null && Number.isFinite(Number(at)) ? Number(at) : null,
	};
}

function decoded(s: string): string {
	try {
		return decodeURIComponent(s);
	} catch {
		return s;
	}
}

export function address(p: Partial<Place>): string {
	if (p.view === 'compare') return '#compare';
	if (p.view === 'daemon') return p.what ? `#daemon/${encodeURIComponent(p.what)}` : '#daemon';
	if (p.view === 'search') return `#search/${encodeURIComponent(p.what ?? '')}`;
	if (!p.run) return '#/';
	const parts = ['#run', encodeURIComponent(p.run)];
	if ((p.tab && p.tab !== 'record') || p.what) parts.push(p.tab ?? 'record');
	if (p.what) parts.push(encodeURIComponent(p.what));
	return parts.join('/') + (p.at == null ? '' : `?at=${Math.round(p.at)}`);
}

export const place = signal<Place>(parse(location.hash));

/** go leaves for another place; replace leaves no step back to this one. */
export function go(p: Partial<Place>, replace = false): void {
	const to = address(p);
	if (to === location.hash) return;
	try {
		history[replace ? 'replaceState' : 'pushState'](null, '', to);
	} catch {
		/* the page may be in a frame */
	}
	place.value = parse(to);
}

/** within goes to a place of the same run. */
export function within(p: Partial<Place>, replace = false): void {
	const { run, at } = place.peek();
	go({ view: 'run', run, at, ...p }, replace);
}

for (const event of ['hashchange', 'popstate']) addEventListener(event, () => { place.value = parse(location.hash); });
