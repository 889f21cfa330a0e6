import { Anchor, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";

import { Copy } from "../../ui/copy.tsx";
import { Countdown, ExactTime } from "../../ui/time.tsx";
import { Facts, PageHeader } from "../../ui/layout.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { EmptyState, Loaded } from "../../ui/states.tsx";
import { AttemptCard } from "./deliveries/attempt-card.tsx";
import { STATE_WORDS } from "./deliveries/attempt-words.ts";
import { useReader } from "./data/data.ts";
import { type Message, messageOptions } from "./data/list-reads.ts";
import { type Delivery, deliveryOptions, subscriptionOptions } from "./data/reads.ts";
import { RedeliverButton } from "./deliveries/redeliver.tsx";

import "./webhooks.css";

/** Page that shows one event and all attempts to deliver it to one subscription, with headers and bodies. */
export function Page() {
  const { id = "", eventId = "" } = useParams();
  const delivery = useQuery(deliveryOptions(useReader(), id, eventId));
  if (delivery.data !== undefined) return <DeliveryPage id={id} delivery={delivery.data} />;
  return (
    <>
      <PageHeader title="Delivery" back={backTo(id)} description={<code>{eventId}</code>} />
      <Loaded query={delivery}>{() => null}</Loaded>
    </>
  );
}

const backTo = (id: string, label = "the subscription") => ({
  href: `/webhooks/${id}?tab=deliveries`,
  title: `Deliveries of ${label}`,
});

interface DeliveryProps {
  readonly delivery: Delivery;
}

function DeliveryPage({ id, delivery }: DeliveryProps & { readonly id: string }) {
  const { event_id: eventId, event } = delivery;
  const subscription = useQuery(subscriptionOptions(useReader(), id)).data;
  return (
    <>
      <PageHeader
        title={event}
        back={backTo(id, subscription?.label)}
        description={
          <Group gap={4}>
            <code>{eventId}</code>
            <Copy value={eventId} label="Copy the event id" />
          </Group>
        }
        actions={
          <RedeliverButton id={id} eventId={eventId} isActive={subscription?.is_active ?? true} />
        }
      />
      <Stack gap="lg">
        <Summary id={id} delivery={delivery} />
        <Attempts delivery={delivery} url={subscription?.webhook_url} />
      </Stack>
    </>
  );
}

function Attempts({
  delivery: { attempts, state },
  url,
}: DeliveryProps & { readonly url: string | undefined }) {
  const newestFirst = attempts.toReversed();
  return (
    <section aria-labelledby="attempts">
      <Title order={2} size="h4" mb="sm" id="attempts">
        Attempts
      </Title>
      {attempts.some(({ round }) => round > 1) && (
        <Text size="sm" c="dimmed" mb="sm">
          A round is up to four attempts. Each Redeliver or Recover begins another one.
        </Text>
      )}
      {attempts.length === 0 ? (
        <EmptyState icon="clock" title="No attempt yet">
          {STATE_WORDS[state]}
        </EmptyState>
      ) : (
        <ol className="timeline" reversed>
          {newestFirst.map((attempt, i) => (
            <AttemptCard
              key={attempt.id}
              attempt={attempt}
              url={url}
              isFollowed={i > 0}
              isOpenAtFirst={i === 0}
            />
          ))}
        </ol>
      )}
    </section>
  );
}

interface SummaryProps extends DeliveryProps {
  /** Id of the webhook subscription. */
  readonly id: string;
}

function Summary({ id, delivery }: SummaryProps) {
  const { state, attempts, settled_at: settledAt } = delivery;
  const about = useQuery(messageOptions(useReader(), id, delivery.event_id)).data;
  const next = settledAt === null ? attempts.at(-1)?.next_attempt_at : null;
  return (
    <Paper withBorder p="lg">
      <Stack gap="sm">
        <Group gap="sm" aria-live="polite">
          <StateBadge state={state} />
          <Text size="sm">
            {STATE_WORDS[state]}
            {state === "waiting" && next !== null && next !== undefined && (
              <>
                {" "}
                Next attempt <Countdown to={next} />.
              </>
            )}
          </Text>
        </Group>
        <Facts
          facts={Object.entries({
            Queued: <ExactTime at={delivery.created_at} />,
            Settled: settledAt === null ? "Not yet" : <ExactTime at={settledAt} />,
            Order: `#${delivery.sequence}`,
            ...(about && about.review_id !== null && { Review: <Review id={id} about={about} /> }),
          })}
        />
      </Stack>
    </Paper>
  );
}

interface ReviewProps {
  /** Id of the webhook subscription. */
  readonly id: string;
  readonly about: Message;
}

/** Names the review that the event is about, with a link to all deliveries for this review. */
function Review({ id, about }: ReviewProps) {
  const search = new URLSearchParams({ tab: "deliveries", review_id: String(about.review_id) });
  return (
    <>
      {about.rate !== null && `${about.rate} ★ · `}
      {about.external_review_id} · {about.store_name} ·{" "}
      <Anchor component={Link} href={`/webhooks/${id}?${search}`} inherit underline="always">
        All events of it
      </Anchor>
    </>
  );
}
