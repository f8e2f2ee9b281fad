// All of the document, whatever its schema: nothing is in the JSON that the page cannot show.

import { Row, Value, isRow, keys, rows } from './document';
import { h } from './dom';
import { byKey, count, frame } from './format';
import { Column, table } from './table';
import { definitions, stack } from './view';

function plain(key: string, value: Value): string {
  if (value === null) return '';
  if (typeof value === 'number') return byKey(key, value);
  if (Array.isArray(value)) return value.some((each) => typeof each === 'object') ? `${count(value.length)} entries` : value.join(', ');
  if (isRow(value)) return 'function' in value ? frame(value) : keys(value).map((each) => `${each} ${plain(each, value[each])}`).join(', ');
  return String(value);
}

const isFrames = (value: Row[]) => value.length > 0 && 'function' in value[0] && 'inlined' in value[0];

function columnsOf(all: Row[]): Column<Row>[] {
  const names = new Set<string>();
  for (const row of all.slice(0, 100)) for (const key of keys(row)) names.add(key);
  const columns: Column<Row>[] = [];
  if (names.has('old') && names.has('new')) {
    names.delete('old');
    names.delete('new');
    const before = (row: Row) => (isRow(row.old) ? row.old : {}), after = (row: Row) => (isRow(row.new) ? row.new : {});
    for (const key of keys(all[0].new as Row).filter((each) => typeof after(all[0])[each] === 'number'))
      columns.push({ title: key, value: (row) => Math.abs(Number(after(row)[key] ?? 0) - Number(before(row)[key] ?? 0)),
        show: (row) => { const x = Number(before(row)[key] ?? 0), y = Number(after(row)[key] ?? 0); return x === y ? byKey(key, y) : `${byKey(key, x)} → ${byKey(key, y)}`; } });
  }
  for (const key of names) {
    const isNumber = all.every((row) => typeof row[key] === 'number');
    columns.push({ title: key, value: (row) => (isNumber ? (row[key] as number) : plain(key, row[key] ?? null)), show: (row) => plain(key, row[key] ?? null) });
  }
  return columns;
}

export function everything(name: string, value: Value): HTMLElement {
  if (Array.isArray(value)) {
    const all = rows(value);
    if (all.length === 0) return h('p', {}, plain(name, value) || 'none');
    if (isFrames(all)) return stack(all);
    return table({ name, rows: all, columns: columnsOf(all), open: (row) => everything(name, row) });
  }
  if (!isRow(value)) return h('p', {}, plain(name, value));
  const simple: [string, string][] = [], parts: HTMLElement[] = [];
  for (const key of keys(value)) {
    const each = value[key];
    const isPart = (isRow(each) && !('function' in each)) || (Array.isArray(each) && each.length > 0 && typeof each[0] === 'object');
    if (isPart) parts.push(h('details', {}, h('summary', {}, key, h('span', { class: 'note' }, ` ${Array.isArray(each) ? count(each.length) : ''}`))));
    else simple.push([key, plain(key, each)]);
    if (isPart) {
      const details = parts[parts.length - 1];
      details.addEventListener('toggle', () => { if (details.childElementCount === 1) details.append(everything(key, each)); });
    }
  }
  return h('div', { class: 'data' }, simple.length ? definitions(simple) : null, ...parts);
}
