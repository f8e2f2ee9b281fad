// All of the document, whatever its schema: nothing is in the JSON that the page cannot show.

import { Row, Value, isRow, keys, rows } from './document';
import { h } from './dom';
import { byKey, count, frame } from './format';
import { Column, table } from './table';
import { View, definitions, stack } from './view';

function plain(key: string, value: Value): string {
  if (value === null) return '';
  if (typeof value === 'number') return byKey(key, value);
  if (Array.isArray(value)) return value.some((each) => typeof each === 'object') ? `${count(value.length)} entries` : value.join(', ');
  if (isRow(value)) return 'function' in value ? frame(value) : keys(value).map((each) => `${each} ${plain(each, value[each])}`).join(', ');
  return String(value);
}

const change = (key: string, before: Value, after: Value) => (before === after ? plain(key, after) : `${plain(key, before)} → ${plain(key, after)}`);
const changes = (before: Row, after: Row) => keys(after).map((key): [string, string] => [key, change(key, before[key] ?? null, after[key])]);

const isFrames = (value: Row[]) => value.length > 0 && 'function' in value[0] && 'inlined' in value[0];

function columnsOf(all: Row[]): Column<Row>[] {
  const names = new Set<string>();
  for (const row of all.slice(0, 100)) for (const key of keys(row)) names.add(key);
  const columns: Column<Row>[] = [];
  if (names.has('old') && names.has('new')) {
    names.delete('old');
    names.delete('new');
    const before = (row: Row): Row => (isRow(row.old) ? row.old : {}), after = (row: Row): Row => (isRow(row.new) ? row.new : {});
    for (const key of keys(after(all[0])).filter((each) => typeof after(all[0])[each] === 'number'))
      columns.push({ title: key, value: (row) => Math.abs(Number(after(row)[key] ?? 0) - Number(before(row)[key] ?? 0)),
        show: (row) => change(key, before(row)[key] ?? 0, after(row)[key] ?? 0) });
  }
  for (const key of names) {
    const isNumber = all.every((row) => typeof row[key] === 'number');
    columns.push({ title: key, value: (row) => (isNumber ? (row[key] as number) : plain(key, row[key] ?? null)), show: (row) => plain(key, row[key] ?? null) });
  }
  return columns;
}

export function everything(name: string, value: Value, areOpen = false): HTMLElement {
  if (Array.isArray(value)) {
    const all = rows(value);
    if (all.length === 0) return h('p', {}, plain(name, value) || 'none');
    if (isFrames(all)) return stack(all);
    return table({ name, rows: all, columns: columnsOf(all), open: (row) => everything(name, row) });
  }
  if (!isRow(value)) return h('p', {}, plain(name, value));
  const simple: [string, string][] = [], parts: HTMLDetailsElement[] = [];
  for (const key of keys(value)) {
    const each = value[key];
    if (key === 'old' && isRow(each) && isRow(value.new)) {
      simple.push(...changes(each, value.new));
      continue;
    }
    if (key === 'new' && isRow(value.old)) continue;
    const isPart = (isRow(each) && !('function' in each)) || (Array.isArray(each) && each.length > 0 && typeof each[0] === 'object');
    if (isPart) parts.push(h('details', {}, h('summary', {}, key, h('span', { class: 'note' }, ` ${Array.isArray(each) ? count(each.length) : ''}`))));
    else simple.push([key, plain(key, each)]);
    if (isPart) {
      const details = parts[parts.length - 1];
      details.addEventListener('toggle', () => { if (details.childElementCount === 1) details.append(everything(key, each, areOpen)); });
      details.open = areOpen;
    }
  }
  return h('div', { class: 'data' }, simple.length ? definitions(simple) : null, ...parts);
}

// assay diff: what each tool compares, with the old number and the new one in one cell.
export function diffViews(document: Row): View[] {
  const titles: Record<string, string> = { workingset: 'Working set', fields: 'Fields', objects: 'Objects', values: 'Values' };
  const heap = { totals: document.totals, sites: document.sites } as Row;
  const parts: [string, string, Row][] = isRow(document.totals) ? [['heap', 'Heap', heap]] : [];
  for (const key of keys(document)) if (titles[key] && isRow(document[key])) parts.push([key, titles[key], document[key] as Row]);
  return parts.map(([id, title, part]) => ({ id: `diff-${id}`, title, question: 'What changed? Columns show old → new; a click on a column sorts by the change.', make: () => everything(title, part, true) }));
}
