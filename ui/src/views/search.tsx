import { h } from 'preact';
export const SearchView = (_: object) => <p>Search</p>;
