import { Paper, SegmentedControl } from "@mantine/core";
import { useMemo } from "react";

import type { ChartPlot, SelectPeriod } from "../../../ui/chart/chart-series.ts";
import { Chart } from "../../../ui/chart/chart.tsx";
import { milliseconds, number } from "../../../ui/format.ts";
import { EmptyState } from "../../../ui/states.tsx";
import { formatTime } from "../data/stats-range.ts";
import { chartSeries, eventSeries, outcomeSeries, type ShownStats } from "./stats-series.ts";
import { useStack } from "./use-shown-stats.ts";

interface ChartsProps {
  readonly stats: ShownStats;
  readonly onSelect: SelectPeriod;
  readonly height?: number;
}

/** Returns the plot of the delivery attempts, stacked by outcome or by event. */
function useAttemptsPlot(stats: ShownStats, height?: number): ChartPlot {
  const [stack, setStack] = useStack();
  const series = useMemo(
    () => (stack === "event" ? eventSeries(stats) : outcomeSeries(stats)),
    [stats, stack],
  );
  return {
    title: "Attempts",
    series,
    format: number,
    isStacked: true,
    ...(height !== undefined && { height }),
    actions: (
      <SegmentedControl
        size="xs"
        aria-label="Stacked by"
        data={[
          { value: "outcome", label: "By outcome" },
          { value: "event", label: "By event" },
        ]}
        value={stack}
        onChange={(value) => setStack(value === "event" ? "event" : "outcome")}
      />
    ),
  };
}

/** Chart of the delivery attempts over time. */
export function AttemptsChart({ stats, onSelect, height }: ChartsProps) {
  const { times, step } = useMemo(() => chartSeries(stats), [stats]);
  const attempts = useAttemptsPlot(stats, height);
  return <Chart title="Attempts" {...{ times, step, formatTime, onSelect }} plots={[attempts]} />;
}

/** Height of the plots below the first one in px. */
const LOW_PX = 110;

/** Chart of attempts, latency and queue over time. */
export function StatsCharts({ stats, onSelect }: ChartsProps) {
  const { times, step, latency, queue } = useMemo(() => chartSeries(stats), [stats]);
  const attempts = useAttemptsPlot(stats);
  // Leaves out the plot of a queue that was empty at each count, because it says nothing that the figures do not say.
  const hasQueue = stats.points.some((one) => one.backlog > 0);
  const isEmpty = stats.points.every((one) => one.successes + one.failures + one.backlog === 0);
  if (isEmpty)
    return (
      <Paper withBorder>
        <EmptyState icon="activity" title="Nothing was sent in this period">
          Test events are not counted here. A longer period may show more.
        </EmptyState>
      </Paper>
    );
  return (
    <Chart
      title="Attempts and latency"
      {...{ times, step, formatTime, onSelect }}
      plots={[
        attempts,
        {
          title: "Latency (accurate to 5%)",
          series: latency,
          format: milliseconds,
          height: LOW_PX,
        },
        ...(hasQueue ? [{ title: "Queue", series: queue, format: number, height: LOW_PX }] : []),
      ]}
    />
  );
}
