// assay fields: structs as they lie in memory, line by line, with heat; fields that are used together.

import { Row, isRow, number, rows, text } from './document';
import { baseName, bytes, count, share } from './format';
import { h, heat, logarithmic } from './dom';
import { table, figures, words } from './table';
import { View, definitions, exactly, heatScale } from './view';

const kLine = 64;
const kMaxAffinityFields = 24;
const shortName = (field: Row) => text(field, 'short_name') || text(field, 'name'); // of files that have none
const accesses = (field: Row) => number(field, 'reads') + number(field, 'writes');

function drawing(struct: Row): HTMLElement {
  const fields = rows(struct.fields), most = Math.max(...fields.map(accesses), 1), size = number(struct, 'size');
  const lines: HTMLElement[] = [];
  for (let begin = 0; begin < size; begin += kLine) {
    const inLine = [
      ...fields.map((field) => ({ field, offset: number(field, 'offset'), end: number(field, 'offset') + Math.max(1, number(field, 'size')) })),
      ...rows(struct.holes).map((hole) => ({ field: null, offset: number(hole, 'offset'), end: number(hole, 'offset') + number(hole, 'size') })),
    ].filter(({ offset, end }) => offset < begin + kLine && end > begin);
    lines.push(h('div', { class: 'line' }, h('span', { class: 'offset' }, `${begin}`),
      h('div', { class: 'cells' }, ...inLine.map(({ field, offset, end }) => {
        const from = Math.max(offset, begin) - begin, to = Math.min(end, begin + kLine, size) - begin;
        const label = field ? `${text(field, 'name')}: ${text(field, 'type')} at ${offset}, ${end - offset} bytes, ${count(number(field, 'reads'))} reads, ${count(number(field, 'writes'))} writes` : `hole of ${end - offset} bytes at ${offset}`;
        return h('span', { class: field ? 'cell' : 'cell hole', title: label, style: `left:${(from / kLine) * 100}%;width:${((to - from) / kLine) * 100}%;${field ? heat(logarithmic(accesses(field), most)) : ''}` }, field && to - from >= 4 ? shortName(field) : '');
      }))));
  }
  return h('figure', { class: 'struct' }, h('figcaption', {}, `A row is a cache line of ${kLine} bytes if the struct begins at one. Accesses: `, heatScale('few', 'many'), ' (logarithmic); hatched bytes belong to no field.'), ...lines);
}

function affinity(struct: Row): HTMLElement | null {
  const pairs = rows(struct.affinity);
  if (pairs.length === 0) return null;
  const shown = new Map(rows(struct.fields).map((field) => [text(field, 'name'), shortName(field)]));
  const order = rows(struct.fields).filter((field) => accesses(field) > 0).sort((a, b) => number(a, 'offset') - number(b, 'offset')).map((field) => text(field, 'name'));
  const named = order.filter((name) => pairs.some((pair) => pair.a === name || pair.b === name)).slice(0, kMaxAffinityFields);
  const together = new Map(pairs.flatMap((pair) => [[`${pair.a} ${pair.b}`, number(pair, 'together_share')], [`${pair.b} ${pair.a}`, number(pair, 'together_share')]] as [string, number][]));
  return h('figure', { class: 'affinity' }, h('figcaption', {}, 'Fields that are used together: the part of the uses of one in which the other is used, too.'),
    h('table', {}, h('thead', {}, h('tr', {}, h('td', {}), ...named.map((name) => h('th', { scope: 'col' }, h('span', {}, shown.get(name) ?? name))))),
      h('tbody', {}, ...named.map((row) => h('tr', {}, h('th', { scope: 'row' }, shown.get(row) ?? row), ...named.map((column) => {
        const value = together.get(`${row} ${column}`);
        return h('td', { class: value === undefined ? null : 'heated', style: value === undefined ? null : heat(value), title: value === undefined ? null : `${row} and ${column}: ${share(value)}` }, value === undefined ? '' : Math.round(value * 100));
      }))))));
}

