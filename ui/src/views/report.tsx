import { h } from 'preact';
export const ReportView = (_: object) => <p>Report</p>;
