// A terminal's screen as text, each character in its column.
import { h } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Film, Line, Run, Screen, Style } from '../data/film';

const BOLD = 1, FAINT = 2, ITALIC = 4, REVERSE = 16, HIDDEN = 32, STRIKE = 64, OVERLINE = 128;
const underlines = ['', 'solid', 'double', 'wavy', 'dotted', 'dashed'];

function color(c: number, otherwise: string): string {
	const kind = c >>> 24, v = c & 0xffffff;
	if (kind === 2) return '#' + v.toString(16).padStart(6, '0');
	if (kind !== 1) return otherwise;
	if (v < 16) return `var(--c${v})`;
	if (v >= 232) return `rgb(${Array(3).fill(8 + 10 * (v - 232)).join()})`;
	const part = (n: number) => n && 55 + 40 * n;
	return `rgb(${part(Math.floor((v - 16) / 36))},${part(Math.floor((v - 16) / 6) % 6)},${part((v - 16) % 6)})`;
}

function paint(s: Style): Record<string, string> {
	let fg = color(s.fg, 'var(--fg)'), bg = color(s.bg, '');
	if (s.attr & REVERSE) [fg, bg] = [bg || 'var(--tty)', fg];
	if (s.attr & FAINT) fg = `color-mix(in srgb, ${fg} 65%, ${bg || 'var(--tty)'})`;
	if (s.attr & HIDDEN) fg = 'transparent';
	const css: Record<string, string> = { color: fg };
	if (bg) css.backgroundColor = bg;
	if (s.attr & BOLD) css.fontWeight = 'bold';
	if (s.attr & ITALIC) css.fontStyle = 'italic';
	const lines = [s.line && 'underline', s.attr & STRIKE && 'line-through', s.attr & OVERLINE && 'overline'].filter(Boolean);
	if (lines.length) css.textDecorationLine = lines.join(' ');
	if (s.line) css.textDecorationStyle = underlines[s.line]!;
	if (s.line && s.under) css.textDecorationColor = color(s.under, 'currentcolor');
	return css;
}

export function Grid({ film, screen }: { film: Film; screen: Screen }) {
	const box = useRef<HTMLDivElement>(null), probe = useRef<HTMLSpanElement>(null), [cell, setCell] = useState({ w: 8, h: 17, font: 14 });
	useLayoutEffect(() => { // the letters are as large as the room lets them be
		const fit = () => {
			const ratio = probe.current!.getBoundingClientRect().width / 1600 || 0.6, room = box.current!.clientWidth - 24;
			const font = Math.max(6, Math.min(15, room / (film.largest[1] * ratio)));
			setCell({ w: font * ratio, h: Math.round(font * 1.22), font });
		};
		fit();
		const watch = new ResizeObserver(fit);
		watch.observe(box.current!);
		return () => watch.disconnect();
	}, [film]);
	const [rows, cols] = screen.size;
	return <div ref={box} class="stage" role="region" aria-label="Terminal" tabIndex={0} style={{ ...(screen.colors ?? {}), fontSize: `${cell.font}px`, lineHeight: `${cell.h}px` }}>
		<span ref={probe} class="probe" aria-hidden="true">{'0'.repeat(100)}</span>
		<div class="screen" style={{ width: `${cols * cell.w}px`, height: `${rows * cell.h}px` }}>
			{Array.from({ length: rows }, (_, r) => <Row film={film} line={film.lines[screen.ids[r] ?? 0] ?? null} w={cell.w} h={cell.h} />)}
			{screen.cursor && <i class={`cursor ${screen.cursor[2] === 3 || screen.cursor[2] === 4 ? 'under' : screen.cursor[2] >= 5 ? 'beam' : ''}`} aria-hidden="true"
				style={{ left: `${screen.cursor[1] * cell.w}px`, top: `${screen.cursor[0] * cell.h}px`, width: `${cell.w * (screen.cursor[3] ?? 1)}px`, height: `${cell.h}px` }} />}
		</div>
	</div>;
}

const turning = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // a terminal gives these no room, and keeps its columns

function Row({ film, line, w, h: high }: { film: Film; line: Line | null; w: number; h: number }) {
	return <div class="tty-row" style={{ height: `${high}px` }}>{line?.runs.map((r: Run) =>
		<span style={{ ...paint(film.styles[r.style]!), width: `${r.cols * w}px` }}>{r.text.replace(turning, '')}</span>)}</div>;
}
