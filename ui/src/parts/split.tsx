// A list and what is chosen in it, side by side; in a narrow window one at a time.
import { h, type ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { signal } from '@preact/signals';

const share = signal(46); // percent that the list has

interface Props { open: boolean; name: string; side: ComponentChildren; children: ComponentChildren; onClose: () => void }

export function Split({ open, name, side, children, onClose }: Props) {
	const box = useRef<HTMLDivElement>(null);
	const move = (to: number) => { share.value = Math.max(20, Math.min(75, to)); };
	const drag = (e: PointerEvent) => {
		if (!(e.currentTarget as Element).hasPointerCapture(e.pointerId)) return;
		const r = box.current!.getBoundingClientRect();
		move((100 * (e.clientX - r.left)) / r.width);
	};
	const keys = (e: KeyboardEvent) => {
		if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') return;
		e.preventDefault();
		move(share.value + (e.key === 'ArrowLeft' ? -3 : 3));
	};
	const close = () => {
		onClose();
		box.current?.querySelector<HTMLElement>('[role=listbox]')?.focus();
	};
	const enter = (e: KeyboardEvent) => { // from the list into what is open beside it
		if (e.key !== 'Enter' || e.defaultPrevented || !(e.target as Element).matches('[role=listbox]')) return;
		const to = box.current!.querySelector<HTMLElement>(':scope > .second');
		if (to) e.preventDefault();
		to?.focus();
	};
	const leave = (e: KeyboardEvent) => {
		if (e.key !== 'Escape' || e.defaultPrevented) return;
		e.preventDefault();
		close();
	};
	return <div ref={box} class={`split ${open ? 'open' : ''}`} style={{ '--share': `${share.value}%` }}>
		<div class="first" onKeyDown={enter}>{children}</div>
		{open && <div class="bar-between" role="separator" aria-orientation="vertical" aria-label={`Width of the list and of the ${name}`} aria-valuenow={Math.round(share.value)} aria-valuemin={20} aria-valuemax={75}
			tabIndex={0} onKeyDown={keys} onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)} onPointerMove={drag} />}
		{open && <section class="second" aria-label={`The ${name}`} tabIndex={0} onKeyDown={leave}>
			<div class="close"><button type="button" class="icon" aria-label={`Close the ${name}`} title="Close (Escape)" onClick={close}>✕</button></div>
			{side}
		</section>}
	</div>;
}
