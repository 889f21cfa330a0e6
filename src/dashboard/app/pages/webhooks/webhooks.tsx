import { Button, Group, Paper, Skeleton, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { useSession } from "../../session/session.tsx";
import { number, percent } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { NamedValue, PageHeader, TextLink, PageLink, Dimmed } from "../../ui/layout.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { BlockedLine } from "./blocked.tsx";
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
  DISABLED_AFTER,
  disabledBecause,
  eventsInWords,
  isRetryShown,
  KINDS,
  kindTitle,
  RECOVERED,
} from "./data/subscription-words.ts";
import { diagnosisOf, phraseOf } from "./deliveries/attempt-words.ts";
import { BatchWait } from "./stats/batch-wait.tsx";
import {
  AttemptsSparkline,
  ConditionBadge,
  useCondition,
  OperatorNote,
  UrlText,
} from "./stats/health-summary.tsx";
import { latency } from "./stats/stats-series.ts";
import css from "./webhooks.module.css";

export function Page() {
  const subscriptions = useQuery(subscriptionsOptions(useReader()));
  const viewed = useViewedPartner();
  const { portal } = useSession();
  // A portal link to single subscriptions does not list the others, so the page cannot tell which kinds are in use.
  const hasAll = portal?.pages.includes("webhooks") ?? true;
  const isEmpty = subscriptions.data?.data.length === 0;
  return (
    <>
      <PageHeader
        title={viewed === undefined ? "Webhooks" : `Webhooks of ${viewed.name}`}
        description={
          viewed === undefined
            ? "Send review events to your own systems as they happen."
            : "Subscriptions of this partner."
        }
        actions={
          viewed === undefined &&
          portal === undefined &&
          !isEmpty && (
            <Button
              component={Link}
              href="/webhooks/alerts"
              variant="default"
              leftSection={<Icon name="bell" size={16} />}
            >
              Alerts
            </Button>
          )
        }
      />
      <Loaded query={subscriptions}>
        {({ data }) =>
          isEmpty && hasAll ? (
            <FirstSteps />
          ) : (
            <Stack gap="md">
              {KINDS.map((kind) => {
                const one = data.find(({ delivery_kind }) => delivery_kind === kind.kind);
                if (one !== undefined) return <SlotRow key={kind.kind} subscription={one} />;
                return hasAll && <EmptySlot key={kind.kind} kind={kind} />;
              })}
            </Stack>
          )
        }
      </Loaded>
    </>
  );
}

/** Steps from nothing to the first verified event, which the creation leads through. */
const FIRST_STEPS = [
  ["Add your endpoint", "Its URL, and the events that it gets: each one at once, or in batches."],
  ["Verify signatures", "Copy the secret and a few lines of code in your language."],
  ["Send a test event", "See at once what your endpoint answers."],
] as const;

/** Leads a partner without any subscription to the creation of the first one. */
function FirstSteps() {
  const mayCreate = useSeesSecrets();
  if (!mayCreate)
    return (
      <Paper withBorder>
        <EmptyState icon="webhook" title="No webhooks yet">
          Nobody has set up an endpoint that gets events.
        </EmptyState>
      </Paper>
    );
  return (
    <Paper withBorder p={{ base: "md", sm: "xl" }} component="section" aria-label="First steps">
      <Stack gap="xl">
        <div>
          <Title order={2} size="h4">
            Set up your first webhook
          </Title>
          <Dimmed size="sm" maw={560} mt={4}>
            Whenever something happens to a review, we POST it to a URL of yours: signed, in order,
            and again if your endpoint does not accept it.
          </Dimmed>
        </div>
        <ol className={css.firstSteps}>
          {FIRST_STEPS.map(([title, words]) => (
            <li key={title}>
              <Text fw={600} size="sm">
                {title}
              </Text>
              <Dimmed size="sm">{words}</Dimmed>
            </li>
          ))}
        </ol>
        <Button
          component={Link}
          href="/webhooks/new"
          w="fit-content"
          leftSection={<Icon name="plus" size={16} />}
        >
          Add an endpoint
        </Button>
      </Stack>
    </Paper>
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
      aria-label={`${title}: not in use`}
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
              <UrlText url={url} />{" "}
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
        {kind === "batch" && (
          <Text size="sm">
            <BatchWait subscription={subscription} />
          </Text>
        )}
        {health === undefined ? (
          <Skeleton height={52} />
        ) : (
          <SlotFigures subscription={subscription} health={health} />
        )}
      </Stack>
    </Paper>
  );
}

