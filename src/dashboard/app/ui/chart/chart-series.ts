export interface ChartSeries {
  readonly label: string;
  /** A variable of app.css. */
  readonly color: `--chart-${string}`;
  readonly shape: "bar" | "line" | "area";
  readonly values: readonly (number | null)[];
  /** Of the whole range, where no point is looked at. */
  readonly summary: string;
}

export interface ChartProps {
  readonly title: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly formatTime: (seconds: number) => string;
  /** Bars on top of each other: the values are parts of a whole. */
  readonly isStacked?: boolean;
}

export const textOf = (value: number | null | undefined, format: (value: number) => string) =>
  value === null || value === undefined ? "–" : format(value);