function structDetail(struct: Row): HTMLElement {
  const advice = isRow(struct.advice) ? struct.advice : null;
  const order = advice && Array.isArray(advice.order) ? advice.order.join(', ') : '';
  const cold = advice && Array.isArray(advice.cold) ? advice.cold.join(', ') : '';
  return h('article', { class: 'context' },
    definitions([['size', bytes(number(struct, 'size'))], ['used', share(number(struct, 'used_share'))], ['reads', count(number(struct, 'reads'))], ['writes', count(number(struct, 'writes'))], ['declared at', `${text(struct, 'file')}:${number(struct, 'line')}`]]),
    advice && advice.worth_it === true ? h('p', { class: 'advice' }, `In the order ${order} an access touches ${number(advice, 'lines_after').toFixed(2)} lines instead of ${number(advice, 'lines_before').toFixed(2)}; the size becomes ${bytes(number(advice, 'size_after'))}.`) : null,
    cold ? h('p', { class: 'advice' }, `Hardly used: ${cold}`) : null,
    drawing(struct),
    table({ name: `fields of ${text(struct, 'name')}`, rows: rows(struct.fields), columns: [
      { title: 'offset', value: (row) => number(row, 'offset') },
      { title: 'size', value: (row) => number(row, 'size') },
      figures('reads', 'reads', count, { bar: true }),
      figures('writes', 'writes', count, { bar: true }),
      figures('copied', 'copied'),
      words('type', 'type'),
      { title: 'field', value: shortName },
      { title: 'used most in', value: (row) => rows(row.places).slice(0, 2).map((each) => `${text(each, 'function')}:${number(each, 'line')}`).join(', ') },
    ] }),
    affinity(struct));
}

export function fieldsViews(document: Row): View[] {
  const sharing = rows(document.sharing);
  const field = (row: Row) => `${text(row, 'struct')}::${text(row, 'short_field') || text(row, 'field')}`;
  const views: View[] = [
    { id: 'fields-structs', title: 'Structs', question: 'Which fields are hot, which lie beside them, which are used together? A row opens to the drawing of its struct.',
      about: (finding) => text(finding, 'rule') === 'false_sharing' ? '' : exactly(rows(document.structs).filter((row) => `${text(row, 'name')} ${baseName(text(row, 'file'))}:${number(row, 'line')}` === text(finding, 'location')).map((row) => text(row, 'name'))),
      make: (filter) => table({ name: 'structs', rows: rows(document.structs), filter, sort: 'accesses', open: structDetail, columns: [
        figures('accesses', 'accesses', count, { bar: true }),
        figures('size', 'size', bytes),
        figures('used', 'used_share', share, { help: 'the part of the bytes that was accessed at all' }),
        { title: 'disparity', value: (row) => number(row, 'disparity'), show: (row) => number(row, 'disparity').toFixed(2), help: '1: one field has all accesses; 0: all have as many' },
        { title: 'fields', value: (row) => rows(row.fields).length },
        words('struct', 'name'),
        { title: 'file', value: (row) => `${text(row, 'file')}:${number(row, 'line')}` },
      ] }) },
  ];
  if (sharing.length) views.push({ id: 'fields-sharing', title: 'False sharing', question: 'Which fields are written by several threads on one line?',
    about: (finding) => exactly(sharing.map(field).filter((each) => text(finding, 'rule') === 'false_sharing' && text(finding, 'message').replace('elements of ', '').startsWith(`${each} `))),
    make: (filter) => table({ name: 'false sharing', rows: sharing, filter, sort: 'changes', columns: [
      figures('changes', 'changes', count, { bar: true, help: 'of the writer of the line, in sampled windows' }),
      { title: 'where', value: (row) => row.same_object === true ? 'in one object' : 'in neighbours in memory' },
      { title: 'field', value: field },
      { title: 'and', value: (row) => `${text(row, 'other_struct')}::${text(row, 'other_short_field') || text(row, 'other_field')}` },
    ] }) });
  return views;
}
