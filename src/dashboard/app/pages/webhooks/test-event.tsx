import { Alert, Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";

import { Countdown } from "../../ui/time.tsx";
import { milliseconds } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import { ErrorNotice } from "../../ui/states.tsx";
import { diagnosisOf } from "./deliveries/attempt-words.ts";
import { useReader } from "./data/data.ts";
import { type Delivery, deliveryOptions } from "./data/reads.ts";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";

import "./webhooks.css";

/** Test event that was already sent, and the time at which the server releases the held events after it. */
export interface SentTest {
  readonly eventId: string;
  readonly followAt: string | null;
}

interface TestEventProps {
  readonly id: string;
  /** Name of the event that is sent as a test; `webhook.test` if absent. */
  readonly event?: string;
  readonly sent?: SentTest | undefined;
  /** Called after the user has disabled the subscription again, which stops the release of the held events. */
  readonly onDisabled?: () => void;
}

/** Sends a test event when the user asks for it, and shows the progress of the delivery. */
export function TestEvent({ id, event, sent: first, onDisabled }: TestEventProps) {
  const { sendTest } = useSubscriptionActions(id);
  const [eventId, setEventId] = useState(first?.eventId);
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => sendTest(event),
    onSuccess: (sent) => setEventId(sent),
  });
  return (
    <Stack gap="sm">
      <Group>
        <Button
          onClick={() => mutate()}
          loading={isPending}
          leftSection={<Icon name="send" size={16} />}
          variant={eventId === undefined ? "filled" : "default"}
        >
          {eventId === undefined ? "Send a test event" : "Send another"}
        </Button>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      {first?.followAt && <Release id={id} followAt={first.followAt} onDisabled={onDisabled} />}
      <div aria-live="polite">
        {eventId !== undefined && <Progress key={eventId} id={id} eventId={eventId} />}
      </div>
    </Stack>
  );
}

interface ReleaseProps {
  readonly id: string;
  readonly followAt: string;
  readonly onDisabled: (() => void) | undefined;
}

/**
 * Shows when the held events will follow the test event. A button disables the subscription before that time,
 * which keeps the events held.
 */
function Release({ id, followAt, onDisabled }: ReleaseProps) {
  const { disable } = useSubscriptionActions(id);
  const { mutate, error, isPending } = useMutation({
    mutationFn: disable,
    onSuccess: () => {
      notify.done("The subscription is disabled again. Its events are held.");
      onDisabled?.();
    },
  });
  return (
    <>
      <Group gap="sm">
        <Text size="sm">
          The held events follow <Countdown to={followAt} />.
        </Text>
        <Button size="compact-sm" variant="default" loading={isPending} onClick={() => mutate()}>
          Disable again
        </Button>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
    </>
  );
}

function Progress({ id, eventId }: { readonly id: string; readonly eventId: string }) {
  const { data, error } = useQuery(deliveryOptions(useReader(), id, eventId));
  if (data === undefined)
    return error === null ? <Text size="sm">Queued …</Text> : <ErrorNotice error={error} />;
  return (
    <Stack gap="sm">
      <ul className="steps">
        <li data-state="done">Queued, signed with the current secret</li>
        {data.attempts.map((attempt) => (
          <li key={attempt.id} data-state={attempt.outcome === "delivered" ? "done" : "failed"}>
            Attempt {attempt.attempt} → {diagnosisOf(attempt).title} in{" "}
            {milliseconds(attempt.duration_ms)}
          </li>
        ))}
        <NextStep delivery={data} />
      </ul>
      <TestResult delivery={data} />
      <Anchor
        component={Link}
        href={`/webhooks/${id}/deliveries/${eventId}`}
        size="sm"
        w="fit-content"
      >
        See the request and the answer
      </Anchor>
    </Stack>
  );
}

interface DeliveryProps {
  readonly delivery: Delivery;
}

function NextStep({ delivery }: DeliveryProps) {
  if (delivery.settled_at !== null) return null;
  const next = delivery.attempts.at(-1)?.next_attempt_at ?? null;
  return (
    <li data-state="waiting">
      {next === null ? "Waiting for the first attempt …" : "Next attempt "}
      {next !== null && <Countdown to={next} />}
    </li>
  );
}

function TestResult({ delivery }: DeliveryProps) {
  const last = delivery.attempts.at(-1);
  if (last === undefined) return null;
  if (delivery.state === "delivered")
    return (
      <Alert color="teal" icon={<Icon name="check" />} title="Delivered">
        Your endpoint took the test event. Make sure that your code checked the signature, and did
        not just answer.
      </Alert>
    );
  const { title, advice } = diagnosisOf(last);
  return (
    <Alert color="red" icon={<Icon name="alert" />} title={title}>
      {advice}
    </Alert>
  );
}
