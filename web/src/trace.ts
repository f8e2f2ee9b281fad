// assay trace: counts, simulated caches, reuse distances, the miss-ratio curve.

import { Row, number, rows, text } from './document';
import { baseName, bytes, count, frame, share } from './format';
import { h } from './dom';
import { chart } from './chart';
import { Column, table, figures, words } from './table';
import { View, bars, exactly } from './view';

const accessColumns: Column<Row>[] = [
  figures('accesses', 'accesses', count, { bar: true }),
  figures('of all', 'access_share', share),
  figures('reads', 'reads'),
  figures('writes', 'writes'),
  figures('bytes', 'bytes', bytes),
];
const place: Column<Row>[] = [
  { title: 'where', value: (row) => frame(row) },
  words('address', 'address'),
  words('module', 'module'),
];

export function countsViews(document: Row): View[] {
  return ['functions', 'instructions'].map((key) => ({ id: `trace-${key}`, title: key === 'functions' ? 'Functions' : 'Instructions', question: `Which ${key} access memory most?`,
    make: (filter: string) => table({ name: key, rows: rows(document[key]), filter, sort: 'accesses', columns: [...accessColumns, ...place] }) }));
}

export function cacheViews(document: Row): View[] {
  const levels = rows(document.levels).map((level) => text(level, 'level'));
  const missColumns: Column<Row>[] = levels.map((level) => ({ title: `${level} misses`, value: (row) => number(row, `misses.${level}`), show: (row) => count(number(row, `misses.${level}`)), bar: true }));
  // Places as findings say them: `sum sums.c:12`, or `sum at 0x4abe in sums`.
  const isAt = (row: Row, place: string) => place === (text(row, 'file') ? `${text(row, 'function')} ${baseName(text(row, 'file'))}:${number(row, 'line')}` : `${text(row, 'function')} at ${text(row, 'address')} in ${baseName(text(row, 'module'))}`);
  const cellsAt = (place: string) => rows(document.instructions).filter((row) => isAt(row, place)).map((row) => (text(row, 'file') ? frame(row) : text(row, 'address')));
  return [
    { id: 'cache-levels', title: 'Caches', question: 'What do caches of this machine miss?',
      make: () => table({ name: 'levels', rows: rows(document.levels), columns: [
        words('level', 'level'),
        figures('size', 'bytes', bytes),
        { title: 'ways', value: (row) => number(row, 'ways') },
        figures('touches', 'touches'),
        figures('misses', 'misses', count, { bar: true }),
        figures('miss share', 'miss_share', share),
      ] }) },
    ...['functions', 'instructions'].map((key) => ({ id: `cache-${key}`, title: key === 'functions' ? 'Misses by function' : 'Misses by instruction', question: `Which ${key} miss?`, about: (finding: Row) => (key === 'instructions' ? exactly(cellsAt(text(finding, 'location'))) : ''),
      make: (filter: string) => table({ name: key, rows: rows(document[key]), filter, sort: `${levels[0]} misses`, columns: [...missColumns, figures('touches', 'touches'), figures('miss share', 'miss_share', share), ...place] }) })),
  ];
}

const distanceChart = (of: Row) =>
  bars('Touches by the number of other lines that were touched since the last touch of the line', rows(of.distances).map((each) => ({
    label: `${count(number(each, 'least'))} to ${count(number(each, 'most'))}`, value: number(each, 'touches'), text: `${count(number(each, 'touches'))}, ${share(number(each, 'touch_share'))}` })));

export function reuseViews(document: Row): View[] {
  return [
    { id: 'reuse-all', title: 'Reuse distances', question: 'How far apart are two touches of the same line?', make: () => distanceChart(document) },
    ...['functions', 'instructions'].map((key) => ({ id: `reuse-${key}`, title: key === 'functions' ? 'Distances by function' : 'Distances by instruction', question: `Which ${key} reuse lines late? A row opens to its distances.`,
      make: (filter: string) => table({ name: key, rows: rows(document[key]), filter, sort: 'touches', open: distanceChart, columns: [
        figures('touches', 'touches', count, { bar: true }),
        figures('first touches', 'first_touches', count, { bar: true }), ...place] }) })),
  ];
}

export function curveViews(document: Row): View[] {
  const curve = rows(document.curve);
  return [{ id: 'mrc-curve', title: 'Miss-ratio curve', question: 'Which part of the touches would a cache of each size miss?',
    make: () => h('div', {},
      chart({ x: curve.map((each) => number(each, 'bytes')), logX: true, showX: bytes, showY: share, curves: [{ name: 'miss ratio', values: curve.map((each) => number(each, 'miss_share')) }] }),
      table({ name: 'cache sizes', rows: curve, columns: [
        figures('cache', 'bytes', bytes),
        figures('miss ratio', 'miss_share', share, { bar: true }),
      ] })) }];
}

export function coverageViews(document: Row): View[] {
  return [{ id: 'trace-coverage', title: 'Functions', question: 'What was traced, and what was not, because…?',
    make: (filter) => table({ name: 'functions', rows: rows(document.functions), filter, sort: 'accesses', columns: [
      figures('accesses', 'accesses', count, { bar: true }),
      words('function', 'name'),
      { title: 'understood', value: (row) => (row.understood === true ? 'yes' : 'no') },
      words('why not', 'why_not'),
      words('file', 'file'),
      words('address', 'address'),
    ] }) }];
}

export function explainViews(document: Row): View[] {
  return [{ id: 'explain-functions', title: 'Functions', question: 'What is understood of the executable? A row opens to its loops and accesses.',
    make: (filter) => table({ name: 'functions', rows: rows(document.functions), filter, columns: [
      figures('bytes', 'bytes', bytes, { bar: true }),
      { title: 'accesses', value: (row) => number(row, 'access_count') },
      figures('affine', 'affine_share', share, { help: 'the part of the accesses whose address follows from the counters of loops' }),
      { title: 'loops', value: (row) => rows(row.loops).length },
      words('function', 'name'),
      { title: 'not understood, because', value: (row) => text(row, 'why_not_meaning') || text(row, 'why_not') },
      words('address', 'address'),
    ], open: (row) => h('div', { class: 'context' },
      table({ name: 'loops', rows: rows(row.loops), columns: [
        words('header', 'header'), words('counter', 'counter'), { title: 'depth', value: (loop) => number(loop, 'depth') },
        { title: 'instructions', value: (loop) => number(loop, 'instruction_count') }, { title: 'accesses', value: (loop) => number(loop, 'access_count') }, { title: 'affine', value: (loop) => number(loop, 'affine_count') },
      ] }),
      table({ name: 'accesses', rows: rows(row.accesses), columns: [
        words('pc', 'pc'), { title: 'instruction', value: (access) => text(access, 'text'), show: (access) => h('code', {}, text(access, 'text')) },
        words('kind', 'kind'), { title: 'size', value: (access) => number(access, 'size') }, { title: 'form', value: (access) => text(access, 'form'), show: (access) => h('code', {}, text(access, 'form')) },
      ] })) }) }];
}
