// The page: a header, tabs, one view at a time. The address names the view, so that it can be linked to.

import './style.css';
import { Row, embeddedDocument, isRow, number, rows, text } from './document';
import { h } from './dom';
import { baseName, bytes, count, counted, share, shellCommand } from './format';
import { diffViews, everything } from './data';
import { fieldsViews } from './fields';
import { heapViews } from './heap';
import { objectsViews } from './objects';
import { reportViews } from './report';
import { cacheViews, countsViews, coverageViews, curveViews, explainViews, reuseViews } from './trace';
import { valuesViews } from './values';
import { View, Views } from './view';
import { workingsetViews } from './workingset';

const kViews: Record<string, Views> = {
  'assay.heap/1': heapViews,
  'assay.workingset/1': workingsetViews,
  'assay.fields/1': fieldsViews,
  'assay.objects/1': objectsViews,
  'assay.values/1': valuesViews,
  'assay.report/1': reportViews,
  'assay.trace/1': coverageViews,
  'assay.trace-counts/1': countsViews,
  'assay.trace-cache/1': cacheViews,
  'assay.trace-reuse/1': reuseViews,
  'assay.trace-mrc/1': curveViews,
  'assay.explain/1': explainViews,
  'assay.diff/1': diffViews,
};

// What each tool says of it, where several do.
function evidence(finding: Row): HTMLElement[] {
  const facts = rows(finding.facts);
  if (facts.length === 0) return [h('p', {}, text(finding, 'evidence'))];
  return facts.map((fact) => h('p', {}, h('b', {}, `${text(fact, 'tool')}: `), text(fact, 'text')));
}

// The view that has the rows that a finding is about, and the filter that leaves these.
function rowsAbout(finding: Row, views: View[]): { view: View; filter: string } | undefined {
  return views.map((view) => ({ view, filter: view.about?.(finding) ?? '' })).find(({ filter }) => filter);
}

function findings(of: Row, views: View[], show: (view: View, filter: string) => void): HTMLElement {
  const all = rows(of.findings);
  if (all.length === 0) return h('p', { class: 'empty' }, 'No finding: nothing stands out, or too little was measured to say so.');
  return h('ol', { class: 'findings' }, ...all.map((finding) => {
    const caveats = Array.isArray(finding.qualified_by) ? finding.qualified_by.join(', ') : '';
    const place = text(finding, 'location'), about = rowsAbout(finding, views);
    return h('li', {}, h('h3', {}, text(finding, 'message')), ...evidence(finding), h('p', { class: 'advice' }, `do: ${text(finding, 'action')}`),
      rows(finding.facts).length ? h('p', {}, `at stake: ${share(number(finding, 'weight_share'))} of the run`) : null,
      h('p', { class: 'note' }, `saves up to ${text(finding, 'saves.unit') === 'bytes' ? bytes(number(finding, 'saves.amount')) : `${count(number(finding, 'saves.amount'))} ${text(finding, 'saves.unit')}`}; rule ${text(finding, 'rule')}`,
        caveats ? `; less certain because of: ${caveats}` : ''),
      place || about ? h('p', {}, `${place} `, about && h('button', { type: 'button', click: () => show(about.view, about.filter) }, `show in ${about.view.title}`)) : null);
  }));
}

// What of the program nothing was built into, or has no names.
function uncovered(of: Row): string[] {
  if (!isRow(of.coverage)) return [];
  const built = number(of.coverage, 'modules_instrumented'), modules = number(of.coverage, 'modules');
  const nameless = Array.isArray(of.coverage.modules_without_symbols) ? of.coverage.modules_without_symbols.map(String) : [];
  return [built < modules ? `${count(built)} of ${count(modules)} modules ${built === 1 ? 'was' : 'were'} built with assay-cc; accesses by the others are not counted` : '',
    nameless.length ? `no symbols, so functions are shown as addresses: ${nameless.map(baseName).join(', ')}` : ''].filter(Boolean);
}

// "3 processes: what happened; what to do", as the reports in text say it.
function lossText(loss: Row): string {
  const times = number(loss, 'count'), unit = text(loss, 'unit'), what = text(loss, 'why') || text(loss, 'kind'), remedy = text(loss, 'remedy');
  return (unit ? `${counted(times, unit)}: ${what}` : times > 1 ? `${what} (${count(times)})` : what) + (remedy ? `; ${remedy}` : '');
}

