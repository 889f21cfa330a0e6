import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { useLocation } from "wouter";

import { Confirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import { useHealth } from "./data/data.ts";
import type { Subscription } from "./data/reads.ts";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";
import { number } from "../../ui/format.ts";

interface DeleteButtonProps {
  readonly subscription: Subscription;
}

export function DeleteButton({ subscription }: DeleteButtonProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <Group>
      <Button
        variant="light"
        color="red"
        onClick={open}
        leftSection={<Icon name="trash" size={16} />}
      >
        Delete the subscription …
      </Button>
      {opened && <DeleteDialog subscription={subscription} onClose={close} />}
    </Group>
  );
}

interface DeleteDialogProps extends DeleteButtonProps {
  readonly onClose: () => void;
}

/** Nothing of a subscription comes back, so that somebody has to type its label. */
function DeleteDialog({ subscription: { id, label }, onClose }: DeleteDialogProps) {
  const { remove } = useSubscriptionActions(id);
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const confirm = async () => {
    await remove(() => navigate("/webhooks", { replace: true }));
    notify.done(`“${label}” is deleted.`);
  };
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Delete the subscription"
      action="Delete for good"
      danger
      isReady={typed.trim() === label.trim()}
      onConfirm={confirm}
    >
      <Stack>
        <Losses id={id} />
        <TextInput
          label={
            <>
              Type <b>{label}</b> to confirm
            </>
          }
          value={typed}
          autoComplete="off"
          data-autofocus
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      </Stack>
    </Confirm>
  );
}

function Losses({ id }: { readonly id: string }) {
  const health = useHealth(id).data;
  const waiting = health === undefined ? undefined : health.pending + health.held;
  return (
    <div>
      <Text size="sm">This is lost, and cannot be brought back:</Text>
      <ul>
        <li>
          {waiting === undefined
            ? "the events that are queued"
            : `${number(waiting)} queued ${waiting === 1 ? "event" : "events"}`}
          , which will never be sent
        </li>
        <li>the secret: a new subscription gets another one</li>
        <li>the deliveries of the last 30 days with their charts</li>
      </ul>
    </div>
  );
}
