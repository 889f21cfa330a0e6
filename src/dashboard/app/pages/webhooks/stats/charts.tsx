import { Paper, SegmentedControl, Stack } from "@mantine/core";
import { useMemo } from "react";

import type { SelectPeriod } from "../../../ui/chart/chart-series.ts";
import { Chart } from "../../../ui/chart/chart.tsx";
import { milliseconds, number } from "../../../ui/format.ts";
import { EmptyState } from "../../../ui/states.tsx";
import { formatTime } from "../data/stats-range.ts";
import { chartSeries, eventSeries, outcomeSeries, type ShownStats } from "./stats-series.ts";
import { useStack } from "./use-shown-stats.ts";

interface AttemptsChartProps {
  readonly stats: ShownStats;
  readonly disabledAt: string | null;
  readonly onSelect: SelectPeriod;
  readonly height?: number;
}

/** Chart of the delivery attempts over time, stacked by outcome or by event. */
export function AttemptsChart({ stats, disabledAt, ...chart }: AttemptsChartProps) {
  const [stack, setStack] = useStack();
  const { times, step } = useMemo(() => chartSeries(stats), [stats]);
  const series = useMemo(
    () => (stack === "event" ? eventSeries(stats) : outcomeSeries(stats, disabledAt)),
    [stats, stack, disabledAt],
  );
  return (
    <Chart
      title="Attempts"
      {...{ times, step, series, formatTime, ...chart }}
      format={number}
      isStacked
      actions={
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
      }
    />
  );
}

/** Height of the charts below the first one in px. */
const LOW_PX = 120;

/**
 * Charts of attempts, latency and queue below each other, with the same time axis. The pointer marks the same time in
 * all of them.
 */
export function StatsCharts({ stats, disabledAt, onSelect }: AttemptsChartProps) {
  const { times, step, latency, backlog } = useMemo(() => chartSeries(stats), [stats]);
  const isEmpty = stats.points.every((one) => one.successes + one.failures + one.backlog === 0);
  if (isEmpty)
    return (
      <Paper withBorder>
        <EmptyState icon="activity" title="No attempts in this period">
          Choose a longer period above, or send a test event. Its attempts appear here immediately.
        </EmptyState>
      </Paper>
    );
  const shared = { times, step, formatTime };
  return (
    <Stack gap="md">
      <AttemptsChart {...{ stats, disabledAt, onSelect }} />
      <Chart {...shared} title="Latency" series={latency} format={milliseconds} height={LOW_PX} />
      <Chart {...shared} title="Queue" series={backlog} format={number} height={LOW_PX} />
    </Stack>
  );
}
