import { Skeleton, Text } from "@mantine/core";

import { Sparkline } from "../../../ui/chart/sparkline.tsx";
import { counted } from "../../../ui/format.ts";
import { useStats } from "../data/data.ts";

/** Shows the attempts of the last 24 hours at a glance. */
export function DaySparkline({ id }: { readonly id: string }) {
  const stats = useStats(id, "24h").data;
  if (stats === undefined) return <Skeleton height={56} />;
  const bars = stats.points.map(({ successes, failures }) => ({ good: successes, bad: failures }));
  const good = bars.reduce((sum, bar) => sum + bar.good, 0);
  const bad = bars.reduce((sum, bar) => sum + bar.bad, 0);
  const words = `${counted(good, "success", "successes")}, ${counted(bad, "failure")}`;
  return (
    <div>
      <Sparkline bars={bars} label={`Attempts of the last 24 hours: ${words}`} />
      <Text size="xs" c="dimmed" mt={4}>
        Last 24 hours: {words}
      </Text>
    </div>
  );
}
