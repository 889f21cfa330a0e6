export interface ChartSeries {
  readonly label: string;
  /** A variable of chart.css. */
  readonly color: `--chart-${string}`;
  readonly shape: "bar" | "line" | "area";
  readonly values: readonly (number | null)[];
  /** Sums up the whole range; it is shown while nobody points at a value. */
  readonly summary: string;
}

export interface ChartProps {
  readonly title: string;
  /** They are seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly formatTime: (seconds: number) => string;
  /** The bars stand on top of each other, because the values are parts of a whole. */
  readonly isStacked?: boolean;
}

export const textOf = (value: number | null | undefined, format: (value: number) => string) =>
  value === null || value === undefined ? "–" : format(value);
