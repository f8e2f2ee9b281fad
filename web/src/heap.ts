// assay heap: allocation sites, the call tree, types, live bytes over time.

import { Row, number, rows, text, isRow } from './document';
import { byteSeconds, bytes, count, frame, isPlace, microseconds, share } from './format';
import { h } from './dom';
import { chart } from './chart';
import { flame, Measure } from './flame';
import { Column, table, figures, numberIf, words } from './table';
import { View, bars, definitions, exactly, stack, titled } from './view';

const mean = (row: Row, key: string) => (number(row, 'alloc_count') ? number(row, `${key}.total`) / number(row, 'alloc_count') : 0);

// What is said of accesses, of a row whose accesses were counted: part of a program may be without.
const ofAccesses = (row: Row, path: string) => (row.accesses_counted === false ? null : numberIf(row, path));
// Of what a library makes that is not counted, the accesses of the program's own code.
const accessesOf = (row: Row) => (row.accesses_counted === false && !number(row, 'access_count.total') ? null : numberIf(row, 'access_count.total'));
function writesShare(row: Row): number | null {
  const reads = ofAccesses(row, 'reads'), writes = ofAccesses(row, 'writes');
  return reads === null || writes === null ? null : reads + writes ? writes / (reads + writes) : 0;
}
const temporaryShare = (row: Row) => (number(row, 'alloc_count') ? number(row, 'temporary_count') / number(row, 'alloc_count') : 0);
const shown = (value: number | null, show: (value: number) => string) => (value === null ? '-' : show(value));

function columns(accesses: boolean): Column<Row>[] {
  const all: (Column<Row> | false)[] = [
    figures('objects', 'alloc_count', count, { bar: true }),
    figures('bytes', 'size.total', bytes, { bar: true }),
    { title: 'mean size', value: (row) => mean(row, 'size'), show: (row) => bytes(mean(row, 'size')) },
    accesses && figures('accesses', 'access_count.total', count, { bar: true, value: (row) => accessesOf(row), help: 'executed loads and stores of these objects' }),
    accesses && { title: 'writes', value: writesShare, show: (row) => (number(row, 'reads') + number(row, 'writes') ? shown(writesShare(row), share) : ''), help: 'the part of the accesses that are stores' },
    accesses && figures('used', 'used_share', share, { value: (row) => ofAccesses(row, 'used_share'), help: 'the part of the 64-byte blocks of the objects that was touched' }),
    accesses && figures('untouched', 'cold_byte_us', byteSeconds, { bar: true, value: (row) => ofAccesses(row, 'cold_byte_us'), help: 'bytes that were never touched, times how long they were held' }),
    { title: 'lifetime', value: (row) => mean(row, 'lifetime_us'), show: (row) => microseconds(mean(row, 'lifetime_us')), help: 'mean of the objects' },
    { title: 'temporary', value: temporaryShare, show: (row) => share(temporaryShare(row)), help: 'the part of the objects that was freed before the next allocation' },
    figures('live', 'live_bytes', bytes, { help: 'not freed at the end' }),
    figures('at peak', 'at_peak_bytes', bytes, { help: 'live when the program had most' }),
  ];
  return all.filter((column): column is Column<Row> => !!column);
}

const kShownOnce = 50; // stacks of a site that are drawn when it opens

function contextsOfSite(document: Row, site: Row): Node {
  const where = site.site;
  const mine = rows(document.contexts)
    .filter((context) => {
      const owner = rows(context.stack)[number(context, 'owner')];
      return isRow(where) && owner && frame(owner) === frame(where) && text(owner, 'file') === text(where, 'file') && text(context, 'type') === text(site, 'type') && context.accesses_counted === site.accesses_counted;
    })
    .sort((a, b) => number(b, 'size.total') - number(a, 'size.total'));
  return h('div', { class: 'contexts' }, h('p', {}, `${count(mine.length)} call stacks, most bytes first${mine.length > kShownOnce ? `; the first ${kShownOnce}` : ''}`), ...mine.slice(0, kShownOnce).map(contextDetail));
}

