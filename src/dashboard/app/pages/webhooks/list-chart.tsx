import { Button, Group, Skeleton, Text, Title } from "@mantine/core";
import { useId } from "react";
import { useSearchParams } from "wouter";

import { useFilters } from "../../ui/filters.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Loaded } from "../../ui/states.tsx";
import { useNow } from "../../ui/use-time.ts";
import { messageFilterOf } from "./data/message-filter.ts";
import type { Subscription } from "./data/reads.ts";
import { spanOf, type Span } from "./data/stats-range.ts";
import { formatPeriod, periodAt } from "./stats/chart-time.ts";
import { AttemptsChart } from "./lazy-charts.ts";
import { useShownStats } from "./stats/use-shown-stats.ts";

const MINUTE_MS = 60_000;
/** The list is what somebody came for. */
const PLOT_PX = 104;
const TIMES = ["within", "since", "until"] as const;

interface ListChartProps {
  readonly subscription: Subscription;
}

interface ToggleProps {
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

export function ChartToggle({ isOpen, onToggle }: ToggleProps) {
  return (
    <Button
      variant="subtle"
      aria-expanded={isOpen}
      leftSection={<Icon name={isOpen ? "chevronDown" : "chevronRight"} size={14} />}
      onClick={onToggle}
    >
      Chart
    </Button>
  );
}

/** Attempts over the time that the list below is filtered by; what is selected in it filters the list. */
export function ListChart({ subscription }: ListChartProps) {
  const [params] = useSearchParams();
  const { set } = useFilters(TIMES);
  const filter = messageFilterOf(params);
  const span = spanOf(filter, useNow(MINUTE_MS));
  const hasPeriod = filter.since !== undefined || filter.until !== undefined;
  const hasOthers = Object.keys(filter).some((name) => !TIMES.some((one) => one === name));
  const id = useId();
  return (
    <section aria-labelledby={`${id}-title`}>
      <Title order={2} className="unseen" id={`${id}-title`}>
        Chart of the attempts
      </Title>
      {hasPeriod && (
        <Group gap="sm" mb="xs">
          {typeof span === "object" && <Text size="sm">{formatPeriod(span)}</Text>}
          <Button
            variant="subtle"
            size="compact-sm"
            leftSection={<Icon name="x" size={14} />}
            onClick={() => set({ since: undefined, until: undefined })}
          >
            Remove the period
          </Button>
        </Group>
      )}
      {hasOthers && (
        <Text size="sm" c="dimmed" mb="xs">
          The chart shows all attempts of the period. The other filters apply to the list only.
        </Text>
      )}
      {span !== undefined && (
        <Shown
          subscription={subscription}
          span={span}
          onSelect={(since, until) => set({ within: undefined, ...periodAt(since, until) })}
        />
      )}
    </section>
  );
}

interface ShownProps extends ListChartProps {
  readonly span: Span;
  readonly onSelect: (since: number, until: number) => void;
}

function Shown({ subscription, span, onSelect }: ShownProps) {
  const { query, stats } = useShownStats(subscription.id, span);
  if (query.isPending) return <Skeleton height={196} />;
  return (
    <Loaded query={query}>
      {(read) => (
        <AttemptsChart
          stats={stats ?? read}
          disabledAt={subscription.disabled_at}
          onSelect={onSelect}
          height={PLOT_PX}
        />
      )}
    </Loaded>
  );
}
