// assay report: types, allocation sites and phases, with what each tool says of them. What a tool did not record is -, not 0.

import { Row, number, rows, text } from './document';
import { bytes, count, microseconds, share } from './format';
import { Column, figures, table, words } from './table';
import { View, definitions, exactly, titled } from './view';

const list = (row: Row, key: string) => (Array.isArray(row[key]) ? (row[key] as string[]).join(', ') : '');
const advice = (row: Row) => (row.advice && typeof row.advice === 'object' && !Array.isArray(row.advice) ? list(row.advice, 'first') : '');

function figuresOf(named: Column<Row>[]): Column<Row>[] {
  return [figures('objects', 'alloc_count'), figures('bytes', 'size_bytes', bytes, { bar: true }), figures('at the peak', 'at_peak_bytes', bytes), figures('lifetime', 'mean_lifetime_us', microseconds),
    figures('accesses', 'accesses'), figures('in the working set', 'set.most_bytes', bytes, { bar: true, help: 'of its lines, the most at a time' }), figures('in phase', 'set.phase', String),
    figures('used', 'used_share', share, { help: 'of its lines that were used' }), { title: 'put first', value: advice }, ...named];
}

function phaseDetail(phase: Row): HTMLElement {
  return titled('what fills it', table({ name: 'owners', rows: rows(phase.owners), columns: [
    figures('bytes', 'bytes', bytes, { bar: true }), figures('of the phase', 'lines_share', share), figures('used', 'used_share', share), figures('accesses', 'accesses'),
    { title: 'put first', value: (row) => list(row, 'first') }, words('kind', 'kind'), words('type', 'type'), words('owner', 'name')] }),
    definitions([['at a time', bytes(number(phase, 'mean_bytes'))], ['at most', count(number(phase, 'most_lines')) + ' lines'], ['fits in', text(phase, 'fits_in') || 'unknown']]));
}

export function reportViews(document: Row): View[] {
  const of = (name: string, key: string, named: Column<Row>[]) => (filter: string) =>
    rows(document[key]).length ? table({ name, rows: rows(document[key]), filter, columns: figuresOf(named) }) : titled(`no ${name} were recorded`);
  const named = (key: string, name: string) => exactly(rows(document[key]).map((row) => text(row, 'name')).filter((each) => each === name));
  const site = (finding: Row) => named('sites', text(finding, 'site'));
  return [
    { id: 'report-types', title: 'Types', question: 'Which types bring in the most that is not used?', make: of('types', 'types', [words('type', 'name')]), about: (finding) => (site(finding) ? '' : named('types', text(finding, 'type'))) },
    { id: 'report-sites', title: 'Sites', question: 'Which allocation sites and variables do?', make: of('sites', 'sites', [words('kind', 'kind'), words('type', 'type'), words('site', 'name')]), about: site },
    { id: 'report-phases', title: 'Phases', question: 'What does each phase work on? A row opens to what fills it.', make: (filter) => table({ name: 'phases', rows: rows(document.phases), filter, open: phaseDetail, columns: [
      figures('process', 'pid', String), figures('phase', 'phase', String), figures('of the run', 'time_share', share, { bar: true }), figures('bytes', 'mean_bytes', bytes, { bar: true, help: 'of its set, on average over its snapshots' }), words('fits in', 'fits_in'), words('in', 'function')] }) },
  ];
}
