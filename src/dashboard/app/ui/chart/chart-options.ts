import uPlot from "uplot";

import {
  type ChartPoint,
  type ChartSeries,
  type OnPoint,
  type Pattern,
  PLOT_PX,
  type PlotProps,
  type TimeAxis,
} from "./chart-series.ts";

const TILE = 6;

/**
 * Returns the fill style of a bar on the canvas. Patterns have an opaque background, because the bars of a
 * stack are drawn over each other.
 */
function fillOf(color: string, pattern: Pattern, background: string): string | CanvasPattern {
  if (pattern === "solid") return color;
  const tile = document.createElement("canvas");
  const ratio = window.devicePixelRatio;
  tile.width = tile.height = Math.round(TILE * ratio);
  const context = tile.getContext("2d");
  if (context === null) return color;
  context.scale(tile.width / TILE, tile.height / TILE);
  context.fillStyle = background;
  context.fillRect(0, 0, TILE, TILE);
  context.globalAlpha = 0.35;
  context.fillStyle = color;
  context.fillRect(0, 0, TILE, TILE);
  context.globalAlpha = 1;
  draw(context, pattern, color);
  return context.createPattern(tile, "repeat") ?? color;
}

function draw(context: CanvasRenderingContext2D, pattern: Pattern, color: string): void {
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  if (pattern === "dots") context.arc(TILE / 2, TILE / 2, 1.6, 0, 2 * Math.PI);
  if (pattern === "lines") line(context, [0, TILE / 2], [TILE, TILE / 2]);
  // Draws each diagonal line three times with an offset, so that lines continue across the edges of adjacent
  // pattern tiles.
  if (pattern === "stripes")
    for (const shift of [-TILE, 0, TILE]) line(context, [shift, TILE], [shift + TILE, 0]);
  if (pattern === "dots") context.fill();
  else context.stroke();
}

type Point = readonly [x: number, y: number];

function line(context: CanvasRenderingContext2D, from: Point, to: Point): void {
  context.moveTo(...from);
  context.lineTo(...to);
}

const DAY_S = 86_400;
/** Distance in px below which a drag over the chart counts as a click. */
const CLICK_PX = 6;
const HOUR_FORMAT = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const DAY_FORMAT = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const COUNT_STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7,
];

interface PresentPlot extends PlotProps {
  readonly onPoint: OnPoint;
}

/**
 * Builds the uPlot options of a chart, with the colours that the style sheet currently defines for its element. uPlot
 * calls functions in the options after later renders, so these functions call `present` to get the latest properties.
 */
export function chartOptions(present: () => PresentPlot, element: HTMLElement): uPlot.Options {
  const { series, height = PLOT_PX, hasTimes, onSelect } = present();
  const color = (name: string) => computedColor(element, name);
  const axis = {
    stroke: color("--chart-text"),
    grid: { stroke: color("--chart-grid"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    padding: [8, 24, hasTimes ? 0 : 8, 0],
    cursor: {
      y: false,
      // Marks the time under the pointer in all charts of a page.
      sync: { key: "charts" },
      drag: { x: onSelect !== undefined, y: false, setScale: false, dist: CLICK_PX },
      points: { size: 7 },
    },
    scales: {
      // Extends the time axis by half a step on both sides, so that the first and the last bar are not cut off.
      x: { range: (_, min, max) => [min - present().step / 2, max + present().step / 2] },
      y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        show: hasTimes,
        grid: { show: false },
        size: 28,
        space: 80,
        values: (plot, at) => timeLabels(plot, at),
      },
      {
        ...axis,
        size: 56,
        incrs: COUNT_STEPS,
        values: (_, splits) => splits.map((value) => present().format(value)),
      },
    ],
    series: [{}, ...series.map((one) => seriesOptions(one, color))],
    hooks: {
      setCursor: [(plot) => present().onPoint(pointOf(plot))],
      setSelect: [(plot) => selectSteps(plot, present())],
    },
  };
}

/** Returns the point under the pointer of this chart. The other charts only mark its time. */
function pointOf({ cursor, over, data }: uPlot): ChartPoint | undefined {
  const { idx, left = -1, event } = cursor;
  const at = typeof idx === "number" ? data[0][idx] : undefined;
  if (typeof idx !== "number" || at === undefined || left < 0 || event?.target !== over)
    return undefined;
  return { index: idx, left: over.offsetLeft + left, isRight: left > over.clientWidth / 2 };
}

/**
 * Reports the whole time steps that the user dragged over. Clears the selection on the canvas, because the page
 * shows the selected period itself.
 */
function selectSteps(plot: uPlot, { times, step, onSelect }: TimeAxis): void {
  const { left, width } = plot.select;
  if (width === 0) return;
  const first = times[plot.posToIdx(left)];
  const last = times[plot.posToIdx(left + width)];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (first !== undefined && last !== undefined) onSelect?.(first, last + step);
}

function seriesOptions(
  { label, color: name, shape, pattern = "solid" }: ChartSeries,
  color: (name: string) => string,
): uPlot.Series {
  const stroke = color(name);
  const bars = uPlot.paths.bars?.({ size: [0.8, 24], radius: 0.15 });
  if (shape === "bar") {
    const fill = fillOf(stroke, pattern, color("--mantine-color-body"));
    return { label, width: 0, fill, points: { show: false }, ...(bars && { paths: bars }) };
  }
  return {
    label,
    stroke,
    width: 1.75,
    points: { size: 5, filter: isolatedPoints },
    ...(shape === "area" && { fill: `color-mix(in srgb, ${stroke} 18%, transparent)` }),
  };
}

/**
 * Returns the indexes of points between two gaps. A line chart draws them as dots, because no line passes
 * through them.
 */
function isolatedPoints({ data }: uPlot, series: number): number[] {
  const values = data[series] ?? [];
  const isGap = (at: number) => values[at] === null || values[at] === undefined;
  return [...values.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1));
}

function timeLabels({ scales }: uPlot, splits: readonly number[]): string[] {
  const { min = 0, max = 0 } = scales["x"] ?? {};
  const format = (max ?? 0) - (min ?? 0) > 2 * DAY_S ? DAY_FORMAT : HOUR_FORMAT;
  return splits.map((seconds) => format.format(seconds * 1_000));
}

/** Returns the computed colour of a CSS variable. A canvas cannot resolve CSS variables itself. */
function computedColor(element: HTMLElement, name: string): string {
  // Disables transitions, because with reduced motion every change is a short transition, and the computed
  // colour would still be the previous colour.
  element.style.transitionProperty = "none";
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  element.style.transitionProperty = "";
  return color;
}