function contextDetail(context: Row): HTMLElement {
  const histograms = isRow(context.histograms) ? context.histograms : {};
  const buckets = (key: string) => (Array.isArray(histograms[key]) ? (histograms[key] as number[][]) : []);
  return h('article', { class: 'context' },
    definitions([
      ['objects', count(number(context, 'alloc_count'))],
      ['bytes', bytes(number(context, 'size.total'))],
      ['accesses', shown(accessesOf(context), count)],
      ['used', shown(ofAccesses(context, 'used_share'), share)],
      ['lifetime', `${microseconds(number(context, 'lifetime_us.min'))} to ${microseconds(number(context, 'lifetime_us.max'))}`],
      ['live at the end', bytes(number(context, 'live_bytes'))],
      ['freed on another cpu', count(number(context, 'migrated_cpu'))],
    ]),
    buckets('size').length > 1 ? histogram('sizes', buckets('size'), bytes) : null,
    buckets('lifetime_us').length > 1 ? histogram('lifetimes', buckets('lifetime_us'), microseconds) : null,
    stack(rows(context.stack)),
    ...rows(context.free_stacks).slice(0, 3).map((each) => titled(`freed ${count(number(each, 'count'))} times`, stack(rows(each.stack)))));
}

const histogram = (name: string, buckets: number[][], show: (value: number) => string) =>
  bars(name, buckets.map(([from, objects]) => ({ label: show(from), value: objects, text: count(objects), title: `from ${show(from)}: ${count(objects)} objects` })));

export function heapViews(document: Row): View[] {
  const accesses = isRow(document.coverage) && document.coverage.accesses_counted === true;
  const sites = rows(document.sites), contexts = rows(document.contexts), timeline = rows(document.timeline);
  const measures: Measure[] = [
    { title: 'bytes allocated', of: (row) => number(row, 'size.total'), show: bytes },
    { title: 'objects', of: (row) => number(row, 'alloc_count'), show: count },
    { title: 'bytes at the peak', of: (row) => numberIf(row, 'at_peak_bytes'), show: bytes },
    { title: 'temporary objects', of: (row) => number(row, 'temporary_count'), show: count },
    { title: 'live bytes at the end', of: (row) => number(row, 'live_bytes'), show: bytes },
  ];
  if (accesses) measures.splice(2, 0, { title: 'accesses', of: (row) => accessesOf(row), show: count }, { title: 'untouched bytes × time', of: (row) => ofAccesses(row, 'cold_byte_us'), show: byteSeconds });
  const where = (row: Row) => (isRow(row.site) ? frame(row.site) : text(row, 'origin'));
  const views: View[] = [
    {
      id: 'heap-sites', title: 'Allocations', question: 'Which allocations are large, hot, cold or short-lived? A row opens to its call stacks.',
      make: (filter) => table({ name: 'allocation sites', rows: sites, filter, sort: 'bytes', open: (site) => contextsOfSite(document, site),
        columns: [...columns(accesses), words('type', 'type'), { title: 'where', value: where }] }),
      about: (finding) => exactly(sites.map(where).filter((each) => isPlace(text(finding, 'location'), each))),
    },
    { id: 'heap-tree', title: 'Call tree', question: 'Who allocates? Callers stand above what they call; a click makes a frame the whole, Escape goes back.', make: () => flame(contexts, measures) },
    { id: 'heap-types', title: 'Types', question: 'Which types fill the heap?', make: (filter) => table({ name: 'types', rows: rows(document.types), filter, sort: 'bytes', columns: [...columns(accesses), { title: 'type', value: (row) => text(row, 'name') || 'unknown' }] }) },
    { id: 'heap-modules', title: 'Modules', question: 'Which executables and libraries allocate?', make: (filter) => table({ name: 'modules', rows: rows(document.modules), filter, sort: 'bytes', columns: [...columns(accesses), words('module', 'name')] }) },
  ];
  if (timeline.length > 1)
    views.push({ id: 'heap-timeline', title: 'Over time', question: 'How many bytes are live, when?',
      make: () => chart({ x: timeline.map((each) => number(each, 'time_us')), showX: microseconds, showY: bytes, isBytes: true, curves: [{ name: 'live bytes', values: timeline.map((each) => number(each, 'live_bytes')), fill: true, steps: true }] }) });
  return views;
}
