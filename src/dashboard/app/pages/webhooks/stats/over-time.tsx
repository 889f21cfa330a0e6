import { Dimmed, PageLink } from "../../../ui/layout.tsx";
import { Button, Group, SegmentedControl, Skeleton, Text, Title } from "@mantine/core";
import { useId } from "react";
import { useSearchParams } from "wouter";

import { page } from "../../../shell/page.tsx";
import { useFilters } from "../../../ui/filters.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { Loaded } from "../../../ui/states.tsx";
import { useNow, zoneName } from "../../../ui/time.tsx";
import { deliveryFilterOf } from "../data/filters.ts";
import type { SubscriptionProps } from "../data/reads.ts";
import {
  formatPeriod,
  type Period,
  periodAt,
  periodOf,
  rangeOf,
  type Span,
  spanOf,
  STATS_RANGES,
} from "../data/stats-range.ts";
import { AttemptsSparkline } from "./health-summary.tsx";
import { useShownStats } from "./use-shown-stats.ts";

// Loads the charts as a separate script chunk, so that lists and settings do not wait for the chart library.

const StatsCharts = page(async () => {
  const { StatsCharts: Page } = await import("./charts.tsx");
  return { Page };
});

const AttemptsChart = page(async () => {
  const { AttemptsChart: Page } = await import("./charts.tsx");
  return { Page };
});

const MINUTE_MS = 60_000;
/**
 * Height of the chart above a list in px. It is lower than other charts, because the list is the main content
 * of the page.
 */
const LIST_CHART_PX = 104;
const PERIOD_FILTERS = ["within", "since", "until"] as const;

interface StripProps extends SubscriptionProps {
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

/**
 * Small chart of the attempts in one line. It shows the period of the list's filter, or the last 24 hours if the
 * filter has no period. It is left out while other filters are set, because the chart counts all attempts of the
 * period.
 */
export function ChartStrip({ subscription, isOpen, onToggle }: StripProps) {
  const [params] = useSearchParams();
  const filter = deliveryFilterOf(params);
  const now = useNow(MINUTE_MS);
  const hasTime = PERIOD_FILTERS.some((name) => filter[name] !== undefined);
  const span = hasTime ? spanOf(filter, now) : "24h";
  if (hasOtherFilters(filter) || span === undefined) return null;
  return (
    <Group gap="xs" wrap="nowrap">
      <Button
        variant="subtle"
        size="xs"
        px="xs"
        flex="none"
        aria-expanded={isOpen}
        leftSection={<Icon name={isOpen ? "chevronDown" : "chevronRight"} size={14} />}
        onClick={onToggle}
      >
        Chart
      </Button>
      {!isOpen && <Strip id={subscription.id} span={span} />}
    </Group>
  );
}

function Strip({ id, span }: { readonly id: string; readonly span: Span }) {
  const stats = useShownStats(id, span).data;
  if (stats === undefined) return null;
  // Shows the period of the statistics, not the selected one. The statistics count whole steps, so they may begin
  // before the selected period and end after it.
  const period =
    typeof span === "string" ? `Last ${STATS_RANGES[span].label}` : formatPeriod(stats);
  return <AttemptsSparkline stats={stats} period={period} visibleFrom="lg" className="one-line" />;
}

const hasOtherFilters = (filter: object): boolean =>
  Object.keys(filter).some((name) => !PERIOD_FILTERS.some((one) => one === name));

/**
 * Chart of the delivery attempts in the period of the list's filter. It is left out while other filters are set. A
 * period that the user selects in the chart becomes the filter.
 */
export function ListChart({ subscription }: SubscriptionProps) {
  const [params] = useSearchParams();
  const { set } = useFilters(PERIOD_FILTERS);
  const filter = deliveryFilterOf(params);
  const span = spanOf(filter, useNow(MINUTE_MS));
  const hasPeriod = filter.since !== undefined || filter.until !== undefined;
  const id = useId();
  if (hasOtherFilters(filter)) return null;
  return (
    <section aria-labelledby={`${id}-title`}>
      <Title order={2} className="unseen" id={`${id}-title`}>
        Chart of the attempts
      </Title>
      {hasPeriod && (
        <SelectedPeriod
          period={typeof span === "object" ? span : undefined}
          onClear={() => set({ since: undefined, until: undefined })}
        />
      )}
      {span !== undefined && (
        <ShownCharts
          id={subscription.id}
          span={span}
          onSelect={(since, until) => set({ within: undefined, ...periodAt(since, until) })}
        />
      )}
    </section>
  );
}

interface ShownProps {
  readonly id: string;
  readonly span: Span;
  readonly onSelect: (since: number, until: number) => void;
}

function ShownCharts({ id, span, onSelect }: ShownProps) {
  const query = useShownStats(id, span);
  if (query.isPending) return <Skeleton height={196} />;
  return (
    <Loaded query={query}>
      {(stats) => <AttemptsChart stats={stats} onSelect={onSelect} height={LIST_CHART_PX} />}
    </Loaded>
  );
}

/** Charts of a subscription, for a range that ends now or for a period that the user selected in a chart. */
export function OverTime({ subscription: { id } }: SubscriptionProps) {
  const [params, setParams] = useSearchParams();
  const range = rangeOf(params.get("range"));
  const period = periodOf(params);
  const query = useShownStats(id, period ?? range);
  const show = (changes: Readonly<Record<string, string>>) =>
    setParams((before) => {
      const kept = [...before].filter(([name]) => name === "stack" || name === "range");
      return { ...Object.fromEntries(kept), ...changes };
    });
  return (
    <section aria-label="Over time">
      <Group justify="space-between" mb="sm">
        <div>
          <Text fw={650} component="h2" size="lg" m={0}>
            Over time
          </Text>
          <Dimmed>Tests are not counted. Times are in {zoneName("local")}.</Dimmed>
        </div>
        <SegmentedControl
          aria-label="Range"
          value={range}
          onChange={(next) => show({ range: next })}
          data={Object.entries(STATS_RANGES).map(([value, { label }]) => ({ value, label }))}
        />
      </Group>
      <div aria-live="polite">
        {period && (
          <SelectedPeriod
            period={period}
            href={`/webhooks/${id}?${new URLSearchParams({ tab: "deliveries", ...period })}`}
            onClear={() => show({})}
          />
        )}
      </div>
      {query.isPending ? (
        <Skeleton height={560} />
      ) : (
        <Loaded query={query}>
          {(stats) => (
            <StatsCharts stats={stats} onSelect={(since, until) => show(periodAt(since, until))} />
          )}
        </Loaded>
      )}
    </section>
  );
}

interface SelectedPeriodProps {
  readonly period: Period | undefined;
  /** Path of the list of deliveries in the selected period; absent if the chart is above this list. */
  readonly href?: string;
  readonly onClear: () => void;
}

function SelectedPeriod({ period, href, onClear }: SelectedPeriodProps) {
  return (
    <Group gap="sm" mb="sm">
      {period && <Text size="sm">{formatPeriod(period)}</Text>}
      {href !== undefined && <PageLink href={href}>Show deliveries</PageLink>}
      <Button
        variant="subtle"
        size="compact-sm"
        leftSection={<Icon name="x" size={14} />}
        onClick={onClear}
      >
        Clear period
      </Button>
    </Group>
  );
}
