// Call stacks as a tree, drawn as an icicle: the width of a frame is its part of the whole, callers stand above what they call.

import { Row, rows, text } from './document';
import { h } from './dom';
import { baseName, count } from './format';

interface TreeNode {
  name: string;
  total: number;
  parent?: TreeNode;
  children: Map<string, TreeNode>;
}

export interface Measure {
  title: string;
  of: (context: Row) => number | null; // null: not known
  show: (value: number) => string;
}

const kMinWidth = 0.0015; // of the width; what is narrower is not drawn

function treeOf(contexts: Row[], measure: Measure, stackKey: string): TreeNode {
  const root: TreeNode = { name: 'all', total: 0, children: new Map() };
  for (const context of contexts) {
    const value = measure.of(context);
    if (value === null || value <= 0) continue;
    let node = root;
    node.total += value;
    const stack = rows(context[stackKey]);
    for (let at = stack.length - 1; at >= 0; at--) {
      const name = text(stack[at], 'function') || `${baseName(text(stack[at], 'module'))} ${text(stack[at], 'address')}`;
      let child = node.children.get(name);
      if (!child) node.children.set(name, (child = { name, total: 0, parent: node, children: new Map() }));
      child.total += value;
      node = child;
    }
    const type = text(context, 'type');
    if (type) {
      let child = node.children.get(`new ${type}`);
      if (!child) node.children.set(`new ${type}`, (child = { name: `new ${type}`, total: 0, parent: node, children: new Map() }));
      child.total += value;
    }
  }
  return root;
}

export function flame(contexts: Row[], measures: Measure[], stackKey = 'stack'): HTMLElement {
  let measure = measures[0];
  let root = treeOf(contexts, measure, stackKey);
  let top = root;
  const chart = h('div', { class: 'flame', role: 'tree', 'aria-label': 'call tree' });
  const path = h('nav', { class: 'path', 'aria-label': 'callers of the frame shown' });
  const found = h('output', {});
  const search = h('input', { type: 'search', placeholder: 'find functions (regular expression)', 'aria-label': 'find functions', input: draw });
  const choice = h('select', { 'aria-label': 'measure', change: () => { measure = measures[choice.selectedIndex]; top = root = treeOf(contexts, measure, stackKey); draw(); } },
    ...measures.map((each) => h('option', {}, each.title)));

  function pattern(): RegExp | null {
    search.setCustomValidity('');
    try {
      return search.value ? new RegExp(search.value, 'i') : null;
    } catch {
      search.setCustomValidity('this is no regular expression');
      return null;
    }
  }

  function draw() {
    const wanted = pattern();
    const boxes: HTMLElement[] = [];
    let depth = 0;
    let foundTotal = 0;
    const visit = (node: TreeNode, left: number, level: number, inFound: boolean) => {
      const width = node.total / (top.total || 1);
      const isFound = !!wanted && wanted.test(node.name);
      if (isFound && !inFound) foundTotal += node.total;
      if (width >= kMinWidth) {
        depth = Math.max(depth, level);
        const label = `${node.name}: ${measure.show(node.total)}, ${((node.total / (root.total || 1)) * 100).toFixed(1)} %`;
        const open = () => { top = node; draw(); chart.querySelector<HTMLElement>('button')?.focus(); };
        boxes.push(h('button', { type: 'button', role: 'treeitem', class: isFound ? 'found' : null, title: label, 'aria-label': label, 'aria-level': level + 1,
          style: `left:${(left * 100).toFixed(3)}%;width:${(width * 100).toFixed(3)}%;top:${level * 1.45}rem;--tint:${tintOf(node.name)}`, click: open }, width > 0.02 ? node.name : ''));
      } else if (!wanted) return;
      let at = left;
      for (const child of [...node.children.values()].sort((a, b) => b.total - a.total)) {
        visit(child, at, level + 1, inFound || isFound);
        at += child.total / (top.total || 1);
      }
    };
    visit(top, 0, 0, false);
    chart.style.height = `${(depth + 1) * 1.45}rem`;
    chart.replaceChildren(...boxes);
    const unknown = contexts.filter((context) => measure.of(context) === null).length;
    const all = unknown ? `${measure.show(top.total)}, ${count(contexts.length)} call stacks; not known of ${count(unknown)}` : `${measure.show(top.total)}, ${count(contexts.length)} call stacks`;
    if (unknown && unknown === contexts.length) found.textContent = `${measure.title}: not known`;
    else found.textContent = wanted ? `${measure.show(foundTotal)} in stacks with a match (${((foundTotal / (top.total || 1)) * 100).toFixed(1)} %)` : all;
    const callers: TreeNode[] = [];
    for (let node: TreeNode | undefined = top; node; node = node.parent) callers.unshift(node);
    path.replaceChildren(...callers.map((node) => h('button', { type: 'button', click: () => { top = node; draw(); } }, node.name)));
    path.hidden = callers.length < 2;
  }
  chart.addEventListener('keydown', (event) => { if (event.key === 'Escape' && top.parent) { top = top.parent; draw(); chart.querySelector<HTMLElement>('button')?.focus(); } });
  draw();
  return h('section', { class: 'tree' }, h('div', { class: 'tools' }, choice, search, found), path, chart);
}

// The same name has the same tint, between 0 and 1.
function tintOf(name: string): string {
  let hash = 7;
  for (const each of name) hash = (hash * 31 + each.charCodeAt(0)) >>> 0;
  return ((hash % 100) / 100).toFixed(2);
}
