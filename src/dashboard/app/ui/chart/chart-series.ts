/** The pattern of a bar in addition to its colour, so that series are distinguishable without colour. */
export type Pattern = "solid" | "stripes" | "dots" | "lines";

export interface ChartSeries {
  readonly label: string;
  /** The name of a variable of chart.css. */
  readonly color: `--chart-${string}`;
  readonly shape: "bar" | "line" | "area";
  /** The pattern of the bars; solid if absent. */
  readonly pattern?: Pattern;
  readonly values: readonly (number | null)[];
  /** A summary of the whole range, shown while the pointer is not on the chart. */
  readonly summary: string;
}

export interface ChartProps {
  readonly title: string;
  /** Unix time in seconds, ascending. */
  readonly times: readonly number[];
  /** Seconds between two points. */
  readonly step: number;
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly formatTime: (seconds: number) => string;
  /** Stacks the bars, because the values are parts of a whole. */
  readonly isStacked?: boolean;
  /** The height of the plot in px. */
  readonly height?: number;
  /**
   * Called with a period in seconds, which the user selects by dragging over the chart or in two fields. If
   * absent, the chart has no selection.
   */
  readonly onSelect?: SelectPeriod;
}

/** The default height of the plot in px. */
export const PLOT_PX = 180;

export type SelectPeriod = (since: number, until: number) => void;

export const textOf = (value: number | null | undefined, format: (value: number) => string) =>
  value === null || value === undefined ? "–" : format(value);
