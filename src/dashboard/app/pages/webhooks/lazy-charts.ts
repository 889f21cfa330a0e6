import { page } from "../../chunks/page.tsx";

// What draws is a chunk of its own, which the lists and the settings of a subscription do not wait for.

export const StatsCharts = page(async () => {
  const { StatsCharts: Page } = await import("./stats/stats-charts.tsx");
  return { Page };
});

export const AttemptsChart = page(async () => {
  const { AttemptsChart: Page } = await import("./stats/attempts-chart.tsx");
  return { Page };
});
