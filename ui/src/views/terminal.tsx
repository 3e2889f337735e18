import { h } from 'preact';
export const TerminalView = (_: object) => <p>Terminal</p>;
