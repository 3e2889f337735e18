import { h } from 'preact';
export const CompareView = (_: object) => <p>Compare</p>;
