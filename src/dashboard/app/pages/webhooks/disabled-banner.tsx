import { Alert, Button, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import { ExactTime, Time } from "../../ui/time.tsx";
import { counted } from "../../ui/words.ts";
import { Choice } from "./choice.tsx";
import { keys, useHealth } from "./data.ts";
import type { Subscription } from "./model.ts";
import { disabledBecause } from "./faults.ts";
import { queued } from "./health-figures.tsx";

type Held = "deliver" | "skip";

/** Why nothing is sent, what waits, and the way back. */
export function DisabledBanner({ subscription }: { readonly subscription: Subscription }) {
  const held = useHealth(subscription.id).data?.held;
  const [opened, { open, close }] = useDisclosure();
  return (
    <Alert color="red" icon={<Icon name="pause" />} title="Disabled: nothing is sent" mb="md">
      <Stack gap="sm" align="flex-start">
        <Text size="sm">
          Since <ExactTime at={subscription.disabled_at} /> (<Time at={subscription.disabled_at} />
          ), because {disabledBecause(subscription)}.{" "}
          {held === undefined
            ? "Events are held meanwhile."
            : `${queued(held)} ${held === 1 ? "event is" : "events are"} held, and kept for 30 days.`}{" "}
          Mend the endpoint first; what it answered is under Deliveries.
        </Text>
        <Button onClick={open}>Enable …</Button>
      </Stack>
      {opened && <EnableDialog id={subscription.id} held={held ?? 0} onClose={close} />}
    </Alert>
  );
}

function EnableDialog({
  id,
  held,
  onClose,
}: {
  readonly id: string;
  readonly held: number;
  readonly onClose: () => void;
}) {
  const api = useApi();
  const client = useQueryClient();
  const [choice, setChoice] = useState<Held>("deliver");
  const enable = async () => {
    const enabled = await api.call("POST", "/partner/webhooks/:id/enable", {
      params: { id },
      body: { held: choice },
    });
    client.setQueryData(keys.one(id), enabled);
    void client.invalidateQueries({ queryKey: keys.all });
    notify.done("The subscription is enabled.");
  };
  const events = counted(held, "held event");
  return (
    <Confirm
      opened
      onClose={onClose}
      title="Enable the subscription"
      action="Enable"
      danger={choice === "skip" && held > 0}
      onConfirm={enable}
    >
      <Stack>
        <Text size="sm">
          The count of failures starts at 0 again. New events are sent from now on.
        </Text>
        <Choice
          label="What becomes of the events that were held?"
          value={choice}
          onChange={setChoice}
          options={[
            {
              value: "deliver",
              label: `Deliver the ${events}`,
              description: "In their order, before anything new.",
            },
            {
              value: "skip",
              label: `Skip the ${events}`,
              description:
                "They are not sent. You can still bring them back with Recover, for 30 days.",
            },
          ]}
        />
      </Stack>
    </Confirm>
  );
}
