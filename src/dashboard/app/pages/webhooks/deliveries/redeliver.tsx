import { Alert, type ButtonProps } from "@mantine/core";

import { ConfirmedAction } from "../../../ui/dialog.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { useIsReadOnly } from "../data/data.ts";
import { NOTHING_SENT } from "../data/subscription-words.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";

interface RedeliverButtonProps extends Pick<ButtonProps, "size"> {
  readonly id: string;
  readonly eventId: string;
  readonly isActive: boolean;
}

/** Button that sends one event again. */
export function RedeliverButton({ id, eventId, isActive, size = "sm" }: RedeliverButtonProps) {
  const { redeliver } = useSubscriptionActions(id);
  if (useIsReadOnly()) return null;
  return (
    <ConfirmedAction
      label="Resend …"
      button={{ size, leftSection: <Icon name="refresh" size={16} /> }}
      title="Resend this event"
      action="Resend"
      isReady={isActive}
      onConfirm={() => redeliver(eventId)}
      done="The event is queued again."
    >
      {!isActive && (
        <Alert color="yellow" mb="sm">
          {NOTHING_SENT}
        </Alert>
      )}
      It goes to the end of the queue, under the same <code>X-SVC-Delivery</code>, with up to four
      attempts. Receivers that deduplicate by this header handle it once.
    </ConfirmedAction>
  );
}
