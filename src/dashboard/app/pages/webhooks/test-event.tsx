import { PageLink } from "../../ui/layout.tsx";
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
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
import {
  type Delivery,
  deliveryOptions,
  type Subscription,
  type SubscriptionProps,
} from "./data/reads.ts";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";
import css from "./webhooks.module.css";

interface TestEventProps {
  readonly id: string;
  /** Name of the event that is sent as a test; `webhook.test` if absent. */
  readonly event?: string;
  /** True if the button takes the focus when it appears, because the test is the next step. */
  readonly isFirst?: boolean;
}

/** Sends a test event when the user asks for it, and shows the progress of the delivery. */
export function TestEvent({ id, event, isFirst = false }: TestEventProps) {
  const { sendTest } = useSubscriptionActions(id);
  const [eventId, setEventId] = useState<string>();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => sendTest(event),
    onSuccess: (sent) => setEventId(sent),
  });
  return (
    <Stack gap="sm">
      <Group>
        <Button
          data-autofocus
          // Autofocus is acceptable because the user has just saved the URL and will test it next.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus={isFirst}
          onClick={() => mutate()}
          loading={isPending}
          leftSection={<Icon name="send" size={16} />}
          variant={eventId === undefined ? "filled" : "default"}
        >
          {eventId === undefined ? "Send a test event" : "Send another"}
        </Button>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      <div aria-live="polite">
        {eventId !== undefined && <Progress key={eventId} id={id} eventId={eventId} />}
      </div>
    </Stack>
  );
}

interface EnablingTestProps extends SubscriptionProps {
  readonly eventId: string;
  /** Called with the id of the next test event if the user tries again. */
  readonly onSent: (eventId: string | undefined) => void;
  readonly onClose: () => void;
}

/** Shows the progress of the test event that decides whether the subscription is enabled, and its result. */
export function EnablingTest({ subscription, eventId, onSent, onClose }: EnablingTestProps) {
  const { id } = subscription;
  const { enable } = useSubscriptionActions(id);
  const again = useMutation({
    mutationFn: () => enable("deliver", true),
    onSuccess: (next) => onSent(next ?? undefined),
  });
  return (
    <Stack gap="sm" aria-live="polite">
      <Progress id={id} eventId={eventId} />
      <Text size="sm">{decisionInWords(subscription, eventId)}</Text>
      {subscription.pending_test_event_id === eventId ? (
        <CancelTest id={id} />
      ) : (
        <Group>
          {subscription.is_active ? (
            <Button onClick={onClose}>Done</Button>
          ) : (
            <>
              <Button onClick={() => again.mutate()} loading={again.isPending}>
                Try again
              </Button>
              <Button
                component={Link}
                href={`/webhooks/${id}?tab=settings`}
                onClick={onClose}
                variant="default"
              >
                Edit the URL
              </Button>
            </>
          )}
        </Group>
      )}
      {again.error !== null && <ErrorNotice error={again.error} />}
    </Stack>
  );
}

function decisionInWords(subscription: Subscription, eventId: string): string {
  if (subscription.pending_test_event_id === eventId)
    return "If your endpoint answers with a 2xx status, the subscription is enabled. Until then its events are held.";
  if (subscription.is_active) return "The subscription is enabled. Held events are sent in order.";
  return "The subscription stays disabled, and its events are held.";
}

/** Button that cancels the pending test. The subscription stays disabled. */
export function CancelTest({ id }: { readonly id: string }) {
  const { disable } = useSubscriptionActions(id);
  const { mutate, error, isPending } = useMutation({
    mutationFn: disable,
    onSuccess: () => notify.done("The subscription stays disabled. Its events are held."),
  });
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        w="fit-content"
        loading={isPending}
        onClick={() => mutate()}
      >
        Cancel
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </>
  );
}

function Progress({ id, eventId }: { readonly id: string; readonly eventId: string }) {
  const { data, error } = useQuery(deliveryOptions(useReader(), id, eventId));
  if (data === undefined)
    return error === null ? <Text size="sm">Queued…</Text> : <ErrorNotice error={error} />;
  return (
    <Stack gap="sm">
      <ul className={css.steps}>
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
      <PageLink href={`/webhooks/${id}/deliveries/${eventId}`} w="fit-content">
        Show request and response
      </PageLink>
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
      {next === null ? "Waiting for the first attempt…" : "Next attempt "}
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
        Your endpoint accepted the test event. Make sure that your code also verified the signature.
      </Alert>
    );
  const { title, advice } = diagnosisOf(last);
  return (
    <Alert color="red" icon={<Icon name="alert" />} title={title}>
      {advice}
    </Alert>
  );
}
