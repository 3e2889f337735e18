import { h } from 'preact';
export const FilesView = (_: object) => <p>Files</p>;
