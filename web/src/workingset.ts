// assay workingset: the lines touched in each period, by owner; phases; what a cache of a size would miss.

import { Row, number, rows, text } from './document';
import { bytes, count, microseconds, share } from './format';
import { h } from './dom';
import { chart, Curve } from './chart';
import { table, figures, words } from './table';
import { View, exactly, stack, titled } from './view';

const kOwnersApart = 7; // the others are drawn as one

// In the unit of the document; axes do without its name.
const byTime = (document: Row) => text(document, 'time_unit').endsWith('_us');
const showTime = (document: Row) => (byTime(document) ? microseconds : count);

function overTime(document: Row): HTMLElement {
  const snapshots = rows(document.snapshots), lineSize = number(document, 'line_size') || 64;
  const names = rows(document.owners).map((each) => text(each, 'name')).filter((name, at, all) => all.indexOf(name) === at).slice(0, kOwnersApart);
  const raw = names.map(() => new Array<number>(snapshots.length).fill(0));
  const others = new Array<number>(snapshots.length).fill(0);
  snapshots.forEach((snapshot, at) => {
    let rest = number(snapshot, 'bytes');
    for (const owner of rows(snapshot.owners)) {
      const index = names.indexOf(text(owner, 'name'));
      if (index < 0) continue;
      raw[index][at] += number(owner, 'lines') * lineSize;
      rest -= number(owner, 'lines') * lineSize;
    }
    others[at] = Math.max(0, rest);
  });
  // Stacked: the last to be drawn is the smallest sum.
  const parts = [...names.map((name, at) => ({ name, values: raw[at] })), { name: 'all others', values: others }];
  const sums = parts.map((_, upTo) => snapshots.map((__, at) => parts.slice(0, upTo + 1).reduce((sum, part) => sum + part.values[at], 0)));
  const curves: Curve[] = parts.map((part, at) => ({ name: part.name, values: sums[at], shown: part.values, fill: true, steps: true })).reverse();
  const detail = h('div', { class: 'chosen', 'aria-live': 'polite' }, h('p', { class: 'empty' }, 'A click in the chart shows a period: its owners and call stacks.'));
  const choose = (at: number) => detail.replaceChildren(snapshotDetail(document, snapshots[at]));
  return h('div', {},
    chart({ x: snapshots.map((each) => number(each, 'begin')), end: snapshots.length ? number(snapshots[snapshots.length - 1], 'end') : undefined, showX: showTime(document), showY: bytes, isBytes: true, curves, levels: rows(document.caches).map((cache) => ({ name: text(cache, 'name'), value: number(cache, 'bytes') })), choose }),
    detail,
    table({ name: 'periods', rows: snapshots, open: (each) => snapshotDetail(document, each), columns: [
      figures('begin', 'begin', showTime(document)),
      figures('bytes', 'bytes', bytes, { bar: true }),
      figures('lines', 'lines'),
      figures('pages', 'pages'),
      figures('new', 'new_lines', count, { help: 'lines that no earlier period touched' }),
      figures('shared with the previous', 'shared_with_previous'),
      words('mark', 'mark'),
    ] }));
}

function snapshotDetail(document: Row, snapshot: Row): HTMLElement {
  const lineSize = number(document, 'line_size') || 64, show = showTime(document), unit = byTime(document) ? '' : ` ${text(document, 'time_unit').replace(/^mark$/, 'marks')}`;
  return h('div', { class: 'context' }, h('p', {}, `${bytes(number(snapshot, 'bytes'))} in ${count(number(snapshot, 'lines'))} lines from ${show(number(snapshot, 'begin'))} to ${show(number(snapshot, 'end'))}${unit}`),
    ownersTable('owners in this period', rows(snapshot.owners), lineSize),
    ...rows(snapshot.stacks).map((each) => titled(`thread ${number(each, 'thread')} was at`, stack(rows(each.stack)))));
}

function ownersTable(name: string, owners: Row[], lineSize: number): HTMLElement {
  return table({ name, rows: owners, sort: 'bytes', columns: [
    { title: 'bytes', value: (row) => number(row, 'lines') * lineSize, show: (row) => bytes(number(row, 'lines') * lineSize), bar: true },
    words('kind', 'kind'),
    words('owner', 'name'),
    words('type', 'type'),
  ] });
}

export function workingsetViews(document: Row): View[] {
  const lineSize = number(document, 'line_size') || 64;
  const misses = rows(document.miss_curve);
  const views: View[] = [
    { id: 'workingset-time', title: 'Working set', question: 'Which bytes does the program touch, period by period, and who owns them? Dashed lines: the caches of the machine.', make: () => overTime(document) },
    { id: 'workingset-phases', title: 'Phases', question: 'Where does the program change what it works on?',
      make: (filter) => table({ name: 'phases', rows: rows(document.phases), filter, open: (phase) => ownersTable('owners in this phase', rows(phase.owners), lineSize), columns: [
        figures('begin', 'begin', showTime(document)),
        figures('end', 'end', showTime(document)),
        { title: 'bytes in a period', value: (row) => number(row, 'mean_lines') * lineSize, show: (row) => bytes(number(row, 'mean_lines') * lineSize), bar: true },
        { title: 'bytes in all', value: (row) => number(row, 'lines') * lineSize, show: (row) => bytes(number(row, 'lines') * lineSize) },
        { title: 'functions', value: (row) => rows(row.functions).slice(0, 4).map((each) => text(each, 'function')).join(', ') },
      ] }) },
    { id: 'workingset-owners', title: 'Owners', question: 'Whose objects, globals and stacks are in the working set?',
      about: (finding) => exactly(rows(document.owners).map((each) => text(each, 'name')).filter((each) => each === text(finding, 'location'))),
      make: (filter) => table({ name: 'owners', rows: rows(document.owners), filter, sort: 'mean', columns: [
        figures('mean', 'mean_bytes', bytes, { bar: true }),
        figures('most', 'most_bytes', bytes),
        figures('time', 'time_share', share),
        words('kind', 'kind'),
        words('owner', 'name'),
        words('type', 'type'),
      ] }) },
  ];
  if (misses.length > 1)
    views.push({ id: 'workingset-misses', title: 'Cache sizes', question: 'How many lines would a cache of each size fetch again?',
      make: () => h('div', {},
        chart({ x: misses.map((each) => number(each, 'bytes')), logX: true, showX: bytes, showY: count, curves: [{ name: 'misses', values: misses.map((each) => number(each, 'misses')) }, { name: 'at least', values: misses.map((each) => number(each, 'least_misses')) }] }),
        table({ name: 'cache sizes', rows: misses, columns: [
          figures('cache', 'bytes', bytes),
          figures('misses', 'misses', count, { bar: true }),
          figures('at least', 'least_misses'),
          words('name', 'name'),
        ] })) });
  return views;
}
