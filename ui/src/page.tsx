// The page: what it asks for, and which view stands where.
import { h, render } from 'preact';
import { doc, source } from './data/docs';
import { watch } from './data/live';
import { go, parse, place, type Place } from './data/place';
import type { Library } from './model';
import { Empty, Wait } from './parts/small';
import { Shell } from './parts/shell';
import { CompareView } from './views/compare';
import { DaemonView } from './views/daemon';
import { RunView } from './views/run';
import { RunsView } from './views/runs';
import { SearchAllView } from './views/searchall';
import './style/base.css';
import './style/parts.css';
import './style/views.css';

let opened = false;

/** first is where a page opens: a run with calls of models at its turns. */
function first(library: Library): Place {
	const only = library.runs.length === 1 ? library.runs[0]! : null;
	const p = parse(library.open || (only ? `run/${only.id}` : '')), run = library.runs.find((r) => r.id === p.run);
	return p.tab === 'record' && !p.what && run?.totals?.turns ? { ...p, tab: 'turn' } : p;
}

/** open goes where the file wants to be opened, once, unless the address says where. */
function open(library: Library): void {
	if (opened) return;
	opened = true;
	if (!location.hash) go(first(library), true);
	if (library.live && source.server) watch();
}

function View({ library }: { library: Library }) {
	const p = place.value;
	if (p.view === 'compare') return <CompareView library={library} />;
	if (p.view === 'daemon') return <DaemonView what={p.what} library={library} />;
	if (p.view === 'search') return <SearchAllView key={p.what} what={p.what} library={library} />;
	if (p.view === 'runs') return <RunsView library={library} />;
	const run = library.runs.find((r) => r.id === p.run);
	return run ? <RunView key={run.id} id={run.id} /> : <Empty title="No such run">It may have been removed, or the address is of another page.</Empty>;
}

function Page() {
	return <Wait of={doc<Library>('library.json')}>{(library) => {
		open(library);
		return <Shell library={library}><View library={library} /></Shell>;
	}}</Wait>;
}

render(<Page />, document.body);
