// What stands around every view: where one is, search, the switches.
import { h, type ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Library } from '../model';
import { place, within } from '../data/place';
import { KeySheet, showKeys, useKeys } from './keys';
import { Link } from './small';
import { Line } from './text';
import { dark, turn } from './theme';

export function Shell({ library, children }: { library: Library; children: ComponentChildren }) {
	const field = useRef<HTMLInputElement>(null);
	const p = place.value, run = library.runs.find((r) => r.id === p.run);
	useKeys([
		{ key: '?', does: 'these keys', act: showKeys },
		{ key: 't', does: 'light or dark', act: turn },
		{ key: '/', does: 'search', act: () => field.current?.focus() },
		{ key: 'Backspace', does: 'back', act: () => history.back() },
	]);
	useEffect(() => { if (p.tab === 'search' && field.current) field.current.value = p.what; }, [p]);
	useEffect(() => { document.title = [run && (run.name || run.id), library.title || 'Tapedeck'].filter(Boolean).join(' · '); }, [run]);
	const onSubmit = (e: Event) => {
		e.preventDefault();
		const what = field.current!.value.trim();
		if (what) within({ tab: 'search', what });
		field.current!.blur();
	};
	return <div class="shell">
		<a class="skip" href="#main" onClick={(e: Event) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>To the content</a>
		<header class="top">
			<nav aria-label="Where you are">
				<Link to={{ view: 'runs' }} class="brand"><i aria-hidden="true" />Tapedeck</Link>
				{library.runs.length > 1 && p.view === 'runs' && library.title && <span class="crumb" aria-current="page"><Line text={library.title} most={80} /></span>}
				{p.view === 'compare' && <span class="crumb" aria-current="page">Comparison</span>}
				{run && <span class="crumb" aria-current="page"><Line text={run.name || run.id} most={80} /></span>}
				{library.compare && p.view !== 'compare' && <Link to={{ view: 'compare' }} class="crumb">Comparison</Link>}
			</nav>
			{p.view === 'run' && <form role="search" onSubmit={onSubmit}>
				<input ref={field} type="search" placeholder="Search everything in this run" aria-label="Search everything in this run" autocomplete="off" spellcheck={false} />
				<kbd aria-hidden="true">/</kbd>
			</form>}
			<button type="button" class="icon" onClick={turn} aria-label={dark.value ? 'Light colours' : 'Dark colours'} title="Light or dark (t)">{dark.value ? '☀' : '☾'}</button>
			<button type="button" class="icon" onClick={showKeys} aria-label="Keys" title="Keys (?)">?</button>
		</header>
		<main id="main" tabIndex={-1}>{children}</main>
		<KeySheet />
	</div>;
}
