import { SimpleGrid } from "@mantine/core";
import { useMemo } from "react";

import { Chart } from "../../../ui/chart/chart.tsx";
import { milliseconds, number } from "../../../ui/format.ts";
import type { Stats } from "../data/reads.ts";
import { chartSeries } from "./stats-series.ts";

const AT = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const formatTime = (seconds: number) => AT.format(seconds * 1_000);

export function StatsCharts({ stats }: { readonly stats: Stats }) {
  const { times, attempts, latency, backlog } = useMemo(() => chartSeries(stats), [stats]);
  const shared = { times, formatTime };
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
      <div className="wide">
        <Chart {...shared} title="Attempts" series={attempts} format={number} isStacked />
      </div>
      <Chart {...shared} title="Answer time" series={latency} format={milliseconds} />
      <Chart {...shared} title="Queue" series={backlog} format={number} />
    </SimpleGrid>
  );
}
