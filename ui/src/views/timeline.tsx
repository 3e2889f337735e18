// The timeline of a run: its lanes on a canvas, above everything else that is shown of it. What is chosen stands out; an instant can be
// pointed at, which the work tree and the terminal then show.
import { h } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Report } from '../model';
import { doc } from '../data/docs';
import * as format from '../data/format';
import { place, within } from '../data/place';
import type { Rows } from '../data/rows';
import { useKeys } from '../parts/keys';
import { plain } from '../parts/text';
import { dark } from '../parts/theme';
import { bandsOf, nearest, type Band } from './lanes';
import { axis, band, base, draw, gutter, type Scene } from './draw';
import type { Shown } from './run';

const closed = signal(false);

interface View { from: number; to: number } // ms

export function Timeline({ id, rows, detail }: Shown) {
	useKeys([{ key: 'h', does: 'hide or show the timeline', act: () => { closed.value = !closed.value; } }]);
	const report = detail.report ? doc<Report>(`run/${id}/report.json`).value.value : undefined;
	if (!rows.count) return null;
	return <div class={`timeline ${closed.value ? 'closed' : ''}`}>
		{closed.value ? <button type="button" class="link" onClick={() => { closed.value = false; }}>show the timeline (h)</button>
			: <Canvas rows={rows} first={report?.first == null ? -1 : rows.rowOf(report.first)} />}
	</div>;
}

