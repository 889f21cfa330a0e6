import {
  Anchor,
  Button,
  Group,
  Paper,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { useSession } from "../../session/session.tsx";
import { counted, number } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader, TextLink } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { useReader, useSeesSecrets, useViewedPartner } from "./data/data.ts";
import {
  type Health,
  healthOptions,
  incidentOptions,
  statsOptions,
  type Subscription,
  subscriptionsOptions,
} from "./data/reads.ts";
import {
  disabledBecause,
  eventsInWords,
  isRetryShown,
  KINDS,
  kindTitle,
} from "./data/subscription-words.ts";
import { diagnosisOf } from "./deliveries/attempt-words.ts";
import { ConditionBadge, HealthSummary } from "./stats/health-summary.tsx";
import "./webhooks.css";

export function Page() {
  const subscriptions = useQuery(subscriptionsOptions(useReader()));
  const viewed = useViewedPartner();
  const { portal } = useSession();
  // A portal link to single subscriptions does not show all subscriptions, so the page cannot tell whether
  // another slot is free.
  const hasAll = portal?.pages.includes("webhooks") ?? true;
  const mayCreate = useSeesSecrets() && hasAll;
  const isFull = (subscriptions.data?.data.length ?? 0) >= KINDS.length;
  // Makes the create button less prominent if a subscription is disabled, because that needs attention first.
  const hasDisabled = subscriptions.data?.data.some((one) => !one.is_active) ?? false;
  return (
    <>
      <PageHeader
        title={viewed === undefined ? "Webhooks" : `Webhooks of ${viewed.name}`}
        description={`${viewed === undefined ? "Your" : "Its"} systems hear of reviews, responses and connections by signed HTTP requests.`}
        actions={
          viewed === undefined && (
            <>
              {portal === undefined && (
                <Button component={Link} href="/webhooks/alerts" variant="default">
                  Alerts
                </Button>
              )}
              {mayCreate && !isFull && (
                <Button
                  component={Link}
                  href="/webhooks/new"
                  variant={hasDisabled ? "default" : "filled"}
                  leftSection={<Icon name="plus" size={16} />}
                >
                  New subscription
                </Button>
              )}
            </>
          )
        }
      />
      <Loaded query={subscriptions}>
        {({ data }) => (
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
            {KINDS.map((kind) => {
              const one = data.find(({ delivery_kind }) => delivery_kind === kind.kind);
              if (one !== undefined) return <SlotCard key={kind.kind} subscription={one} />;
              return hasAll && <EmptySlot key={kind.kind} kind={kind} />;
            })}
          </SimpleGrid>
        )}
      </Loaded>
    </>
  );
}

/** Shows a kind of subscription that the partner does not have yet, with the use case of this kind. */
function EmptySlot({ kind }: { readonly kind: (typeof KINDS)[number] }) {
  const { title, purpose } = kind;
  const mayCreate = useSeesSecrets();
  return (
    <Paper component="section" className="free-slot" aria-label={`${title}: free`}>
      <EmptyState
        icon={kind.kind === "batch" ? "clock" : "send"}
        title={`${title}: not in use`}
        action={
          mayCreate && (
            <Button
              component={Link}
              href={`/webhooks/new?kind=${kind.kind}`}
              variant="light"
              mt="sm"
            >
              Set up {kind.kind} delivery
            </Button>
          )
        }
      >
        {purpose}
      </EmptyState>
    </Paper>
  );
}

interface Bar {
  readonly good: number;
  readonly bad: number;
}

const HEIGHT = 36;
const WIDTH = 5;
const GAP = 2;

/** Small bar chart without axes. `label` describes the numbers for screen readers. */
function Sparkline({ bars, label }: { readonly bars: readonly Bar[]; readonly label: string }) {
  const most = Math.max(1, ...bars.map(({ good, bad }) => good + bad));
  const width = bars.length * (WIDTH + GAP);
  const heightOf = (value: number) => (value === 0 ? 0 : Math.max(2, (value / most) * HEIGHT));
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {bars.map(({ good, bad }, i) => {
        const [goodHeight, badHeight] = [heightOf(good), heightOf(bad)];
        const x = i * (WIDTH + GAP);
        return (
          // The index serves as the `key`, because a bar has no other identity.
          <g key={i}>
            <rect className="spark-floor" x={x} y={HEIGHT - 1} width={WIDTH} height={1} />
            <rect
              className="spark-good"
              x={x}
              y={HEIGHT - goodHeight}
              width={WIDTH}
              height={goodHeight}
            />
            <rect
              className="spark-bad"
              x={x}
              y={Math.max(0, HEIGHT - goodHeight - badHeight)}
              width={WIDTH}
              height={badHeight}
            />
          </g>
        );
      })}
    </svg>
  );
}

