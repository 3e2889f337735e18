// The work tree at an instant: what had become of each file by then, and the one that is chosen beside it.
import { h } from 'preact';
import { useMemo } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { FileBlock, Files } from '../model';
import { doc, list } from '../data/docs';
import * as format from '../data/format';
import { place, within } from '../data/place';
import { fileRows, markAt, sizeAt, type FileRow, type Mark } from '../data/states';
import { useKeys } from '../parts/keys';
import { VirtualList } from '../parts/list';
import { Empty, Wait } from '../parts/small';
import { Split } from '../parts/split';
import { Line } from '../parts/text';
import { FileView } from './file';
import type { Shown } from './run';

const text = signal(''), which = signal<'touched' | 'there'>('touched');

const signs: Record<Mark, [string, string]> = { same: ['', 'not changed yet'], added: ['A', 'added'], changed: ['M', 'changed'], deleted: ['D', 'deleted'], absent: ['–', 'not there'] };

function Row({ of: f, at }: { of: FileRow; at: number | null }) {
	const mark = markAt(f, at), [sign, says] = signs[mark], size = sizeAt(f, at), cut = f.path.slice(0, 400).lastIndexOf('/') + 1;
	return <div class={`file-row ${mark}`}>
		<b class="sign" title={says}>{sign}<span class="hidden">{says}</span></b>
		<span class="title">{cut > 0 && <span class="dim"><Line text={f.path.slice(0, cut)} /></span>}<Line text={f.path.slice(cut)} title /></span>
		<span class="num dim">{f.at.length > 1 ? `${f.at.length}×` : ''}</span>
		<span class="num dim">{size < 0 ? '' : format.bytes(size)}</span>
	</div>;
}

export function FilesView({ id, detail, rows }: Shown) {
	if (!detail.files && which.value === 'touched') return <Empty title="No file changed">{list(detail.coverage).some((c) => c.axis === 'files') ? '' : 'Files were not recorded.'}</Empty>;
	return <Wait of={doc<Files>(`run/${id}/files.json`)}>{(files) => <Tree id={id} all={fileRows(files)} block={files.block} end={rows.end} />}</Wait>;
}

function Tree({ id, all, block, end }: { id: string; all: FileRow[]; block: number; end: number }) {
	const { at, what } = place.value;
	const left = useMemo(() => {
		const want = text.value.trim().toLowerCase();
		return all.filter((f) => (!want || f.path.toLowerCase().includes(want)) && (which.value === 'touched' ? f.at.length > 0 : ['same', 'added', 'changed'].includes(markAt(f, at))));
	}, [all, text.value, which.value, at]);
	const chosen = left.findIndex((f) => f.path === what), row = all.findIndex((f) => f.path === what);
	const choose = (i: number) => { if (left[i]) within({ tab: 'file', what: left[i]!.path }, what !== ''); };
	const step = (by: number) => {
		const here = at ?? end, times = all.flatMap((f) => f.at.filter((t) => (by > 0 ? t > here : t < here)));
		const to = times.length ? times.reduce((a, b) => (by > 0 === a < b ? a : b)) : undefined;
		within({ tab: 'file', what, at: to ?? (by > 0 ? null : 0) }, true);
	};
	useKeys([
		{ key: 'j', does: 'next file', act: () => choose(chosen + 1) },
		{ key: 'k', does: 'previous file', act: () => choose(Math.max(0, chosen - 1)) },
		{ key: ']', does: 'the next change of a file', act: () => step(1) },
		{ key: '[', does: 'the change before', act: () => step(-1) },
		{ key: 'f', does: 'filter files', act: () => document.getElementById('filter')?.focus() },
		{ key: 'Escape', does: 'close the file', act: () => within({ tab: 'file', what: '' }) },
	]);
	return <Split open={what !== ''} name="file" onClose={() => within({ tab: 'file', what: '' })}
		side={row < 0 ? <Empty title="No such file changed" /> : <Wait key={what} of={doc<FileBlock>(`run/${id}/files/${Math.floor(row / block)}.json`)}>{(b) => {
			const file = list(b.files).find((f) => f.path === what);
			return file ? <FileView id={id} file={file} at={at} /> : <Empty title="Reading …" />;
		}}</Wait>}>
		<div class="bar">
			<input id="filter" type="search" placeholder="Filter (f)" aria-label="Filter the files" value={text.value} onInput={(e) => { text.value = e.currentTarget.value; }} />
			<div class="toggles" role="group" aria-label="Which files">
				<button type="button" aria-pressed={which.value === 'there'} onClick={() => { which.value = which.value === 'there' ? 'touched' : 'there'; }}>as it stood</button>
			</div>
			<span class="step">
				<button type="button" class="icon" aria-label="The change before" title="[" onClick={() => step(-1)}>◂</button>
				<span role="status">{at === null ? 'at the end' : `at ${format.instant(at)}`}</span>
				<button type="button" class="icon" aria-label="The next change" title="]" onClick={() => step(1)}>▸</button>
			</span>
		</div>
		{left.length ? <VirtualList label="Files" id="file" class="fill" count={left.length} chosen={chosen} row={(i) => <Row of={left[i]!} at={at} />} onChoose={choose} />
			: <Empty title={text.value ? 'No file is called that' : 'Nothing stood here'} />}
	</Split>;
}
