// assay trace: counts, simulated caches, reuse distances, the miss-ratio curve.

import { Row, number, rows, text } from './document';
import { bytes, count, frame, share } from './format';
import { h } from './dom';
import { chart } from './chart';
import { Column, table } from './table';
import { View } from './view';

const accessColumns: Column<Row>[] = [
  { title: 'accesses', value: (row) => number(row, 'accesses'), show: (row) => count(number(row, 'accesses')), bar: true },
  { title: 'of all', value: (row) => number(row, 'access_share'), show: (row) => share(number(row, 'access_share')) },
  { title: 'reads', value: (row) => number(row, 'reads'), show: (row) => count(number(row, 'reads')) },
  { title: 'writes', value: (row) => number(row, 'writes'), show: (row) => count(number(row, 'writes')) },
  { title: 'bytes', value: (row) => number(row, 'bytes'), show: (row) => bytes(number(row, 'bytes')) },
];
const place: Column<Row>[] = [
  { title: 'where', value: (row) => frame(row) },
  { title: 'address', value: (row) => text(row, 'address') },
  { title: 'module', value: (row) => text(row, 'module') },
];

export function countsViews(document: Row): View[] {
  return ['functions', 'instructions'].map((key) => ({ id: `trace-${key}`, title: key === 'functions' ? 'Functions' : 'Instructions', question: `Which ${key} access memory most?`,
    make: (filter: string) => table({ name: key, rows: rows(document[key]), filter, sort: 'accesses', columns: [...accessColumns, ...place] }) }));
}

export function cacheViews(document: Row): View[] {
  const levels = rows(document.levels).map((level) => text(level, 'level'));
  const missColumns: Column<Row>[] = levels.map((level) => ({ title: `${level} misses`, value: (row) => number(row, `misses.${level}`), show: (row) => count(number(row, `misses.${level}`)), bar: true }));
  return [
    { id: 'cache-levels', title: 'Caches', question: 'What do caches of this machine miss?',
      make: () => table({ name: 'levels', rows: rows(document.levels), columns: [
        { title: 'level', value: (row) => text(row, 'level') },
        { title: 'size', value: (row) => number(row, 'bytes'), show: (row) => bytes(number(row, 'bytes')) },
        { title: 'ways', value: (row) => number(row, 'ways') },
        { title: 'touches', value: (row) => number(row, 'touches'), show: (row) => count(number(row, 'touches')) },
        { title: 'misses', value: (row) => number(row, 'misses'), show: (row) => count(number(row, 'misses')), bar: true },
        { title: 'miss share', value: (row) => number(row, 'miss_share'), show: (row) => share(number(row, 'miss_share')) },
      ] }) },
    ...['functions', 'instructions'].map((key) => ({ id: `cache-${key}`, title: key === 'functions' ? 'Misses by function' : 'Misses by instruction', question: `Which ${key} miss?`,
      make: (filter: string) => table({ name: key, rows: rows(document[key]), filter, sort: `${levels[0]} misses`, columns: [...missColumns, { title: 'touches', value: (row) => number(row, 'touches'), show: (row) => count(number(row, 'touches')) }, { title: 'miss share', value: (row) => number(row, 'miss_share'), show: (row) => share(number(row, 'miss_share')) }, ...place] }) })),
  ];
}

function distanceChart(of: Row): HTMLElement {
  const all = rows(of.distances), most = Math.max(...all.map((each) => number(each, 'touches')), 1);
  return h('figure', { class: 'histogram' }, h('figcaption', {}, 'Touches by the number of other lines that were touched since the last touch of the line'),
    ...all.map((each) => h('div', {}, h('span', {}, `${count(number(each, 'least'))} to ${count(number(each, 'most'))}`), h('i', { style: `width:${((number(each, 'touches') / most) * 60).toFixed(1)}%` }), h('b', {}, `${count(number(each, 'touches'))}, ${share(number(each, 'touch_share'))}`))));
}

