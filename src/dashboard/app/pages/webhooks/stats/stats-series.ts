import type { ChartSeries } from "../../../ui/chart/chart-series.ts";
import { counted, milliseconds, number } from "../../../ui/format.ts";
import type { Stats } from "../data/reads.ts";

const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0);

/** Statistics whose last point has the current length of the queue (`queued`), if the statistics end now. */
export interface ShownStats extends Omit<Stats, "points"> {
  readonly points: readonly (Stats["points"][number] & { readonly queued?: number })[];
}

/**
 * Adds the current length of the queue to the last point of the statistics, because the server samples the
 * length only every five minutes.
 */
export function withPresent(stats: Stats, queued: number, now: number): ShownStats {
  if (Date.parse(stats.until) < now) return stats;
  const last = stats.points.length - 1;
  const points = stats.points.map((one, i) =>
    i === last ? { ...one, backlog: Math.max(one.backlog, queued), queued } : one,
  );
  return { ...stats, points };
}

/** Formats a percentile of the latency. It is read from bins, and deviates by up to 5 %. */
export const latency = (ms: number | null): string =>
  ms === null ? milliseconds(ms) : `≈ ${milliseconds(ms)}`;

/** Counts all attempts of the statistics in words, such as `3 delivered, 1 failed`. */
export function attemptsInWords({ points }: Pick<ShownStats, "points">): string {
  const delivered = sum(points.map((one) => one.successes));
  const failed = sum(points.map((one) => one.failures));
  return `${number(delivered)} delivered, ${number(failed)} failed`;
}

/** Builds the chart series for latency and queue length, each with a summary. */
export function chartSeries({ points, step }: ShownStats) {
  const backlog = points.map((one) => one.backlog);
  const queued = points.at(-1)?.queued;
  return {
    times: points.map(({ at }) => Date.parse(at) / 1_000),
    step,
    latency: [
      latencySeries(points, "p50", "--chart-low"),
      latencySeries(points, "p95", "--chart-mid"),
      latencySeries(points, "p99", "--chart-high"),
    ],
    queue: [
      {
        // Says that the length is sampled: a queue that fills and empties between two samples appears in none of them.
        label: "Events, counted every 5 minutes",
        color: "--chart-backlog",
        shape: "area",
        values: backlog,
        summary:
          queued === undefined
            ? `up to ${number(Math.max(0, ...backlog))}`
            : `${number(queued)} now`,
      },
    ] satisfies ChartSeries[],
  };
}

/** Builds the chart series of attempts by outcome. */
export function outcomeSeries({ points }: Pick<ShownStats, "points">): ChartSeries[] {
  const failures = points.map((one) => one.failures);
  const successes = points.map((one) => one.successes);
  return [
    bar("Failed", failures, { color: "--chart-bad", pattern: "stripes" }),
    bar("Delivered", successes, { color: "--chart-good", pattern: "solid" }),
  ];
}

type SeriesLook = Required<Pick<ChartSeries, "color" | "pattern">>;

const EVENT_LOOKS: readonly SeriesLook[] = [
  { color: "--chart-first", pattern: "solid" },
  { color: "--chart-second", pattern: "stripes" },
  { color: "--chart-third", pattern: "dots" },
  { color: "--chart-fourth", pattern: "lines" },
  { color: "--chart-fifth", pattern: "solid" },
];
const OTHER_EVENTS_LOOK: SeriesLook = { color: "--chart-other", pattern: "stripes" };

/**
 * Builds the chart series of attempts by event, with the most frequent event at the bottom. All events beyond
 * the five most frequent ones are combined into one series.
 */
export function eventSeries({ points }: ShownStats): ChartSeries[] {
  const counts = points.map(({ events }) => new Map<string, number>(Object.entries(events ?? {})));
  const totals = new Map<string, number>();
  for (const [event, count] of counts.flatMap((one) => [...one]))
    totals.set(event, (totals.get(event) ?? 0) + count);
  const events = [...totals].toSorted(([, a], [, b]) => b - a).map(([event]) => event);
  const own = EVENT_LOOKS.flatMap((look, i) => {
    const event = events[i];
    return event === undefined
      ? []
      : [
          bar(
            event,
            counts.map((one) => one.get(event) ?? 0),
            look,
          ),
        ];
  });
  const rest = events.slice(EVENT_LOOKS.length);
  if (rest.length === 0) return own.toReversed();
  const others = counts.map((one) => sum(rest.map((event) => one.get(event) ?? 0)));
  return [bar(counted(rest.length, "other event"), others, OTHER_EVENTS_LOOK), ...own.toReversed()];
}

function bar(label: string, values: readonly number[], look: SeriesLook): ChartSeries {
  return { label, ...look, shape: "bar", values, summary: number(sum(values)) };
}

/**
 * Builds the chart series of a latency percentile. The legend shows the highest value, because the percentile
 * of the whole time span cannot be computed from those of its parts.
 */
function latencySeries(
  points: ShownStats["points"],
  percentile: "p50" | "p95" | "p99",
  color: ChartSeries["color"],
): ChartSeries {
  const values = points.map((one) => one.latency_ms[percentile]);
  const known = values.filter((value) => value !== null);
  const summary = known.length === 0 ? "–" : `up to ${milliseconds(Math.max(...known))}`;
  return { label: percentile, color, shape: "line", values, summary };
}
