// Curves by uPlot, with axes in our units and colours of the page.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from './dom';
import { brief } from './format';

export interface Curve {
  name: string;
  values: (number | null)[];
  shown?: (number | null)[]; // what the legend says, where the curve is a sum: of all, so that none can be hidden
  fill?: boolean;
  steps?: boolean;
}

export interface ChartOptions {
  x: number[];
  end?: number; // where the last step ends; default: curves end at the last x
  curves: Curve[];
  showX: (value: number) => string;
  showY: (value: number) => string;
  logX?: boolean;
  isBytes?: boolean; // y: ticks at powers of two
  levels?: { name: string; value: number }[]; // dashed lines
  choose?: (index: number) => void; // a point was clicked
}

// Okabe and Ito's colours, told apart by all eyes.
export const kColours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b3a60a', '#8a8a8a'];

// A step is as wide as it is long only if there is something behind it: the last one goes on to the end.
function untilEnd({ x, end, curves, choose, ...more }: ChartOptions): ChartOptions {
  if (end === undefined || x.length === 0 || end <= x[x.length - 1]) return { x, curves, choose, ...more };
  const again = <T>(all: T[]) => [...all, all[all.length - 1]];
  const last = x.length - 1;
  return { ...more, x: [...x, end], choose: choose && ((at) => choose(Math.min(at, last))),
    curves: curves.map((curve) => ({ ...curve, values: again(curve.values), shown: curve.shown && again(curve.shown) })) };
}

export function chart(options: ChartOptions): HTMLElement {
  const { x, curves, showX, showY, logX, isBytes, levels = [], choose } = untilEnd(options);
  const isStacked = curves.some((curve) => curve.shown), hasSteps = curves.some((curve) => curve.steps);
  const holder = h('div', { class: isStacked ? 'chart stacked' : 'chart' });
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue('--ink').trim(), line = style.getPropertyValue('--line').trim();
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const largest = Math.max(...curves.flatMap((curve) => curve.values.map((value) => value ?? 0)), 0);
  const seen = levels.filter((level) => level.value <= largest * 1.6);
  const top = Math.max(largest, ...seen.map((level) => level.value)) * 1.05 || 1;
  const plot = new uPlot(
    {
      width: 900,
      height: 320,
      scales: { x: { time: false, ...(logX ? { distr: 3, log: 2 } : {}) }, y: { range: [0, top] } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : showX(tick))), ...(logX ? { space: 60 } : {}) },
        { ...axis, size: 90, ...(isBytes ? { incrs: Array.from({ length: 50 }, (_, power) => 2 ** power) } : {}), values: (_, ticks) => ticks.map(showY) },
      ],
      // Of steps, the one that the pointer is in; else the nearest point.
      cursor: hasSteps ? { dataIdx: (_, __, nearest, value) => (nearest > 0 && x[nearest] > value ? nearest - 1 : nearest) } : {},
      series: [
        { label: 'at', value: (_, value, __, index) => (value === null || index === null ? '' : hasSteps && index + 1 < x.length ? `${showX(value)} to ${showX(x[index + 1])}` : showX(value)) },
        ...curves.map((curve, at) => ({
          label: h('span', { title: curve.name }, brief(curve.name)),
          stroke: kColours[at % kColours.length],
          width: 1.5,
          fill: curve.fill ? kColours[at % kColours.length] : undefined,
          paths: curve.steps ? uPlot.paths.stepped!({ align: 1 }) : undefined,
          points: { show: curve.values.length < 40 && !curve.fill },
          value: (_: uPlot, value: number | null, __: number, index: number | null) => {
            const shown = curve.shown && index !== null ? curve.shown[index] : value;
            return shown === null || shown === undefined ? '' : showY(shown);
          },
        })),
      ],
      hooks: {
        draw: [
          (drawn) => {
            const context = drawn.ctx;
            context.save();
            context.strokeStyle = context.fillStyle = ink;
            context.setLineDash([6, 4]);
            for (const level of seen) {
              const y = drawn.valToPos(level.value, 'y', true);
              context.beginPath();
              context.moveTo(drawn.bbox.left, y);
              context.lineTo(drawn.bbox.left + drawn.bbox.width, y);
              context.stroke();
              context.fillText(level.name, drawn.bbox.left + 4, y - 4);
            }
            context.restore();
          },
        ],
      },
    },
    [x, ...curves.map((curve) => curve.values)],
    holder,
  );
  if (choose) plot.over.addEventListener('click', () => { const index = plot.cursor.idxs?.[0]; if (index !== null && index !== undefined) choose(index); });
  if (isStacked) holder.querySelector('.u-legend')!.addEventListener('click', (event) => event.stopPropagation(), { capture: true });
  const fit = new ResizeObserver(() => { if (holder.clientWidth > 100) plot.setSize({ width: holder.clientWidth, height: 320 }); });
  fit.observe(holder);
  return holder;
}