export function reuseViews(document: Row): View[] {
  return [
    { id: 'reuse-all', title: 'Reuse distances', question: 'How far apart are two touches of the same line?', make: () => distanceChart(document) },
    ...['functions', 'instructions'].map((key) => ({ id: `reuse-${key}`, title: key === 'functions' ? 'Distances by function' : 'Distances by instruction', question: `Which ${key} reuse lines late? A row opens to its distances.`,
      make: (filter: string) => table({ name: key, rows: rows(document[key]), filter, sort: 'touches', open: distanceChart, columns: [
        { title: 'touches', value: (row) => number(row, 'touches'), show: (row) => count(number(row, 'touches')), bar: true },
        { title: 'first touches', value: (row) => number(row, 'first_touches'), show: (row) => count(number(row, 'first_touches')), bar: true }, ...place] }) })),
  ];
}

export function curveViews(document: Row): View[] {
  const curve = rows(document.curve);
  return [{ id: 'mrc-curve', title: 'Miss-ratio curve', question: 'Which part of the touches would a cache of each size miss?',
    make: () => h('div', {},
      chart({ x: curve.map((each) => number(each, 'bytes')), logX: true, showX: bytes, showY: share, curves: [{ name: 'miss ratio', values: curve.map((each) => number(each, 'miss_share')) }] }),
      table({ name: 'cache sizes', rows: curve, columns: [
        { title: 'cache', value: (row) => number(row, 'bytes'), show: (row) => bytes(number(row, 'bytes')) },
        { title: 'miss ratio', value: (row) => number(row, 'miss_share'), show: (row) => share(number(row, 'miss_share')), bar: true },
      ] })) }];
}

export function coverageViews(document: Row): View[] {
  return [{ id: 'trace-coverage', title: 'Functions', question: 'What was traced, and what was not, because…?',
    make: (filter) => table({ name: 'functions', rows: rows(document.functions), filter, sort: 'accesses', columns: [
      { title: 'accesses', value: (row) => number(row, 'accesses'), show: (row) => count(number(row, 'accesses')), bar: true },
      { title: 'function', value: (row) => text(row, 'name') },
      { title: 'understood', value: (row) => (row.understood === true ? 'yes' : 'no') },
      { title: 'why not', value: (row) => text(row, 'why_not') },
      { title: 'file', value: (row) => text(row, 'file') },
      { title: 'address', value: (row) => text(row, 'address') },
    ] }) }];
}

export function explainViews(document: Row): View[] {
  return [{ id: 'explain-functions', title: 'Functions', question: 'What is understood of the executable? A row opens to its loops and accesses.',
    make: (filter) => table({ name: 'functions', rows: rows(document.functions), filter, columns: [
      { title: 'bytes', value: (row) => number(row, 'bytes'), show: (row) => bytes(number(row, 'bytes')), bar: true },
      { title: 'accesses', value: (row) => number(row, 'access_count') },
      { title: 'affine', value: (row) => number(row, 'affine_share'), show: (row) => share(number(row, 'affine_share')), help: 'the part of the accesses whose address follows from the counters of loops' },
      { title: 'loops', value: (row) => rows(row.loops).length },
      { title: 'function', value: (row) => text(row, 'name') },
      { title: 'not understood, because', value: (row) => text(row, 'why_not_meaning') || text(row, 'why_not') },
      { title: 'address', value: (row) => text(row, 'address') },
    ], open: (row) => h('div', { class: 'context' },
      table({ name: 'loops', rows: rows(row.loops), columns: [
        { title: 'header', value: (loop) => text(loop, 'header') }, { title: 'counter', value: (loop) => text(loop, 'counter') }, { title: 'depth', value: (loop) => number(loop, 'depth') },
        { title: 'instructions', value: (loop) => number(loop, 'instruction_count') }, { title: 'accesses', value: (loop) => number(loop, 'access_count') }, { title: 'affine', value: (loop) => number(loop, 'affine_count') },
      ] }),
      table({ name: 'accesses', rows: rows(row.accesses), columns: [
        { title: 'pc', value: (access) => text(access, 'pc') }, { title: 'instruction', value: (access) => text(access, 'text'), show: (access) => h('code', {}, text(access, 'text')) },
        { title: 'kind', value: (access) => text(access, 'kind') }, { title: 'size', value: (access) => number(access, 'size') }, { title: 'form', value: (access) => text(access, 'form'), show: (access) => h('code', {}, text(access, 'form')) },
      ] })) }) }];
}
