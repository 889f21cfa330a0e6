import { SegmentedControl } from "@mantine/core";
import { useMemo } from "react";

import { Chart } from "../../../ui/chart/chart.tsx";
import type { SelectPeriod } from "../../../ui/chart/chart-series.ts";
import { number } from "../../../ui/format.ts";
import { formatTime } from "./chart-time.ts";
import { chartSeries, eventSeries, outcomeSeries, type ShownStats } from "./stats-series.ts";
import { useStack } from "./use-stack.ts";

interface AttemptsChartProps {
  readonly stats: ShownStats;
  readonly disabledAt: string | null;
  readonly onSelect: SelectPeriod;
  readonly height?: number;
}

/** Attempts over time, stacked by what came of them or by their events. */
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
