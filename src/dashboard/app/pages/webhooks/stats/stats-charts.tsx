import { Paper, SimpleGrid } from "@mantine/core";
import { useMemo } from "react";

import { Chart } from "../../../ui/chart/chart.tsx";
import type { SelectPeriod } from "../../../ui/chart/chart-series.ts";
import { milliseconds, number } from "../../../ui/format.ts";
import { EmptyState } from "../../../ui/states.tsx";
import { AttemptsChart } from "./attempts-chart.tsx";
import { formatTime } from "./chart-time.ts";
import { chartSeries, type ShownStats } from "./stats-series.ts";

interface StatsChartsProps {
  readonly stats: ShownStats;
  readonly disabledAt: string | null;
  readonly onSelect: SelectPeriod;
}

export function StatsCharts({ stats, disabledAt, onSelect }: StatsChartsProps) {
  const { times, step, latency, backlog } = useMemo(() => chartSeries(stats), [stats]);
  const isEmpty = stats.points.every((one) => one.successes + one.failures + one.backlog === 0);
  if (isEmpty)
    return (
      <Paper withBorder>
        <EmptyState icon="activity" title="No attempts in this time">
          Choose a longer one above, or send a test event: it is drawn here at once.
        </EmptyState>
      </Paper>
    );
  const shared = { times, step, formatTime };
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
      <div className="wide">
        <AttemptsChart {...{ stats, disabledAt, onSelect }} />
      </div>
      <Chart {...shared} title="Answer time" series={latency} format={milliseconds} />
      <Chart {...shared} title="Queue" series={backlog} format={number} />
    </SimpleGrid>
  );
}
