import type { ReactNode } from "react";

/** Pattern of a bar, in addition to its colour, so that series can be distinguished without colours. */
export type Pattern = "solid" | "stripes" | "dots" | "lines";

export interface ChartSeries {
  readonly label: string;
  /** Name of a CSS variable that ui.css defines. */
  readonly color: `--chart-${string}`;
  readonly shape: "bar" | "line" | "area";
  /** Pattern of the series' bars; solid if absent. */
  readonly pattern?: Pattern;
  readonly values: readonly (number | null)[];
  /** Summary of the whole time span. The legend shows it while the pointer is not on the chart. */
  readonly summary: string;
}

/** One of the plots of a chart, with its own unit. */
export interface ChartPlot {
  readonly title: string;
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  /** True if the bars are stacked, which shows that the values are parts of a whole. */
  readonly isStacked?: boolean;
  /** Height of the plot in px. */
  readonly height?: number;
  /** Controls beside the title. */
  readonly actions?: ReactNode;
}

/** The time axis that all plots of a chart share. */
export interface TimeAxis {
  /** Times of the points as Unix time in seconds, ascending. */
  readonly times: readonly number[];
  /** Seconds between two points. */
  readonly step: number;
  readonly formatTime: (seconds: number) => string;
  /**
   * Called with the period, in Unix seconds, that the user selects by dragging over the chart or in two fields.
   * If absent, the chart offers no selection.
   */
  readonly onSelect?: SelectPeriod;
}

export interface ChartProps extends TimeAxis {
  /** Name of the chart for screen readers. */
  readonly title: string;
  /** The plots from top to bottom. */
  readonly plots: readonly ChartPlot[];
}

/** Properties of one plot with its time axis. */
export interface PlotProps extends TimeAxis, ChartPlot {
  /** Whether the plot shows the times of the axis, which the last plot of a chart does. */
  readonly hasTimes: boolean;
}

/** Default height of the plot in px. */
export const PLOT_PX = 180;

export type SelectPeriod = (since: number, until: number) => void;

export const textOf = (value: number | null | undefined, format: (value: number) => string) =>
  value === null || value === undefined ? "–" : format(value);

/** The point of a chart under the pointer. */
export interface ChartPoint {
  readonly index: number;
  /** Distance from the left edge of the chart in px. */
  readonly left: number;
  /** True if the point lies in the right half of the chart. */
  readonly isRight: boolean;
}

export type OnPoint = (point: ChartPoint | undefined) => void;
