import { Anchor, Button, Group, SegmentedControl, Skeleton, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";

import { Icon } from "../../ui/icon.tsx";
import { Loaded } from "../../ui/states.tsx";
import type { Subscription } from "./data/reads.ts";
import { periodOf, rangeOf, STATS_RANGES, type Period } from "./data/stats-range.ts";
import { formatPeriod, periodAt } from "./stats/chart-time.ts";
import { StatsCharts } from "./lazy-charts.ts";
import { useShownStats } from "./stats/use-shown-stats.ts";

interface OverTimeProps {
  readonly subscription: Subscription;
}

/** The charts of a subscription, of a range until now or of a period that was selected in one of them. */
export function OverTime({ subscription: { id, disabled_at: disabledAt } }: OverTimeProps) {
  const [params, setParams] = useSearchParams();
  const range = rangeOf(params.get("range"));
  const period = periodOf(params);
  const { query, stats } = useShownStats(id, period ?? range);
  const show = (changes: Readonly<Record<string, string>>) =>
    setParams((before) => {
      const kept = [...before].filter(([name]) => name === "stack" || name === "range");
      return { ...Object.fromEntries(kept), ...changes };
    });
  return (
    <section aria-label="Over time">
      <Group justify="space-between" mb="sm">
        <Text fw={650} component="h2" size="lg" m={0}>
          Over time
        </Text>
        <SegmentedControl
          aria-label="Range"
          value={range}
          onChange={(next) => show({ range: next })}
          data={Object.entries(STATS_RANGES).map(([value, { label }]) => ({ value, label }))}
        />
      </Group>
      <div aria-live="polite">
        {period && <Selected id={id} period={period} onClear={() => show({})} />}
      </div>
      {query.isPending ? (
        <Skeleton height={620} />
      ) : (
        <Loaded query={query}>
          {(read) => (
            <StatsCharts
              stats={stats ?? read}
              disabledAt={disabledAt}
              onSelect={(since, until) => show(periodAt(since, until))}
            />
          )}
        </Loaded>
      )}
    </section>
  );
}

interface SelectedProps {
  readonly id: string;
  readonly period: Period;
  readonly onClear: () => void;
}

function Selected({ id, period, onClear }: SelectedProps) {
  const search = new URLSearchParams({ tab: "deliveries", ...period });
  return (
    <Group gap="sm" mb="sm">
      <Text size="sm">{formatPeriod(period)}</Text>
      <Anchor component={Link} href={`/webhooks/${id}?${search}`} size="sm">
        Its deliveries
      </Anchor>
      <Button
        variant="subtle"
        size="compact-sm"
        leftSection={<Icon name="x" size={14} />}
        onClick={onClear}
      >
        Remove the period
      </Button>
    </Group>
  );
}
