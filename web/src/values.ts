// assay values: disassembly with the values that were seen, and what collides.

import { Row, number, rows, text } from './document';
import { count, share } from './format';
import { h } from './dom';
import { table, figures } from './table';
import { View, exactly } from './view';

function valueBars(list: Row, key: 'hot' | 'strides'): HTMLElement[] {
  return rows(list[key]).slice(0, 4).map((each) => h('span', { class: 'value', style: `--bar: ${number(each, 'value_share') * 100}%`, title: `between ${share(number(each, 'low'))} and ${share(number(each, 'high'))} with 95 % confidence` },
    `${key === 'strides' ? `stride ${signed(text(each, 'value'))}` : text(each, 'name') || text(each, 'value')} ${share(number(each, 'value_share'))}`));
}

function signed(value: string): string {
  const stride = BigInt.asIntN(64, BigInt(value));
  return stride < 0n ? `-0x${(-stride).toString(16)}` : value;
}

function titleOf(list: Row): string {
  const kind = text(list, 'kind').replaceAll('_', ' '), subject = text(list, 'subject');
  return kind.endsWith(subject) ? kind : `${kind} ${subject}`;
}

function lists(instruction: Row): HTMLElement {
  return h('div', { class: 'values' },
    ...rows(instruction.lists).filter((list) => rows(list.hot).length || rows(list.strides).length || 'taken_share' in list).map((list) => h('div', {},
      h('span', { class: 'note' }, titleOf(list)),
      ...valueBars(list, 'hot'), ...valueBars(list, 'strides'),
      list.taken_share !== undefined ? h('span', { class: 'value', style: `--bar: ${number(list, 'taken_share') * 100}%` }, `taken ${share(number(list, 'taken_share'))}`) : null)),
    ...(rows(instruction.latency).length ? [h('div', {}, h('span', { class: 'note' }, 'latency '), ...rows(instruction.latency).map((each) => h('span', { class: 'value', style: `--bar: ${number(each, 'level_share') * 100}%` }, `${text(each, 'level')} ${share(number(each, 'level_share'))}`)))] : []));
}

const textsOf = (instruction: Row) => rows(instruction.lists).flatMap((list) => rows(list.hot).map((each) => text(each, 'value'))).join(' ');

export function valuesViews(document: Row): View[] {
  const instructions = rows(document.executables).flatMap((executable) => rows(executable.instructions).map((instruction) => ({ executable: text(executable, 'path'), instruction })));
  const functions = new Map<string, typeof instructions>();
  for (const each of instructions) functions.set(text(each.instruction, 'function'), [...(functions.get(text(each.instruction, 'function')) ?? []), each]);
  const samples = (all: typeof instructions) => all.reduce((sum, each) => sum + number(each.instruction, 'samples'), 0);
  const listing = (name: string, all: typeof instructions) => table({ name, rows: all, columns: [
    { title: 'samples', value: (row) => number(row.instruction, 'samples'), show: (row) => count(number(row.instruction, 'samples')), bar: true },
    { title: 'seen', value: (row) => number(row.instruction, 'executions'), show: (row) => count(number(row.instruction, 'executions')), help: 'executions that were interpreted' },
    { title: 'line', value: (row) => number(row.instruction, 'line') },
    { title: 'offset', value: (row) => text(row.instruction, 'offset') },
    { title: 'instruction', value: (row) => text(row.instruction, 'text'), show: (row) => h('code', {}, text(row.instruction, 'text')) },
    { title: 'values', value: (row) => textsOf(row.instruction), show: (row) => lists(row.instruction) },
  ] });
  const conflicts = rows(document.conflicts);
  const side = (row: Row, key: string) => { const each = row[key] as Row; return each ? `${text(each, 'function')} ${text(each, 'offset')} ${text(each, 'text')}` : ''; };
  const views: View[] = [
    { id: 'values-functions', title: 'Values', question: 'Where does the time go, and which values come again and again? A row opens to its instructions.',
      about: (finding) => exactly([...functions.keys()].filter((each) => each && text(finding, 'location').startsWith(`${each} `)).sort((a, b) => b.length - a.length).slice(0, 1)),
      make: (filter) => table({ name: 'functions', rows: [...functions], filter, sort: 'samples', open: ([name, all]) => listing(`instructions of ${name}`, [...all].sort((a, b) => parseInt(text(a.instruction, 'offset'), 16) - parseInt(text(b.instruction, 'offset'), 16))), columns: [
        { title: 'samples', value: ([, all]) => samples(all), show: ([, all]) => count(samples(all)), bar: true },
        { title: 'instructions', value: ([, all]) => all.length },
        { title: 'function', value: ([name]) => name || '(no name)' },
        { title: 'executable', value: ([, all]) => all[0].executable },
      ] }) },
  ];
  if (conflicts.length)
    views.push({ id: 'values-conflicts', title: 'Conflicts', question: 'Which loads collide with earlier stores?',
      make: (filter) => table({ name: 'conflicts', rows: conflicts, filter, sort: 'load share', columns: [
        figures('count', 'count'),
        figures('load share', 'load_share', share, { bar: true, help: 'the part of the executions of the load' }),
        { title: 'kind', value: (row) => text(row, 'kind').replaceAll('_', ' ') },
        { title: 'store', value: (row) => side(row, 'store') },
        { title: 'load', value: (row) => side(row, 'load') },
      ] }) });
  return views;
}
