import { Button, Checkbox, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Confirm } from "../../../ui/dialog.tsx";
import { counted } from "../../../ui/format.ts";
import { Choice } from "../../../ui/form.tsx";
import { notify } from "../../../ui/notify.ts";
import { useReader } from "../data/data.ts";
import { healthOptions, MAX_RESENT_EVENTS, type SubscriptionProps } from "../data/reads.ts";
import {
  type Held,
  useSubscriptionActions,
  useUndelivered,
} from "../data/use-subscription-actions.ts";

export interface EnableProps extends SubscriptionProps {
  /**
   * Called after the request to enable the subscription. `eventId` is the id of the test event if the user chose to
   * send one first.
   */
  readonly onEnabled: (eventId?: string) => void;
}

/** Button that asks what happens to the held events, and enables the subscription. */
export function EnableButton({ subscription, onEnabled }: EnableProps) {
  const { held = 0 } = useQuery(healthOptions(useReader(), subscription.id)).data ?? {};
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" onClick={open}>
        Enable…
      </Button>
      {opened && <EnableDialog {...{ subscription, held, onEnabled }} onClose={close} />}
    </>
  );
}

interface EnableDialogProps extends EnableProps {
  /** Number of events that are held while the subscription is disabled. */
  readonly held: number;
  readonly onClose: () => void;
}

function EnableDialog({ subscription, held, onClose, onEnabled }: EnableDialogProps) {
  const { id, delivery_kind: kind } = subscription;
  const { enable } = useSubscriptionActions(id);
  const undelivered = useUndelivered(subscription);
  const [choice, setChoice] = useState<Held>("deliver");
  const [isTested, setTested] = useState(true);
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Enable the subscription"
      action="Enable"
      danger={choice === "skip"}
      onConfirm={async () => {
        const eventId = await enable(choice, isTested);
        if (eventId === null) notify.done("Subscription enabled.");
        onEnabled(eventId ?? undefined);
      }}
    >
      <Stack>
        <Text size="sm">
          New events are sent again, and the count of failures starts at 0.
          {undelivered > 0 &&
            ` ${undelivered >= MAX_RESENT_EVENTS ? "At least " : ""}${counted(undelivered, "earlier event was", "earlier events were")} not delivered. You can resend ${undelivered === 1 ? "it" : "them"} from Deliveries once the subscription is enabled.`}
        </Text>
        <Checkbox
          label="Send a test event first"
          description="The subscription is enabled only if your endpoint answers it with a 2xx status."
          checked={isTested}
          onChange={(event) => setTested(event.currentTarget.checked)}
        />
        {(kind === "batch" || held > 0) && (
          <Choice
            label={`What happens to the ${kind === "batch" ? "events in between" : "held events"}?`}
            value={choice}
            onChange={setChoice}
            options={kind === "batch" ? batchChoices(held) : immediateChoices(held)}
          />
        )}
      </Stack>
    </Confirm>
  );
}

/**
 * Returns the options for the events of a disabled batch subscription. The events since the last batch enter the
 * queue only with the next batch, so the user decides whether it begins with these events or with later ones.
 */
function batchChoices(held: number) {
  const events = held === 0 ? "" : `The ${counted(held, "held event")} `;
  return [
    {
      value: "deliver",
      label: "Send the events since the last batch",
      description: `${events === "" ? "If" : `${events}first, and if`} a batch is overdue, it is sent immediately.`,
    },
    {
      value: "skip",
      label: "Skip these events",
      description: `${events === "" ? "The" : `${events}are not sent, and the`} next batch contains only events from now on.`,
    },
  ] as const;
}

function immediateChoices(held: number) {
  const events = counted(held, "held event");
  return [
    {
      value: "deliver",
      label: `Deliver the ${events}`,
      description: "They are sent in order, before new events.",
    },
    {
      value: "skip",
      label: `Skip the ${events}`,
      description: "They are not sent. You can still resend them from Deliveries, for 30 days.",
    },
  ] as const;
}
