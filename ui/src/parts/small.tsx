// Small parts that many views share.
import { h, Component, Fragment, type ComponentChildren } from 'preact';
import type { Signal } from '@preact/signals';
import type { Doc } from '../data/docs';
import { address, go, type Place } from '../data/place';

export type Tone = 'good' | 'bad' | 'warn' | 'calm' | 'quiet';

export const Badge = ({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) =>
	<span class={`badge ${tone}`} title={title}>{children}</span>;

/** toneOf a verdict's or a run's status. */
export function toneOf(status: string): Tone {
	if (/^(faithful|finished|holds|passed)/i.test(status)) return 'good';
	if (/^(diverged|failed|broken|refused)/i.test(status)) return 'bad';
	if (/^(recording)/i.test(status)) return 'calm';
	return 'warn';
}

export function Link({ to, children, class: cls, label }: { to: Partial<Place>; children: ComponentChildren; class?: string; label?: string }) {
	const onClick = (e: MouseEvent) => {
		if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
		e.preventDefault();
		go(to);
	};
	return <a href={address(to)} class={cls} aria-label={label} onClick={onClick}>{children}</a>;
}

/** Wait shows a document when it is there, else why not, or what is known without it. */
export function Wait<T>({ of, without, children }: { of: Signal<Doc<T>>; without?: (why: string) => ComponentChildren; children: (value: T) => ComponentChildren }) {
	const { value, error } = of.value;
	if (value !== undefined) return <>{children(value)}</>;
	if (error) return without ? <>{without(error)}</> : <Fault what={error} />;
	return <p class="empty" role="status">Reading …</p>;
}

export const Fault = ({ what }: { what: string }) => <p class="fault" role="alert">{what}</p>;

export const Empty = ({ children, title }: { children?: ComponentChildren; title: string }) =>
	<div class="empty"><p class="title">{title}</p>{children && <p>{children}</p>}</div>;

export const Facts = ({ of }: { of: [string, ComponentChildren][] }) =>
	<dl class="facts">{of.filter(([, v]) => v !== '' && v != null).map(([k, v]) => <div><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;

export function Section({ title, note, level = 3, children }: { title: string; note?: ComponentChildren; level?: 2 | 3; children: ComponentChildren }) {
	const Heading = `h${level}` as const;
	return <section class="section"><Heading>{title}{note != null && <span class="dim"> {note}</span>}</Heading>{children}</section>;
}

/** Fence shows what a view fails of in its place, until something else (of) is shown there; what stands around it goes on. */
export class Fence extends Component<{ of: string; children: ComponentChildren }, { what: string }> {
	state = { what: '' };
	componentDidCatch(e: Error) { this.setState({ what: e.message }); }
	componentDidUpdate(was: { of: string }) { if (was.of !== this.props.of && this.state.what) this.setState({ what: '' }); }
	render() {
		return this.state.what ? <Fault what={`This cannot be shown: ${this.state.what}`} /> : this.props.children;
	}
}
