// assay objects: the words of each group of objects, line by line.

import { Row, number, rows } from './document';
import { bytes, count, share } from './format';
import { h, heat, logarithmic } from './dom';
import { table, figures, words } from './table';
import { View, definitions, stack, titled } from './view';

const kLine = 64;
const kMaxLines = 512; // of a map; the rest is said in words

function map(group: Row): HTMLElement {
  const words = rows(group.words), cell = number(group, 'cell_bytes') || 4;
  const most = Math.max(...words.map((word) => number(word, 'hotness')), 1);
  const lines = new Map<number, Row[]>();
  for (const word of words) {
    const line = Math.floor(number(word, 'offset') / kLine);
    lines.set(line, [...(lines.get(line) ?? []), word]);
  }
  const drawn = [...lines].sort(([a], [b]) => a - b);
  return h('figure', { class: 'words' },
    h('figcaption', {}, `A row is a line of ${kLine} bytes, a cell ${cell} bytes; darker cells are hotter (logarithmic), the height is the part of the objects in which they are used.${drawn.length > kMaxLines ? ` The first ${kMaxLines} of ${drawn.length} lines.` : ''}`),
    ...drawn.slice(0, kMaxLines).map(([line, cells]) => h('div', { class: 'line' }, h('span', { class: 'offset' }, `${line * kLine}`),
      h('div', { class: 'cells' }, ...cells.map((word) => h('span', { class: 'word', title: `at ${number(word, 'offset')}: hotness ${count(number(word, 'hotness'))}, used in ${share(number(word, 'accessed_share'))} of the objects`,
        style: `left:${((number(word, 'offset') % kLine) / kLine) * 100}%;width:${(cell / kLine) * 100}%;height:${Math.max(number(word, 'accessed_share') > 0 ? 8 : 0, number(word, 'accessed_share') * 100)}%;${heat(logarithmic(number(word, 'hotness'), most))}` }))))));
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
