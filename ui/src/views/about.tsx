import { h } from 'preact';
export const AboutView = (_: object) => <p>About</p>;
