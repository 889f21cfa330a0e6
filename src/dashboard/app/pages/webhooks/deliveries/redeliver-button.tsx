import { Alert, type ButtonProps } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { ConfirmedAction } from "../../../ui/dialog.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { useIsReadOnly, useReader } from "../data/data.ts";
import {
  type Attempt,
  type Delivery,
  type ListedDelivery,
  retryingOptions,
  subscriptionOptions,
} from "../data/reads.ts";
import { NothingSent } from "../stats/health-summary.tsx";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { ATTEMPTS } from "./attempt-words.ts";

interface RedeliverButtonProps extends Pick<ButtonProps, "size"> {
  readonly id: string;
  readonly delivery: Pick<Delivery | ListedDelivery, "event_id" | "state"> & {
    readonly attempts: readonly Pick<Attempt, "attempt">[];
  };
}

/** Button that sends one event again, or makes the retry that an event waits for at once. */
export function RedeliverButton({ id, delivery, size = "sm" }: RedeliverButtonProps) {
  const { event_id: eventId, state, attempts } = delivery;
  const isActive = useQuery(subscriptionOptions(useReader(), id)).data?.is_active ?? true;
  const isRetrying = useQuery(retryingOptions(id, eventId)).data ?? false;
  const { redeliver, retry } = useSubscriptionActions(id);
  if (useIsReadOnly() || state === "pending" || state === "held") return null;
  const button = { size, leftSection: <Icon name="refresh" size={16} /> };
  if (state === "waiting")
    return (
      <ConfirmedAction
        label={isRetrying ? "Retrying…" : "Retry now…"}
        // Not disabled, because the button would lose the focus that the dialog returns to it.
        button={{ ...button, "data-disabled": isRetrying }}
        title="Retry this event now"
        action="Retry now"
        onConfirm={() => retry(eventId)}
        done="The retry is on its way."
      >
        {retryInWords((attempts.at(-1)?.attempt ?? 0) + 1)}
      </ConfirmedAction>
    );
  return (
    <ConfirmedAction
      label="Resend…"
      button={button}
      title="Resend this event"
      action="Resend"
      isReady={isActive}
      onConfirm={() => redeliver(eventId)}
      done="Event queued again."
    >
      {!isActive && (
        <Alert color="yellow" mb="sm">
          <NothingSent id={id} />
        </Alert>
      )}
      It is added to the end of the queue with the same <code>X-SVC-Delivery</code>, with up to four
      attempts. Receivers that deduplicate by this header handle it once.
    </ConfirmedAction>
  );
}

function retryInWords(attempt: number): string {
  const fails =
    attempt < ATTEMPTS
      ? "If it fails, the next retry follows as usual."
      : "It is the last one: if it fails, there are no more retries.";
  return `Attempt ${attempt} of ${ATTEMPTS} is made now instead of later. ${fails}`;
}