function header(of: Row, name: string): HTMLElement {
  const programs = rows(of.programs).map((each) => baseName(text(each, 'program.path')));
  const program = isRow(of.program) && programs.length < 2 ? of.program : {}, machine = isRow(of.machine) ? of.machine : {};
  const path = text(program, 'path') || text(of, 'path');
  const command = Array.isArray(program.arguments) ? shellCommand(program.arguments.map(String)) : path;
  const losses = rows(of.losses), notes = [...uncovered(of), ...(Array.isArray(of.notes) ? of.notes : [])];
  document.title = `assay ${name}${programs.length > 1 ? `: ${programs.length} programs` : path ? `: ${baseName(path)}` : ''}`;
  return h('header', {}, h('h1', {}, `assay ${name}`), command ? h('p', { class: 'command' }, h('code', {}, command)) : null,
    programs.length > 1 ? h('p', {}, `${programs.length} programs: ${programs.join(', ')}`) : null,
    h('p', { class: 'note' }, [text(machine, 'cpu_model'), number(machine, 'cpus') ? `${number(machine, 'cpus')} processors` : '', text(program, 'build_id') ? `build id ${text(program, 'build_id')}` : ''].filter(Boolean).join(', ')),
    text(of, 'unit') ? h('p', { class: 'note' }, `What is counted: ${text(of, 'unit')}.`) : null,
    losses.length + notes.length ? h('div', { class: 'losses', role: 'note' }, h('strong', {}, 'Not measured: '), h('ul', {}, ...losses.map((loss) => h('li', {}, lossText(loss))), ...notes.map((note) => h('li', {}, isRow(note) ? text(note, 'message') || JSON.stringify(note) : String(note))))) : null);
}

// What is shown one at a time: all programs and each of them, or each process.
function partsOf(root: Row): { title: string; of: Row }[] {
  const programs = rows(root.programs).map((of) => ({ title: text(of, 'program.path'), of }));
  const processes = rows(root.processes).filter((each) => text(each, 'schema'));
  const process = (of: Row) => ({ title: `process ${number(of, 'pid')}: ${baseName(text(of, 'program.path'))}, ${bytes(number(of, 'largest_bytes'))} at most`, of });
  return processes.length ? [root, ...processes].map(process) : [{ title: 'all programs', of: root }, ...programs];
}

function page(root: Row): HTMLElement {
  const parts = partsOf(root);
  const content = h('div', { class: 'page' });
  const schema = text(root, 'schema'), name = schema.replace(/^assay\./, '').replace(/\/.*/, '').replace('-', ' ');
  const show = (of: Row) => content.replaceChildren(header(of, name), viewsOf(of));
  show(root);
  if (parts.length < 2) return content;
  const choice = h('select', { 'aria-label': 'program', change: () => show(parts[choice.selectedIndex].of) },
    ...parts.map((each) => h('option', {}, each.title)));
  return h('div', {}, h('div', { class: 'tools programs' }, choice), content);
}

function viewsOf(of: Row): HTMLElement {
  const own = kViews[text(of, 'schema')]?.(of) ?? [];
  const views: View[] = [];
  if (Array.isArray(of.findings)) views.push({ id: 'findings', title: `Findings (${rows(of.findings).length})`, question: 'What is worth changing?', make: () => findings(of, own, open) });
  views.push(...own, { id: 'data', title: 'All data', question: 'Everything that --format json has.', make: () => everything('document', of) });
  const made = new Map<string, HTMLElement>();
  const panel = h('div', { role: 'tabpanel', id: 'panel', tabindex: -1 });
  const tabs = views.map((view) => h('button', { type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': 'panel', click: () => open(view) }, view.title));
  function open(view: View, filter = '') {
    if (filter || !made.has(view.id)) made.set(view.id, h('div', {}, h('p', { class: 'question' }, view.question), view.make(filter)));
    panel.replaceChildren(made.get(view.id)!);
    panel.setAttribute('aria-labelledby', `tab-${view.id}`);
    tabs.forEach((tab, at) => {
      tab.setAttribute('aria-selected', String(views[at] === view));
      tab.tabIndex = views[at] === view ? 0 : -1;
    });
    history.replaceState(null, '', `#${view.id}`);
  }
  const bar = h('div', { role: 'tablist', 'aria-label': 'views' }, ...tabs);
  bar.addEventListener('keydown', (event) => {
    const at = tabs.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    tab.focus();
    tab.click();
  });
  const wanted = location.hash.slice(1);
  open(views.find((view) => view.id === wanted) ?? (rows(of.findings).length ? views[0] : own[0] ?? views[0]));
  return h('div', {}, bar, panel);
}

declare global {
  interface Window { assayDocument?: Row }
}

const app = document.getElementById('app')!;
embeddedDocument()
  .then((root) => {
    window.assayDocument = root;
    app.replaceChildren(page(root));
    app.dataset.ready = 'true';
  })
  .catch((error: Error) => app.replaceChildren(h('p', { class: 'losses' }, `This page cannot be shown: ${error.message}`)));
