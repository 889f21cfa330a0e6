import { Alert, Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";

import { useApi } from "../../session.tsx";
import { Countdown } from "../../ui/countdown.tsx";
import { Icon } from "../../ui/icon.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { milliseconds } from "../../ui/words.ts";
import { useDelivery } from "./data.ts";
import type { Attempt, Delivery } from "./model.ts";
import { findingOf } from "./faults.ts";

/** Sends a test event on request and tells what becomes of it, as it happens. */
export function TestEvent({ id }: { readonly id: string }) {
  const api = useApi();
  const [eventId, setEventId] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const send = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const queued = await api.call("POST", "/partner/webhooks/:id/test", { params: { id } });
      setEventId(queued.event_id);
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Stack gap="sm">
      <Group>
        <Button
          onClick={() => void send()}
          loading={isBusy}
          leftSection={<Icon name="send" size={16} />}
          variant={eventId === undefined ? "filled" : "default"}
        >
          {eventId === undefined ? "Send a test event" : "Send another"}
        </Button>
      </Group>
      {error !== undefined && <ErrorNotice error={error} />}
      <div aria-live="polite">
        {eventId !== undefined && <Progress key={eventId} id={id} eventId={eventId} />}
      </div>
    </Stack>
  );
}

function Progress({ id, eventId }: { readonly id: string; readonly eventId: string }) {
  const { data, error } = useDelivery(id, eventId);
  if (data === undefined)
    return error === null ? <Text size="sm">Queued …</Text> : <ErrorNotice error={error} />;
  return (
    <Stack gap="sm">
      <ul className="steps">
        <li data-state="done">Queued, signed with the current secret</li>
        {data.attempts.map((attempt) => (
          <li key={attempt.id} data-state={attempt.outcome === "delivered" ? "done" : "failed"}>
            Attempt {attempt.attempt} → {findingOf(attempt).title} in{" "}
            {milliseconds(attempt.duration_ms)}
          </li>
        ))}
        <NextStep delivery={data} />
      </ul>
      <Verdict delivery={data} />
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

function NextStep({ delivery }: { readonly delivery: Delivery }) {
  if (delivery.settled_at !== null) return null;
  const next = delivery.attempts.at(-1)?.next_attempt_at ?? null;
  return (
    <li data-state="waiting">
      {next === null ? "Waiting for the first attempt …" : "Next attempt "}
      {next !== null && <Countdown to={next} />}
    </li>
  );
}

function Verdict({ delivery }: { readonly delivery: Delivery }) {
  const last: Attempt | undefined = delivery.attempts.at(-1);
  if (last === undefined) return null;
  if (delivery.state === "delivered")
    return (
      <Alert color="teal" icon={<Icon name="check" />} title="Delivered">
        Your endpoint took the test event. Make sure that your code checked the signature, and did
        not just answer.
      </Alert>
    );
  const { title, advice } = findingOf(last);
  return (
    <Alert color="red" icon={<Icon name="alert" />} title={title}>
      {advice}
    </Alert>
  );
}
