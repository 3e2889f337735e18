// What stands around every view: where one is, search, the switches.
import { h, type ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { DaemonView, Library } from '../model';
import { doc, list, source } from '../data/docs';
import { go, place, within } from '../data/place';
import { gone } from '../data/source';
import { KeySheet, showKeys, useKeys } from './keys';
import { Badge, Link } from './small';
import { Line } from './text';
import { dark, turn } from './theme';

/** ToDaemon leads to the daemon's runs, and says how much waits there. */
function ToDaemon() {
	const waiting = list(doc<DaemonView>('daemon.json').value.value?.intents).length;
	return <Link to={{ view: 'daemon' }} class="crumb">Daemon{waiting > 0 && <Badge tone="warn">{`${waiting} waiting`}</Badge>}</Link>;
}

export function Shell({ library, children }: { library: Library; children: ComponentChildren }) {
	const field = useRef<HTMLInputElement>(null);
	const p = place.value, run = library.runs.find((r) => r.id === p.run);
	useKeys([
		{ key: '?', does: 'these keys', act: showKeys },
		{ key: 't', does: 'light or dark', act: turn },
		{ key: '/', does: 'search', act: () => field.current?.focus() },
		{ key: 'Backspace', does: 'back', act: () => history.back() },
	]);
	const wide = p.view !== 'run', label = wide ? 'Search everything in all runs' : 'Search everything in this run';
	useEffect(() => { if ((p.tab === 'search' || p.view === 'search') && field.current) field.current.value = p.what; }, [p]);
	useEffect(() => { document.title = [run && (run.name || run.id), library.title || 'Tapedeck'].filter(Boolean).join(' · '); }, [run]);
	const onSubmit = (e: Event) => {
		e.preventDefault();
		const what = field.current!.value.trim();
		if (what && wide) go({ view: 'search', what });
		else if (what) within({ tab: 'search', what });
		field.current!.blur();
	};
	const one = library.runs.length === 1 && !library.compare && !source.server, brand = [<i aria-hidden="true" />, 'Tapedeck'];
	return <div class="shell">
		<a class="skip" href="#main" onClick={(e: Event) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>To the content</a>
		<header class="top">
			<nav aria-label="Where you are">
				{one ? <span class="brand">{brand}</span> : <Link to={{ view: 'runs' }} class="brand">{brand}</Link>}
				{library.runs.length > 1 && p.view === 'runs' && library.title && <span class="crumb" aria-current="page"><Line text={library.title} most={80} /></span>}
				{p.view === 'search' && <span class="crumb" aria-current="page">Search</span>}
				{p.view === 'compare' && <span class="crumb" aria-current="page">Comparison</span>}
				{run && <span class="crumb" aria-current="page"><Line text={run.name || run.id} most={80} /></span>}
				{p.view === 'daemon' && !p.what && <span class="crumb" aria-current="page">Daemon</span>}
				{library.daemon && (p.view !== 'daemon' || p.what) && <ToDaemon />}
				{library.compare && p.view !== 'compare' && <Link to={{ view: 'compare' }} class="crumb">Comparison</Link>}
			</nav>
			{(!wide || source.server) && <form role="search" onSubmit={onSubmit}>
				<input ref={field} type="search" placeholder={label} aria-label={label} autocomplete="off" spellcheck={false} />
				<kbd aria-hidden="true">/</kbd>
			</form>}
			<button type="button" class="icon" onClick={turn} aria-label={dark.value ? 'Light colours' : 'Dark colours'} title="Light or dark (t)">{dark.value ? '☀' : '☾'}</button>
			<button type="button" class="icon" onClick={showKeys} aria-label="Keys" title="Keys (?)">?</button>
		</header>
		{gone.value && <p class="missed" role="alert">tapedeck ui does not answer any more: what is shown here may be old. Start it again, and open the address that it prints.</p>}
		<main id="main" tabIndex={-1}>{children}</main>
		<KeySheet />
	</div>;
}
