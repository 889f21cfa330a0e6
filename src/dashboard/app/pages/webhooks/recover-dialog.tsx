import { Button, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import { counted } from "../../ui/words.ts";
import type { Subscription } from "./model.ts";
import { TimeField } from "./time-field.tsx";

const DAY_MS = 86_400_000;
/** Of one call; the API says 0 when nothing is left. */
const AT_ONCE = 10_000;

/** Queues again what was not delivered in a window of time. */
export function RecoverButton({ subscription }: { readonly subscription: Subscription }) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" onClick={open} leftSection={<Icon name="refresh" size={16} />}>
        Recover …
      </Button>
      {opened && <RecoverDialog subscription={subscription} onClose={close} />}
    </>
  );
}

function RecoverDialog({
  subscription: { id },
  onClose,
}: {
  readonly subscription: Subscription;
  readonly onClose: () => void;
}) {
  const api = useApi();
  const [since, setSince] = useState<string | undefined>(() =>
    new Date(Date.now() - DAY_MS).toISOString(),
  );
  const [until, setUntil] = useState<string>();
  const recover = async () => {
    if (since === undefined) return;
    const { queued } = await api.call("POST", "/partner/webhooks/:id/recover", {
      params: { id },
      body: { since, ...(until !== undefined && { until }) },
    });
    notify.done(
      queued >= AT_ONCE
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
      isReady={since !== undefined}
      onConfirm={recover}
    >
      <Stack>
        <Text size="sm">
          Every event of this window that was not delivered and is not queued goes to the end of the
          queue, in order, under its old <code>X-SVC-Delivery</code>. What was delivered is not
          touched. For after an outage of your endpoint.
        </Text>
        <TimeField label="Since" value={since} onChange={setSince} />
        <TimeField label="Until (now, if empty)" value={until} onChange={setUntil} />
      </Stack>
    </Confirm>
  );
}
