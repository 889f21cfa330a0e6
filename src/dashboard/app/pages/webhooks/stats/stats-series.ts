import type { ChartSeries } from "../../../ui/chart/chart-series.ts";
import { milliseconds, number } from "../../../ui/format.ts";
import type { Stats } from "../data/reads.ts";

const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0);

/** Puts the present length of the queue into the last point, because the server samples it now and then only. */
export function withPresent(stats: Stats, queued: number): Stats {
  const last = stats.points.length - 1;
  const points = stats.points.map((one, i) =>
    i === last ? { ...one, backlog: Math.max(one.backlog, queued) } : one,
  );
  return { ...stats, points };
}

/** Makes the series of the charts, each with a summary of the whole range. */
export function chartSeries({ points }: Stats) {
  const successes = points.map((one) => one.successes);
  const failures = points.map((one) => one.failures);
  const backlog = points.map((one) => one.backlog);
  const attempts: ChartSeries[] = [
    {
      label: "Failures",
      color: "--chart-bad",
      shape: "bar",
      values: failures,
      summary: number(sum(failures)),
    },
    {
      label: "Successes",
      color: "--chart-good",
      shape: "bar",
      values: successes,
      summary: number(sum(successes)),
    },
  ];
  return {
    times: points.map(({ at }) => Date.parse(at) / 1_000),
    attempts,
    latency: [
      latencySeries(points, "p50", "--chart-low"),
      latencySeries(points, "p95", "--chart-mid"),
      latencySeries(points, "p99", "--chart-high"),
    ],
    backlog: [
      {
        label: "Most events in the queue",
        color: "--chart-backlog",
        shape: "area",
        values: backlog,
        summary: number(Math.max(0, ...backlog)),
      },
    ] satisfies ChartSeries[],
  };
}

/** Percentiles of a whole range cannot be had from those of its parts: the legend says the highest. */
function latencySeries(
  points: Stats["points"],
  percentile: "p50" | "p95" | "p99",
  color: ChartSeries["color"],
): ChartSeries {
  const values = points.map((one) => one.latency_ms[percentile]);
  const known = values.filter((value) => value !== null);
  const summary = known.length === 0 ? "–" : `up to ${milliseconds(Math.max(...known))}`;
  return { label: percentile, color, shape: "line", values, summary };
}