/**
 * Shows the figures of a subscription. Until something was sent, who may set it up sees the steps of the set-up instead.
 */
function SlotFigures({ subscription, health }: SubscriptionProps & { readonly health: Health }) {
  const { id, is_active: isActive } = subscription;
  const { last_success_at: success, success_rate_24h: rate, pending, held } = health;
  const maySetUp = useSeesSecrets();
  // Tests that failed count in none of these figures.
  if (maySetUp && isActive && success === null && rate === null && pending === 0)
    return <SetUp subscription={subscription} />;
  return (
    <div className={css.slotFigures}>
      <dl className="value-grid">
        <NamedValue name="Success rate (24 h)" hint="without tests">
          {rate === null ? "–" : percent(rate)}
        </NamedValue>
        <NamedValue name="p95 latency (24 h)">{latency(health.latency_ms_24h.p95)}</NamedValue>
        <NamedValue name={isActive ? "Queued" : "Held"}>{number(pending + held)}</NamedValue>
        <LastFailure id={id} />
      </dl>
      <DaySparkline id={id} />
    </div>
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
  const last = delivery?.attempts.findLast(
    ({ outcome }) => outcome === "failed" || outcome === "retry",
  );
  if (!delivery || last === undefined)
    return (
      <NamedValue name="Last failure">
        {delivery === undefined ? <Skeleton h={20} w={60} /> : "–"}
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

/** Lists the steps of the set-up, in place of the figures of a subscription to which nothing was sent yet. */
function SetUp({ subscription: { id } }: SubscriptionProps) {
  return (
    <Group justify="space-between" gap="sm" align="flex-end">
      <ul className={css.steps} aria-label="Set-up">
        <li data-state="done">Endpoint added</li>
        <li data-state="waiting">Signatures verified in your code</li>
        <li data-state="waiting">Test event accepted</li>
      </ul>
      <Button component={Link} href={`/webhooks/new?id=${id}`} variant="light">
        Continue the set-up
      </Button>
    </Group>
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
      The first attempt failed <Time at={since} />.{" "}
    </>
  );
}

interface SlotStateProps extends SubscriptionProps {
  readonly health: Health | undefined;
}

/** Shows the current problems of a subscription. Renders nothing if there are no problems. */
function SlotState({ subscription, health }: SlotStateProps) {
  const { id, consecutive_failure_count: failures } = subscription;
  const first = health?.first_failure ?? null;
  const condition = useCondition(subscription);
  const isByFailures = subscription.disabled_reason === "consecutive_failures";
  if (!subscription.is_active)
    return (
      <div>
        <Text size="sm" c="var(--mantine-color-red-light-color)">
          Disabled <Time at={subscription.disabled_at} /> {disabledBecause(subscription)}
          {first !== null && isByFailures && ` (the first: ${causeOf(first)})`}. New events are
          held. <TextLink href={`/webhooks/${id}`}>Show the problem</TextLink>
        </Text>
        <OperatorNote subscription={subscription} />
      </div>
    );
  const isDegraded = condition === "degraded";
  if (condition === "recovered")
    return (
      <Text size="sm">
        {RECOVERED} <TextLink href={`/webhooks/${id}`}>Show what failed</TextLink>
      </Text>
    );
  const isRetrying = health !== undefined && isRetryShown(subscription, health);
  if (failures === 0 && !isRetrying && !isDegraded) return null;
  return (
    <Text size="sm">
      {failures > 0 && (
        <>
          Failures in a row: {number(failures)} of {DISABLED_AFTER}
          {first !== null && ` (the first: ${causeOf(first)})`}. <FirstAttempt id={id} />
        </>
      )}
      {health?.blocked_by && isRetrying && (
        <BlockedLine subscription={subscription} eventId={health.blocked_by} />
      )}
      {isDegraded && (
        <>
          Some deliveries of the last hour failed.{" "}
          <TextLink href={`/webhooks/${id}`}>Show the causes</TextLink>
        </>
      )}
    </Text>
  );
}
