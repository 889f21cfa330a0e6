import { Button, Group, Paper, Skeleton, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { useSession } from "../../session/session.tsx";
import { milliseconds, number, percent } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { NamedValue, PageHeader, TextLink, PageLink, Dimmed } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { useReader, useSeesSecrets, useViewedPartner } from "./data/data.ts";
import {
  type Health,
  healthOptions,
  incidentOptions,
  readDeliveries,
  statsOptions,
  type SubscriptionProps,
  subscriptionKey,
  subscriptionsOptions,
} from "./data/reads.ts";
import { ALL_FAILURES } from "./data/filters.ts";
import {
  disabledBecause,
  eventsInWords,
  isRetryShown,
  KINDS,
  kindTitle,
} from "./data/subscription-words.ts";
import { diagnosisOf, phraseOf } from "./deliveries/attempt-words.ts";
import { AttemptsSparkline, ConditionBadge } from "./stats/health-summary.tsx";
import css from "./webhooks.module.css";

export function Page() {
  const subscriptions = useQuery(subscriptionsOptions(useReader()));
  const viewed = useViewedPartner();
  const { portal } = useSession();
  // Hides the create button from a portal link to single subscriptions. Such a link does not show all subscriptions,
  // so the page cannot tell whether a slot is free.
  const hasAll = portal?.pages.includes("webhooks") ?? true;
  const mayCreate = useSeesSecrets() && hasAll;
  const isFull = (subscriptions.data?.data.length ?? 0) >= KINDS.length;
  // Makes the create button less prominent if a subscription is disabled, because that needs attention first.
  const hasDisabled = subscriptions.data?.data.some((one) => !one.is_active) ?? false;
  return (
    <>
      <PageHeader
        title={viewed === undefined ? "Webhooks" : `Webhooks of ${viewed.name}`}
        description={
          viewed === undefined
            ? "Get notified of review events with signed webhooks."
            : "Subscriptions of this partner."
        }
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
          <Stack gap="md">
            {KINDS.map((kind) => {
              const one = data.find(({ delivery_kind }) => delivery_kind === kind.kind);
              if (one !== undefined) return <SlotRow key={kind.kind} subscription={one} />;
              return hasAll && <EmptySlot key={kind.kind} kind={kind} />;
            })}
          </Stack>
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
    <Paper
      component="section"
      p="md"
      bd="1px dashed var(--mantine-color-default-border)"
      aria-label={`${title}: free`}
    >
      <Group justify="space-between" gap="sm">
        <div className="grows section-words">
          <Title order={2} size="h5">
            {title}: not in use
          </Title>
          <Dimmed size="sm">{purpose}</Dimmed>
        </div>
        {mayCreate && (
          <Button component={Link} href={`/webhooks/new?kind=${kind.kind}`} variant="light">
            Set up {kind.kind} delivery
          </Button>
        )}
      </Group>
    </Paper>
  );
}

/** Shows the delivery attempts of the last 24 hours as a small bar chart. */
function DaySparkline({ id }: { readonly id: string }) {
  const stats = useQuery(statsOptions(useReader(), id, "24h")).data;
  if (stats === undefined) return <Skeleton height={52} />;
  return (
    <div className="shrinks">
      <AttemptsSparkline stats={stats} period="Last 24 hours" mt={4} />
    </div>
  );
}

/** Row that summarizes a subscription. Its label links to the subscription's page. */
function SlotRow({ subscription }: SubscriptionProps) {
  const { id, label, webhook_url: url, delivery_kind: kind } = subscription;
  const health = useQuery(healthOptions(useReader(), id)).data;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={`slot-${id}`}>
      <Stack gap="sm">
        <Group justify="space-between" gap="xs" align="flex-start">
          <div className="shrinks">
            <Group gap="xs">
              <Title order={2} size="h4" id={`slot-${id}`} className="shrinks">
                <PageLink href={`/webhooks/${id}`} inherit>
                  {label}
                </PageLink>
              </Title>
              <ConditionBadge subscription={subscription} />
            </Group>
            <Text size="sm">
              <span className="mono">{url}</span>{" "}
              <Text span inherit c="dimmed">
                · {kindTitle(kind)} · {eventsInWords(subscription)}
              </Text>
            </Text>
          </div>
          <Group gap="md">
            <PageLink href={`/webhooks/${id}?tab=deliveries`}>Deliveries</PageLink>
            <PageLink href={`/webhooks/${id}?tab=settings`}>Settings</PageLink>
          </Group>
        </Group>
        <SlotState subscription={subscription} health={health} />
        {health === undefined ? (
          <Skeleton height={52} />
        ) : (
          <div className={css.slotFigures}>
            <dl className="value-grid">
              <NamedValue name="Success rate (24 h)">
                {health.success_rate_24h === null ? "–" : percent(health.success_rate_24h)}
              </NamedValue>
              <NamedValue name="p95 latency (24 h)">
                {milliseconds(health.latency_ms_24h.p95)}
              </NamedValue>
              <NamedValue name={subscription.is_active ? "Pending" : "Held"}>
                {number(health.pending + health.held)}
              </NamedValue>
              <LastFailure id={id} />
            </dl>
            <DaySparkline id={id} />
          </div>
        )}
        {health?.last_success_at === null && <SetUp subscription={subscription} />}
      </Stack>
    </Paper>
  );
}

const LAST_FAILURE_MS = 30_000;

/** Shows when and how an attempt failed last, with a link to its delivery. */
function LastFailure({ id }: { readonly id: string }) {
  const reader = useReader();
  const { data: delivery } = useQuery({
    queryKey: subscriptionKey(id, "last-failure"),
    queryFn: async () => {
      const page = await readDeliveries(reader, id, { outcome: ALL_FAILURES }, { limit: 1 });
      return page.data[0] ?? null;
    },
    refetchInterval: LAST_FAILURE_MS,
  });
  const last = delivery?.attempts.findLast(({ outcome }) => outcome !== "delivered");
  if (!delivery || last === undefined)
    return (
      <NamedValue name="Last failure">
        {delivery === null ? "–" : <Skeleton h={20} w={60} />}
      </NamedValue>
    );
  return (
    <NamedValue name="Last failure" hint={<Time at={last.started_at} />}>
      <TextLink href={`/webhooks/${id}/deliveries/${delivery.event_id}`}>
        {diagnosisOf(last).title}
      </TextLink>
    </NamedValue>
  );
}

/** Lists the steps of the set-up until a delivery has been accepted for the first time. */
function SetUp({ subscription: { id, is_active: isActive } }: SubscriptionProps) {
  const mayVerify = useSeesSecrets() && isActive;
  return (
    <ul className={css.steps} aria-label="Set-up">
      <li data-state="done">Endpoint added</li>
      <li data-state="waiting">
        First delivery accepted
        {mayVerify && (
          <>
            :{" "}
            <TextLink href={`/webhooks/new?id=${id}`}>
              verify signatures and send a test event
            </TextLink>
          </>
        )}
      </li>
    </ul>
  );
}

const causeOf = (failure: NonNullable<Health["first_failure"]>) =>
  phraseOf({ outcome: "failed", ...failure });

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

interface SlotStateProps extends SubscriptionProps {
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
        <TextLink href={`/webhooks/${id}`}>Show the problem</TextLink>
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
          retried; later events {ordering === "review" && "of its review "}wait for it.
        </>
      )}
    </Text>
  );
}
