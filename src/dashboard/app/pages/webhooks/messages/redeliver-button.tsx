import { Alert, Button, type ButtonProps } from "@mantine/core";

import { ConfirmedAction } from "../../../ui/confirm.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { notify } from "../../../ui/notify.ts";
import { useIsReadOnly } from "../data/viewed-partner.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";

interface RedeliverButtonProps extends Pick<ButtonProps, "size"> {
  readonly id: string;
  readonly eventId: string;
  readonly isActive: boolean;
}

export function RedeliverButton({ id, eventId, isActive, size = "sm" }: RedeliverButtonProps) {
  const { redeliver } = useSubscriptionActions(id);
  if (useIsReadOnly()) return null;
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button
          size={size}
          variant="default"
          onClick={ask}
          leftSection={<Icon name="refresh" size={16} />}
        >
          Redeliver …
        </Button>
      )}
      title="Deliver this event again"
      action="Redeliver"
      isReady={isActive}
      onConfirm={async () => {
        await redeliver(eventId);
        notify.done("The event is queued again.");
      }}
    >
      {!isActive && (
        <Alert color="yellow" mb="sm">
          The subscription is disabled, and sends nothing until it is enabled.
        </Alert>
      )}
      It goes to the end of the queue, under the same <code>X-SVC-Delivery</code>, with up to four
      attempts. A receiver that remembers what it has handled answers and does nothing.
    </ConfirmedAction>
  );
}