function Canvas({ rows, first }: { rows: Rows; first: number }) {
	const all = { from: 0, to: rows.end * 1.01 };
	const canvas = useRef<HTMLCanvasElement>(null), box = useRef<HTMLDivElement>(null), frame = useRef(0), below = useRef<{ of: unknown[]; canvas: HTMLCanvasElement } | null>(null), held = useRef<{ x: number; view: View; moved: boolean } | null>(null);
	const [part, setPart] = useState<View | null>(null), view = part ?? all; // the whole run, which may grow, until somebody looks closer
	const [over, setOver] = useState<{ row: number; x: number; y: number } | null>(null), [width, setWidth] = useState(0);
	const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
	const bands = useMemo(() => bandsOf(rows, unfolded), [rows, unfolded]);
	const p = place.value, chosen = (p.tab === 'record' || p.tab === 'turn') && p.what !== '' ? rows.rowOf(Number(p.what)) : -1;
	const height = axis + bands.all.length * band + 4;

	useLayoutEffect(() => {
		const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
		setWidth(box.current!.clientWidth);
		watch.observe(box.current!);
		return () => watch.disconnect();
	}, []);
	const w = gutter(width), time = (x: number) => view.from + ((x - w) / Math.max(1, width - w)) * (view.to - view.from);
	useLayoutEffect(() => {
		const scene: Scene = { rows, bands, from: view.from, to: view.to, width, height, chosen, first, at: p.at, over: over?.row ?? -1 };
		const of = [rows, bands, view.from, view.to, width, dark.value];
		const paint = () => {
			if (!canvas.current || !width) return;
			if (below.current?.of.some((x, i) => x !== of[i]) ?? true) below.current = { of, canvas: base(canvas.current, scene) };
			draw(canvas.current, below.current!.canvas, scene);
		};
		cancelAnimationFrame(frame.current!);
		if (below.current) frame.current = requestAnimationFrame(paint);
		else paint(); // at once: a page that is not seen yet, or printed, has no frames
	}, [rows, bands, view.from, view.to, width, chosen, first, p.at, over?.row, dark.value]);

	const look = (from: number, to: number) => {
		const span = Math.max(2, Math.min(all.to, to - from)), start = Math.max(0, Math.min(all.to - span, from));
		setPart(span < all.to ? { from: start, to: start + span } : null);
	};
	const zoom = (by: number, around = (view.from + view.to) / 2) => look(around - (around - view.from) * by, around + (view.to - around) * by);
	const pan = (share: number) => look(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
	useEffect(() => { // what is chosen is seen
		if (chosen < 0) return;
		const at = rows.start[chosen]!;
		if (at < view.from || at > view.to) look(at - (view.to - view.from) / 2, at + (view.to - view.from) / 2);
	}, [chosen]);

	const spot = (e: MouseEvent) => {
		const r = canvas.current!.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
		return { x, y, band: y < axis ? undefined : bands.all[Math.floor((y - axis) / band)] };
	};
	const found = (x: number, b: Band | undefined) => (b && x >= w ? nearest(b, rows, time(x), (6 * (view.to - view.from)) / width) : -1);
	const point = (x: number) => within({ ...p, at: Math.max(0, Math.min(rows.end, time(x))) }, true);
	const onDown = (e: PointerEvent) => {
		const { x, y } = spot(e);
		canvas.current!.setPointerCapture(e.pointerId);
		held.current = { x, view, moved: false };
		if (y < axis && x >= w) point(x);
	};
	const onMove = (e: PointerEvent) => {
		const { x, y, band: b } = spot(e), hold = held.current;
		if (!hold) {
			const row = found(x, b);
			if (row !== over?.row) setOver(row < 0 ? null : { row, x, y });
			return;
		}
		if (Math.abs(x - hold.x) > 3) hold.moved = true;
		if (y < axis && x >= w) return point(x);
		if (!hold.moved) return;
		const by = ((hold.x - x) / Math.max(1, width - w)) * (hold.view.to - hold.view.from);
		look(hold.view.from + by, hold.view.to + by);
	};
	const onUp = (e: PointerEvent) => {
		const { x, y, band: b } = spot(e), hold = held.current;
		held.current = null;
		if (!hold || hold.moved || y < axis) return;
		if (x < w && b) return setUnfolded((u) => { const next = new Set(u); if (!next.delete(b.group)) next.add(b.group); return next; });
		const row = found(x, b);
		if (row >= 0) within({ tab: 'record', what: String(rows.seq(row)) });
	};
	useEffect(() => { // a wheel listener that may hold the page still
		const c = canvas.current!, onWheel = (e: WheelEvent) => {
			if (!e.ctrlKey && !e.metaKey && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
			e.preventDefault();
			if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY / 240), time(spot(e).x));
			else pan((e.deltaX || e.deltaY) / Math.max(1, width));
		};
		c.addEventListener('wheel', onWheel, { passive: false });
		return () => c.removeEventListener('wheel', onWheel);
	});
	const onKey = (e: KeyboardEvent) => {
		const acts: Record<string, () => void> = {
			ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), 0: () => setPart(null),
			'.': () => point(w + ((p.at ?? 0) - view.from) / (view.to - view.from) * (width - w) + 10), ',': () => point(w + ((p.at ?? 0) - view.from) / (view.to - view.from) * (width - w) - 10),
		};
		const act = acts[e.key];
		if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		act();
	};
	return <div class="scroll" ref={box}>
		<canvas ref={canvas} tabIndex={0} role="img" aria-label={`Timeline: ${format.plural(rows.count, 'record')} in ${format.plural(bands.all.length, 'lane')}, ${format.span(view.to - view.from)} from ${format.instant(view.from, 1)} on. The list of records has the same as text.`}
			onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => setOver(null)} onKeyDown={onKey}
			onDblClick={(e) => { const row = found(spot(e).x, spot(e).band); if (row >= 0) look(rows.start[row]! - rows.took[row]!, rows.start[row]! + 2 * Math.max(rows.took[row]!, 5)); }} />
		{over && <p class="tip" style={{ left: `${Math.max(0, Math.min(over.x + 12, width - 330))}px`, top: `${Math.min(over.y + 14, Math.max(0, height - 44))}px` }} aria-hidden="true">
			<strong>{plain(rows.texts[rows.title[over.row]!] ?? '', 160)}</strong><br />
			{rows.seq(over.row)} · {rows.kinds[rows.kind[over.row]!]} · {format.instant(rows.start[over.row]!)}{rows.took[over.row]! > 0 && ` · ${format.span(rows.took[over.row]!)}`}
		</p>}
		<div class="zoom">
			{p.at !== null && <button type="button" onClick={() => within({ ...p, at: null }, true)} title="Forget the instant">at {format.instant(p.at)} ✕</button>}
			{part && <button type="button" onClick={() => setPart(null)}>whole run</button>}
			<button type="button" aria-label="Zoom out" onClick={() => zoom(1 / 0.6)}>−</button><button type="button" aria-label="Zoom in" onClick={() => zoom(0.6)}>+</button>
		</div>
	</div>;
}