/** Shows the delivery attempts of the last 24 hours as a small bar chart. */
function DaySparkline({ id }: { readonly id: string }) {
  const stats = useQuery(statsOptions(useReader(), id, "24h")).data;
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

/** Card that summarizes a subscription. Its label links to the subscription's page. */
export function SlotCard({ subscription }: { readonly subscription: Subscription }) {
  const { id, label, webhook_url: url, delivery_kind: kind } = subscription;
  const health = useQuery(healthOptions(useReader(), id)).data;
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby={`slot-${id}`}>
      <Stack gap="md" h="100%">
        <div>
          <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
            <Title order={2} size="h4" id={`slot-${id}`} className="shrinks">
              <Anchor component={Link} href={`/webhooks/${id}`} inherit>
                {label}
              </Anchor>
            </Title>
            <ConditionBadge subscription={subscription} />
          </Group>
          <Text size="sm" ff="monospace" mt={4} lineClamp={2}>
            {url}
          </Text>
          <Text size="sm" c="dimmed" mt={4}>
            {kindTitle(kind)} · {eventsInWords(subscription)}
          </Text>
        </div>
        <SlotState subscription={subscription} health={health} />
        {health === undefined ? (
          <Skeleton height={104} />
        ) : (
          <HealthSummary health={health} isActive={subscription.is_active} />
        )}
        <DaySparkline id={id} />
        <Group gap="md" mt="auto">
          <Anchor component={Link} href={`/webhooks/${id}?tab=deliveries`} size="sm">
            Deliveries
          </Anchor>
          <Anchor component={Link} href={`/webhooks/${id}?tab=settings`} size="sm">
            Settings
          </Anchor>
        </Group>
      </Stack>
    </Paper>
  );
}

const causeOf = (failure: NonNullable<Health["first_failure"]>) =>
  diagnosisOf({ outcome: "failed", ...failure }).title.toLowerCase();

/** Shows the start of the incident, which is the same time that the subscription's page shows. */
function FirstAttempt({ id }: { readonly id: string }) {
  const since = useQuery(incidentOptions(useReader(), id)).data?.since ?? null;
  if (since === null) return null;
  return (
    <>
      First failed attempt: <Time at={since} />.{" "}
    </>
  );
}

interface SlotStateProps {
  readonly subscription: Subscription;
  readonly health: Health | undefined;
}

/** Shows the current problems of a subscription. Renders nothing if there are no problems. */
function SlotState({ subscription, health }: SlotStateProps) {
  const { id, consecutive_failure_count: failures, ordering } = subscription;
  const first = health?.first_failure ?? null;
  if (!subscription.is_active)
    return (
      <Text size="sm" c="var(--mantine-color-red-light-color)">
        Disabled <Time at={subscription.disabled_at} />: {disabledBecause(subscription)}
        {first !== null && `, the first ${causeOf(first)}`}. New events are held.{" "}
        <TextLink href={`/webhooks/${id}`}>See what is wrong</TextLink>
      </Text>
    );
  const retrying =
    health !== undefined && isRetryShown(subscription, health) ? health.blocked_by : null;
  if (failures === 0 && retrying === null) return null;
  return (
    <Text size="sm">
      {failures > 0 && (
        <>
          Consecutive failures: {number(failures)} of 20
          {first !== null && `, the first ${causeOf(first)}`}. <FirstAttempt id={id} />
        </>
      )}
      {retrying !== null && (
        <>
          <TextLink href={`/webhooks/${id}/deliveries/${retrying}`}>An event</TextLink> is being
          retried; later events {ordering === "review" && "of its review "}wait behind it.
        </>
      )}
    </Text>
  );
}
