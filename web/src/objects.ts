// assay objects: the words of each group of objects, line by line.

import { Row, number, rows, text } from './document';
import { bytes, count, share } from './format';
import { h, heat, logarithmic } from './dom';
import { table, figures, words } from './table';
import { View, definitions, exactly, heatScale, stack, titled } from './view';

const kLine = 64;
const kCells = 16; // of a row, where a cell is not less than a line
const kMaxRows = 512; // of a map; the rest is said in words

function map(group: Row): HTMLElement {
  const words = rows(group.words), cell = number(group, 'cell_bytes') || 4, row = cell < kLine ? kLine : kCells * cell;
  const most = Math.max(...words.map((word) => number(word, 'hotness')), 1);
  const cellsOf = new Map<number, Row[]>();
  for (const word of words) {
    const begin = number(word, 'offset') - (number(word, 'offset') % row);
    cellsOf.set(begin, [...(cellsOf.get(begin) ?? []), word]);
  }
  const all = [...cellsOf].sort(([a], [b]) => a - b);
  return h('figure', { class: 'words' },
    h('figcaption', {}, `A row is ${row === kLine ? `a line of ${kLine} bytes` : `${row / kLine} lines, ${bytes(row)}`}; a cell is ${cell} bytes. `, heatScale('Cold', 'hot'), ` (logarithmic); the height is the part of the objects in which a cell is used.${all.length > kMaxRows ? ` The first ${kMaxRows} of ${all.length} rows.` : ''}`),
    ...all.slice(0, kMaxRows).map(([begin, cells]) => h('div', { class: 'line' }, h('span', { class: 'offset' }, `${begin}`),
      h('div', { class: 'cells' }, ...cells.map((word) => h('span', { class: 'word', title: `at ${number(word, 'offset')}: hotness ${count(number(word, 'hotness'))}, used in ${share(number(word, 'accessed_share'))} of the objects`,
        style: `left:${((number(word, 'offset') - begin) / row) * 100}%;width:${(cell / row) * 100}%;height:${Math.max(number(word, 'accessed_share') > 0 ? 8 : 0, number(word, 'accessed_share') * 100)}%;${heat(logarithmic(number(word, 'hotness'), most))}` }))))));
}

function groupDetail(group: Row): HTMLElement {
  return h('article', { class: 'context' },
    definitions([['objects', count(number(group, 'count'))], ['bytes', bytes(number(group, 'bytes'))], ['words used', share(number(group, 'used_share'))], ['used of the lines touched', share(number(group, 'line_used_share'))], ['fetched and not used', bytes(number(group, 'unused_line_bytes'))]]),
    map(group),
    rows(group.alloc_stack).length ? titled('allocated at', stack(rows(group.alloc_stack))) : null,
    rows(group.free_stack).length ? titled('freed at', stack(rows(group.free_stack))) : null);
}

export function objectsViews(document: Row): View[] {
  return [{ id: 'objects-groups', title: 'Objects', question: 'Which objects fill lines with words that nobody uses? A row opens to the map of its words.',
    about: (finding) => exactly(rows(document.groups).filter((row) => [text(row, 'name'), `${text(row, 'file')}:${number(row, 'line')}`].includes(text(finding, 'location'))).map((row) => text(row, 'name'))),
    make: (filter) => table({ name: 'groups of objects', rows: rows(document.groups), filter, sort: 'score', open: groupDetail, columns: [
      figures('score', 'score', count, { bar: true, help: 'hotness of lines that are partly used: most fragmented first' }),
      figures('objects', 'count'),
      figures('size', 'size', bytes),
      figures('words used', 'used_share', share),
      figures('used of lines', 'line_used_share', share),
      figures('not used', 'unused_line_bytes', bytes, { bar: true, help: 'bytes of touched lines that are not used' }),
      figures('hotness', 'hotness'),
      words('kind', 'kind'),
      words('type', 'type'),
      words('group', 'name'),
    ] }) }];
}
