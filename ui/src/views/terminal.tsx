// The terminal of a run, in step with its timeline: the screen at the instant that is pointed at.
import { h } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Terminal } from '../model';
import { doc } from '../data/docs';
import { filmOf, frameAt, screenAt, type Film } from '../data/film';
import * as format from '../data/format';
import { place, within } from '../data/place';
import { useKeys } from '../parts/keys';
import { Empty, Wait } from '../parts/small';
import { plain } from '../parts/text';
import { Grid } from './grid';
import type { Shown } from './run';

const speed = signal(1), speeds = [0.5, 1, 2, 4, 8, 16];

export function TerminalView({ id, detail }: Shown) {
	if (!detail.terminal) return <Empty title="No terminal was recorded">Record with a terminal: <code>tapedeck record --tty -- COMMAND</code></Empty>;
	return <Wait of={doc<Terminal>(`run/${id}/terminal.json`)}>{(t) => <Player of={t} />}</Wait>;
}

function Player({ of }: { of: Terminal }) {
	const film = useMemo(() => filmOf(of.events), [of]), start = of.start ?? 0;
	const { at } = place.value, now = at === null ? film.end : Math.max(0, Math.min(film.end, at - start));
	const [playing, setPlaying] = useState(false), live = useRef(now);
	live.current = now;
	const seek = (t: number) => within({ tab: 'terminal', what: '', at: start + Math.max(0, Math.min(film.end, t)) }, true);
	useEffect(() => {
		if (!playing) return;
		let last = performance.now(), t = live.current! >= film.end ? 0 : live.current!, frame = 0;
		const tick = (ms: number) => {
			t += (ms - last) * speed.peek();
			last = ms;
			seek(t);
			if (t >= film.end) return setPlaying(false);
			frame = requestAnimationFrame(tick);
		};
		frame = requestAnimationFrame(tick);
		return () => cancelAnimationFrame(frame);
	}, [playing, film]);
	const n = frameAt(film, now), step = (by: number) => { setPlaying(false); const f = film.frames[n + by]; if (f) seek(f.t + 0.5); };
	const mark = (by: number) => { const m = by > 0 ? film.marks.find((x) => x.t > now + 1) : film.marks.findLast((x) => x.t < now - 1); if (m) seek(m.t); };
	useKeys([
		{ key: ' ', does: 'play, pause', act: () => setPlaying(!playing) },
		{ key: '.', does: 'the next frame', act: () => step(1) }, { key: ',', does: 'the frame before', act: () => step(-1) },
		{ key: ']', does: 'the next event', act: () => mark(1) }, { key: '[', does: 'the event before', act: () => mark(-1) },
		{ key: 'ArrowRight', does: '', act: () => seek(now + 5000) }, { key: 'ArrowLeft', does: '', act: () => seek(now - 5000) },
	]);
	if (!film.frames.length) return <Empty title="Nothing was shown" />;
	return <Stage film={film} n={n} now={now} playing={playing} onPlay={() => setPlaying(!playing)} onStep={step} onSeek={seek} />;
}

interface StageProps { film: Film; n: number; now: number; playing: boolean; onPlay: () => void; onStep: (by: number) => void; onSeek: (t: number) => void }

function Stage({ film, n, now, playing, onPlay, onStep, onSeek }: StageProps) {
	const screen = screenAt(film, n)!;
	return <div class="terminal">
		<div class="bar">
			<button type="button" onClick={onPlay} aria-label={playing ? 'Pause' : 'Play'}>{playing ? '❚❚' : '▶'}</button>
			<button type="button" class="icon" aria-label="One frame back" onClick={() => onStep(-1)}>‹</button>
			<button type="button" class="icon" aria-label="One frame on" onClick={() => onStep(1)}>›</button>
			<input type="range" min={0} max={film.end} step="any" value={now} aria-label="Position" aria-valuetext={`${format.instant(now, 1)} of ${format.instant(film.end, 1)}`} onInput={(e) => onSeek(Number(e.currentTarget.value))} />
			<span class="num">{format.instant(now, 1)} / {format.instant(film.end, 1)}</span>
			<select aria-label="Speed" value={speed.value} onChange={(e) => { speed.value = Number(e.currentTarget.value); }}>{speeds.map((s) => <option value={s}>{s}×</option>)}</select>
			<span class="dim">{screen.size[1]}×{screen.size[0]} {plain(screen.title, 80)}</span>
		</div>
		<Grid film={film} screen={screen} />
		{film.marks.length > 0 && <details class="section"><summary>{format.plural(film.marks.length, 'event')}</summary>
			<ol class="events">{film.marks.slice(0, 2000).map((m) => <li><button type="button" class="link" onClick={() => onSeek(m.t)}><span class="num">{format.instant(m.t, 1)}</span> {m.kind}: {plain(m.label, 200)}</button></li>)}</ol>
		</details>}
	</div>;
}
