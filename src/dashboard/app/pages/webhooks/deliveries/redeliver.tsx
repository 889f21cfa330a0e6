import { Alert, Button, type ButtonProps, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";

import { Confirm, ConfirmedAction } from "../../../ui/dialog.tsx";
import { TimeField } from "../../../ui/filters.tsx";
import { counted } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { notify } from "../../../ui/notify.ts";
import { useIsReadOnly } from "../data/data.ts";
import type { Subscription } from "../data/reads.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { NOTHING_SENT } from "../data/subscription-words.ts";

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
      label="Redeliver …"
      button={{ size, leftSection: <Icon name="refresh" size={16} /> }}
      title="Deliver this event again"
      action="Redeliver"
      isReady={isActive}
      onConfirm={() => redeliver(eventId)}
      done="The event is queued again."
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

const DAY_MS = 86_400_000;
/**
 * Maximum number of events that one "Recover" request queues. If events are left, the user must send the
 * request again.
 */
const MAX_PER_REQUEST = 10_000;

interface RecoverButtonProps {
  readonly subscription: Pick<Subscription, "id" | "is_active">;
}

/** Button that queues the undelivered events of a period again. */
export function RecoverButton({ subscription }: RecoverButtonProps) {
  const [opened, { open, close }] = useDisclosure();
  if (useIsReadOnly()) return null;
  return (
    <>
      <Button variant="default" onClick={open} leftSection={<Icon name="refresh" size={16} />}>
        Recover …
      </Button>
      {opened && <RecoverDialog subscription={subscription} onClose={close} />}
    </>
  );
}

interface RecoverDialogProps extends RecoverButtonProps {
  readonly onClose: () => void;
}

function RecoverDialog({ subscription, onClose }: RecoverDialogProps) {
  const { id, is_active: isActive } = subscription;
  const { recover } = useSubscriptionActions(id);
  const [since, setSince] = useState<string | undefined>(() =>
    new Date(Date.now() - DAY_MS).toISOString(),
  );
  const [until, setUntil] = useState<string>();
  const confirm = async () => {
    if (since === undefined) return;
    const queued = await recover({ since, ...(until !== undefined && { until }) });
    notify.done(
      queued >= MAX_PER_REQUEST
        ? `${counted(queued, "event")} queued, as many as go at once. Recover again for the rest.`
        : `${counted(queued, "event")} queued.`,
    );
  };
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Recover a window of time"
      action="Queue them again"
      isReady={isActive && since !== undefined}
      onConfirm={confirm}
    >
      <Stack>
        <Text size="sm">
          Every event of this window that was not delivered and is not queued goes to the end of the
          queue, in order, under its old <code>X-SVC-Delivery</code>. What was delivered is not
          touched. For after an outage of your endpoint.
        </Text>
        {!isActive && <Alert color="yellow">{NOTHING_SENT}</Alert>}
        <TimeField label="Since" value={since} onChange={setSince} />
        <TimeField label="Until (now, if empty)" value={until} onChange={setUntil} />
      </Stack>
    </Confirm>
  );
}
