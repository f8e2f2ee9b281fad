// Elements in one call.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | null | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(typeof child === 'number' ? String(child) : child);
  return element;
}

// A cell of a heat map; `heat` is 0 to 1.
export function heat(value: number): string {
  return `--heat: ${Math.round(Math.max(0, Math.min(1, value)) * 100)}%`;
}

// Four powers of ten are told apart; what is less, but not nothing, has the least heat that is seen.
export function logarithmic(value: number, most: number): number {
  return value <= 0 || most <= 0 ? 0 : Math.max(0.08, 1 + Math.log10(value / most) / 4);
}
