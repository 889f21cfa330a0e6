/** What a bar is filled with beside its colour, so that no two need to be told apart by colour alone. */
export type Pattern = "solid" | "stripes" | "dots" | "lines";

export interface ChartSeries {
  readonly label: string;
  /** A variable of chart.css. */
  readonly color: `--chart-${string}`;
  readonly shape: "bar" | "line" | "area";
  /** Of a bar; solid if absent. */
  readonly pattern?: Pattern;
  readonly values: readonly (number | null)[];
  /** Sums up the whole range; it is shown while nobody points at a value. */
  readonly summary: string;
}

export interface ChartProps {
  readonly title: string;
  /** They are seconds since 1970, ascending. */
  readonly times: readonly number[];
  /** Seconds from one to the next. */
  readonly step: number;
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly formatTime: (seconds: number) => string;
  /** The bars stand on top of each other, because the values are parts of a whole. */
  readonly isStacked?: boolean;
  /** Of the plot, in px. */
  readonly height?: number;
  /** Called with a period in seconds, by who drags over the chart or chooses its ends; without it neither is there. */
  readonly onSelect?: SelectPeriod;
}

/** How high the plot is where nothing else is said. */
export const PLOT_PX = 180;

export type SelectPeriod = (since: number, until: number) => void;

export const textOf = (value: number | null | undefined, format: (value: number) => string) =>
  value === null || value === undefined ? "–" : format(value);
