// A list of any length: only the rows that are seen are elements.
import { h, type ComponentChild } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

const height = 28; // of a row
const beyond = 8; // rows that are made above and below those seen
const tallest = 15_000_000; // what browsers let an element be

interface Props {
	label: string;
	count: number;
	chosen: number; // -1 for none
	row: (i: number) => ComponentChild;
	onChoose: (i: number) => void;
	onOpen?: (i: number) => void; // on Enter or a click, where choosing alone does not open
	class?: string;
	id?: string;
}

export function VirtualList({ label, count, chosen, row, onChoose, onOpen, class: cls = '', id = 'list' }: Props) {
	const box = useRef<HTMLDivElement>(null);
	const [view, setView] = useState({ top: 0, room: 600 });
	const total = Math.min(count * height, tallest);
	const scale = count * height > tallest ? (count * height - view.room) / (tallest - view.room) : 1; // of a list too tall
	const read = () => {
		const b = box.current!;
		setView({ top: b.scrollTop, room: b.clientHeight });
	};
	useLayoutEffect(() => {
		read();
		const watch = new ResizeObserver(read);
		watch.observe(box.current!);
		return () => watch.disconnect();
	}, []);
	useEffect(() => {
		if (chosen < 0) return;
		const b = box.current!, top = chosen * height, first = b.scrollTop * scale;
		if (top < first || top + height > first + b.clientHeight) b.scrollTop = (top - b.clientHeight / 2 + height / 2) / scale;
	}, [chosen, count]);

	const from = Math.max(0, Math.floor((view.top * scale) / height) - beyond);
	const to = Math.min(count, Math.ceil((view.top * scale + view.room) / height) + beyond);
	const rows = [];
	for (let i = from; i < to; i++) {
		rows.push(<div key={i} id={`${id}-${i}`} role="option" class="row" aria-selected={i === chosen} aria-posinset={i + 1} aria-setsize={count}
			style={{ top: `${i * height - view.top * (scale - 1)}px` }} onClick={() => (onOpen ?? onChoose)(i)}>{row(i)}</div>);
	}
	const page = Math.max(1, Math.floor(view.room / height) - 1);
	const moves: Record<string, number> = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + page, PageUp: chosen - page, Home: 0, End: count - 1 };
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.key === 'Enter' && onOpen && chosen >= 0) {
			e.preventDefault();
			return onOpen(chosen);
		}
		const to = moves[e.key];
		if (to === undefined || e.ctrlKey || e.metaKey || e.altKey || !count) return;
		e.preventDefault();
		onChoose(Math.max(0, Math.min(count - 1, to)));
	};
	return <div ref={box} class={`list ${cls}`} role="listbox" aria-label={label} tabIndex={0} onScroll={read} onKeyDown={onKeyDown}
		aria-activedescendant={chosen >= from && chosen < to ? `${id}-${chosen}` : undefined}>
		<div class="tall" role="presentation" style={{ height: `${total}px` }}>{rows}</div>
	</div>;
}
