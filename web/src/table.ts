// A table that is sorted by a click on a column and filtered by a regular expression; rows may open.

import { Row, at, text } from './document';
import { h } from './dom';
import { count } from './format';

export interface Column<T> {
  title: string;
  value: (row: T) => number | string | null; // null: not known
  show?: (row: T) => string | Node; // of one that is known; else the value
  bar?: boolean; // a bar beside the number, of its share of the largest
  help?: string;
}

// A row's number, by its path such as `size.total`; null if it is not known.
export function numberIf(row: Row, path: string): number | null {
  const value = at(row, path);
  return typeof value === 'number' ? value : null;
}
// A column of such a number, and one of a text.
export function figures(title: string, path: string, show: (value: number) => string = count, more: Partial<Column<Row>> = {}): Column<Row> {
  const value = more.value ?? ((row: Row) => numberIf(row, path));
  return { title, ...more, value, show: (row) => show(value(row) as number) };
}
export function words(title: string, path: string): Column<Row> {
  return { title, value: (row) => text(row, path) };
}

export interface TableOptions<T> {
  name: string;
  rows: T[];
  columns: Column<T>[];
  sort?: string; // the title of a column; default: the order of the document
  open?: (row: T) => Node;
  filter?: string;
}

const kStep = 200; // rows that are drawn at once

// A long name or path may be broken behind its parts, so that the last column is not cut.
const breakable = (text: string) => h('span', {}, ...text.split(/(?<=::|[/<(,_])/).flatMap((part) => [h('wbr'), part]));

export function table<T>({ name, rows, columns, sort, open, filter = '' }: TableOptions<T>): HTMLElement {
  if (rows.length === 0) return h('p', { class: 'empty' }, `${name}: none`);
  let by = columns.findIndex((column) => column.title === sort);
  const numeric = columns.map((column) => rows.every((row) => { const value = column.value(row); return value === null || typeof value === 'number'; }));
  let descending = by < 0 || numeric[by];
  let shown = kStep;
  const most = columns.map((column, at) => (column.bar && numeric[at] ? rows.reduce((top, row) => Math.max(top, (column.value(row) ?? 0) as number), 0) : 0));
  const texts = new Map<T, string>();
  const textOf = (row: T) => {
    let text = texts.get(row);
    if (text === undefined) texts.set(row, (text = columns.filter((_, at) => !numeric[at]).map((column) => column.value(row) ?? '').join('\n')));
    return text;
  };

  const body = h('tbody');
  const headers = columns.map((column, at) =>
    h('th', { scope: 'col', class: numeric[at] ? 'number' : null, title: column.help ?? null },
      h('button', { type: 'button', click: () => { descending = by === at ? !descending : numeric[at]; by = at; draw(); } }, column.title)));
  const status = h('output', {});
  const search = h('input', { type: 'search', placeholder: 'filter (regular expression)', 'aria-label': `filter ${name}`, value: filter, input: () => { shown = kStep; draw(); } });
  const more = h('button', { type: 'button', class: 'more', click: () => { shown += kStep * 5; draw(); } }, 'show more');

  function chosen(): T[] {
    let result = rows;
    search.setCustomValidity('');
    if (search.value) {
      try {
        const pattern = new RegExp(search.value, 'im'); // ^ and $ are the ends of a cell
        result = rows.filter((row) => pattern.test(textOf(row)));
      } catch {
        search.setCustomValidity('this is no regular expression');
      }
    }
    if (by < 0) return result;
    const value = columns[by].value;
    const sign = descending ? -1 : 1;
    return [...result].sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === null || y === null) return (x === null ? 1 : 0) - (y === null ? 1 : 0); // what is not known stands last
      return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)));
    });
  }

  function lineOf(row: T): HTMLElement {
    const cells = columns.map((column, at) => {
      const value = column.value(row);
      const content = value === null ? '-' : column.show ? column.show(row) : String(value);
      const width = most[at] && value !== null ? ((value as number) / most[at]) * 100 : 0;
      return h('td', { class: numeric[at] ? 'number' : null, style: column.bar ? `--bar: ${width.toFixed(1)}%` : null, 'data-value': numeric[at] && value !== null ? String(value) : null }, typeof content === 'string' && !numeric[at] ? breakable(content) : content);
    });
    const line = h('tr', open ? { tabindex: 0, class: 'opens', 'aria-expanded': 'false' } : {}, ...cells);
    if (!open) return line;
    let detail: HTMLElement | undefined;
    const toggle = () => {
      if (detail) { detail.remove(); detail = undefined; }
      else line.after((detail = h('tr', { class: 'detail' }, h('td', { colspan: columns.length }, open(row)))));
      line.setAttribute('aria-expanded', detail ? 'true' : 'false');
    };
    line.addEventListener('click', (event) => { if (!(event.target as Element).closest('a, button')) toggle(); });
    line.addEventListener('keydown', (event) => { if (event.target === line && (event.key === 'Enter' || event.key === ' ')) { event.preventDefault(); toggle(); } });
    return line;
  }

  function draw() {
    const some = chosen();
    body.replaceChildren(...some.slice(0, shown).map(lineOf));
    headers.forEach((header, at) => (at === by ? header.setAttribute('aria-sort', descending ? 'descending' : 'ascending') : header.removeAttribute('aria-sort')));
    status.textContent = some.length === rows.length ? `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}` : `${some.length} of ${rows.length} rows`;
    more.hidden = shown >= some.length;
  }
  draw();
  const tools = h('div', { class: 'tools' }, rows.length > 12 || filter ? search : null, status);
  return h('section', { class: 'table', 'data-name': name }, tools, h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ...headers)), body)), more);
}
