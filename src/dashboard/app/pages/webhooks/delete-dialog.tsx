import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import { keys, useHealth } from "./data.ts";
import type { Subscription } from "./model.ts";
import { queued } from "./health-figures.tsx";

export function DeleteButton({ subscription }: { readonly subscription: Subscription }) {
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

/** Nothing of it comes back, so the label is to be typed. */
function DeleteDialog({
  subscription: { id, label },
  onClose,
}: {
  readonly subscription: Subscription;
  readonly onClose: () => void;
}) {
  const api = useApi();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const health = useHealth(id).data;
  const waiting = health === undefined ? undefined : health.pending + health.held;
  const remove = async () => {
    await api.call("DELETE", "/partner/webhooks/:id", { params: { id } });
    navigate("/webhooks", { replace: true });
    client.removeQueries({ queryKey: keys.one(id) });
    void client.invalidateQueries({ queryKey: keys.list });
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
      onConfirm={remove}
    >
      <Stack>
        <div>
          <Text size="sm">This is lost, and cannot be brought back:</Text>
          <ul>
            <li>
              {waiting === undefined
                ? "the events that are queued"
                : `${queued(waiting)} queued ${waiting === 1 ? "event" : "events"}`}
              , which will never be sent
            </li>
            <li>the secret: a new subscription gets another one</li>
            <li>the deliveries of the last 30 days with their charts</li>
          </ul>
        </div>
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
