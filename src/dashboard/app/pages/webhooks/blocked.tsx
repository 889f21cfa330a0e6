import { Alert, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { number } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { TextLink } from "../../ui/layout.tsx";
import { Countdown, ExactTime, Time } from "../../ui/time.tsx";
import { useIsReadOnly, useReader } from "./data/data.ts";
import {
  deliveryOptions,
  type Health,
  retryingOptions,
  type SubscriptionProps,
} from "./data/reads.ts";
import { isRetryShown } from "./data/subscription-words.ts";
import { phraseOf } from "./deliveries/attempt-words.ts";
import { RedeliverButton } from "./deliveries/redeliver-button.tsx";

interface HealthProps extends SubscriptionProps {
  readonly health: Health;
}

interface BlockedProps extends HealthProps {
  readonly eventId: string;
}

/** Shows the event that waits for its retry and blocks later events. Renders nothing without one. */
export function Blocked({ subscription, health }: HealthProps) {
  const { blocked_by: eventId } = health;
  if (eventId === null || !isRetryShown(subscription, health)) return null;
  return <BlockedAlert subscription={subscription} health={health} eventId={eventId} />;
}

/**
 * Reads the event that waits for its retry, with the cause of its last failure in words. The health is read less often
 * than the event, which may have been delivered since (`isOver`).
 */
function useBlocked(id: string, eventId: string) {
  const delivery = useQuery(deliveryOptions(useReader(), id, eventId)).data;
  const isRetrying = useQuery(retryingOptions(id, eventId)).data ?? false;
  const last = delivery?.attempts.at(-1);
  return {
    delivery,
    isOver: delivery !== undefined && delivery.state !== "waiting",
    isRetrying,
    cause: last && phraseOf(last),
    next: last?.next_attempt_at ?? null,
  };
}

function BlockedAlert({ subscription, health, eventId }: BlockedProps) {
  const { id, ordering, delivery_kind: kind } = subscription;
  const { delivery, cause, isOver } = useBlocked(id, eventId);
  const isReadOnly = useIsReadOnly();
  const isPerReview = ordering === "review";
  if (isOver) return null;
  const title = `An event is blocking later events${isPerReview ? " of its review" : ""}`;
  return (
    <Alert
      color="yellow"
      icon={<Icon name="clock" />}
      title={cause === undefined ? title : `${title}: ${cause}`}
    >
      <Group justify="space-between" gap="sm">
        <Text size="sm" className="grows section-words">
          <TextLink href={`/webhooks/${id}/deliveries/${eventId}`}>Event {eventId}</TextLink>{" "}
          {timesInWords(health)} <Time at={health.blocked_since} /> (
          <ExactTime at={health.blocked_since} />
          ). <NextAttempt id={id} eventId={eventId} />
          {isPerReview
            ? "Later events of its review are sent after it, in order. Events of other reviews are sent as usual."
            : "Later events are sent after it, in order."}
          {!isReadOnly &&
            !isPerReview &&
            kind === "immediate" &&
            " If order matters only within one review, choose “Strict per review” in the settings."}
        </Text>
        {delivery && <RedeliverButton size="xs" id={id} delivery={delivery} />}
      </Group>
    </Alert>
  );
}

/** Tells in a line of the event that waits for its retry, with the cause and the next attempt. */
export function BlockedLine({ subscription, eventId }: Omit<BlockedProps, "health">) {
  const { id, ordering } = subscription;
  const { cause, isOver } = useBlocked(id, eventId);
  if (isOver) return null;
  return (
    <>
      <TextLink href={`/webhooks/${id}/deliveries/${eventId}`}>An event</TextLink> is being retried;
      later events {ordering === "review" && "of its review "}wait for it.{" "}
      {cause !== undefined && (
        <>
          Last result: {cause}. <NextAttempt id={id} eventId={eventId} />
        </>
      )}
    </>
  );
}

function NextAttempt({ id, eventId }: { readonly id: string; readonly eventId: string }) {
  const { next, isRetrying } = useBlocked(id, eventId);
  if (isRetrying) return "The retry is on its way. ";
  if (next === null) return null;
  return (
    <>
      The next attempt is <Countdown to={next} />.{" "}
    </>
  );
}

const timesInWords = ({ blocked_attempts: failed }: Health) =>
  failed === 1 ? "failed" : `has failed ${number(failed)} times, first`;
