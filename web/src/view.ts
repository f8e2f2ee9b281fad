// What a page shows of a document: views, each made when it is first opened.

import { Row, text } from './document';
import { h } from './dom';
import { frame } from './format';

export interface View {
  id: string; // in the address: #heap-tree
  title: string;
  question: string;
  make: (filter: string) => HTMLElement;
  about?: (finding: Row) => string; // the filter that leaves the rows that it is about; '' if the view has none of them
}

export type Views = (document: Row) => View[];

// The filter that leaves the rows with one of these cells; '' if there are none.
export function exactly(cells: string[]): string {
  const each = [...new Set(cells)].filter(Boolean).map((cell) => cell.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return each.length ? `^(${each.join('|')})$` : '';
}

export function stack(frames: Row[]): HTMLElement {
  if (frames.length === 0) return h('p', { class: 'empty' }, 'no call stack');
  return h('ol', { class: 'stack' }, ...frames.map((each) => h('li', { title: `${text(each, 'file')} ${text(each, 'module')} ${text(each, 'address')}` }, frame(each), each.inlined === true ? h('span', { class: 'note' }, ' inlined') : null)));
}

export function definitions(entries: [string, string | Node][]): HTMLElement {
  return h('dl', { class: 'facts' }, ...entries.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

// What the colours of cells mean, in light and in dark.
export function heatScale(least: string, most: string): HTMLElement {
  return h('span', {}, `${least} `, h('i', { class: 'scale', 'aria-hidden': 'true' }), ` ${most}`);
}

export function titled(title: string, ...content: (Node | null)[]): HTMLElement {
  return h('section', {}, h('h3', {}, title), ...content);
}

export function bars(caption: string, all: { label: string; value: number; text: string; title?: string }[]): HTMLElement {
  const most = Math.max(...all.map((each) => each.value), 1);
  return h('figure', { class: 'histogram' }, h('figcaption', {}, caption),
    ...all.map((each) => h('div', { title: each.title }, h('span', {}, each.label), h('i', { style: `width:${((each.value / most) * 60).toFixed(1)}%` }), h('b', {}, each.text))));
}
