import { Button, Group, Paper, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";

import { Confirm, ConfirmedAction } from "../../../ui/dialog.tsx";
import { Form, SubmitButton, useForm } from "../../../ui/form.tsx";
import { counted, number } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { Section, Dimmed } from "../../../ui/layout.tsx";
import { notify } from "../../../ui/notify.ts";
import { ExactTime } from "../../../ui/time.tsx";
import { useReader } from "../data/data.ts";
import { changesOf, draftOf, urlHint } from "../data/draft.ts";
import { healthOptions, type SubscriptionProps } from "../data/reads.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import { DeliveryFields } from "./delivery-fields.tsx";
import { EndpointFields } from "./endpoint-fields.tsx";
import { SecretPanel } from "./secret-panel.tsx";

export function Settings({ subscription }: SubscriptionProps) {
  const { id } = subscription;
  return (
    <Stack gap="lg">
      <EditForm subscription={subscription} />
      <SecretPanel subscription={subscription} />
      <Section title="Disable or delete">
        <Text size="sm">
          A disabled subscription holds its events for up to 30 days. After you delete it, you can
          create another subscription of the same kind.
        </Text>
        <Group>
          {subscription.is_active && <DisableButton id={id} />}
          <DeleteButton subscription={subscription} />
        </Group>
      </Section>
      <Dimmed size="sm">
        Created <ExactTime at={subscription.created_at} />, changed{" "}
        <ExactTime at={subscription.updated_at} />. Id <code>{id}</code>
      </Dimmed>
    </Stack>
  );
}

/** Form for the settings of a subscription. Fields that the user has not edited show changes that other users save. */
function EditForm({ subscription }: SubscriptionProps) {
  const { update } = useSubscriptionActions(subscription.id);
  const form = useForm({
    name: `subscription:${subscription.id}`,
    initial: draftOf(subscription),
    send: (draft) => update(draft, subscription),
    done: "Saved.",
  });
  const { draft } = form;
  const changes = Object.keys(changesOf(draft, subscription)).length;
  const isValid = draft.label.trim() !== "" && urlHint(draft.webhook_url.trim())?.kind !== "error";
  return (
    <Paper withBorder p="lg">
      <Form
        form={form}
        gap="lg"
        buttons={
          <Group>
            <SubmitButton form={form} isReady={changes > 0 && isValid}>
              {changes === 0 ? "Save" : `Save ${counted(changes, "change")}`}
            </SubmitButton>
            {changes > 0 && (
              <Button variant="default" onClick={() => form.reset()}>
                Discard
              </Button>
            )}
          </Group>
        }
      >
        <Title order={2} size="h4">
          Delivery
        </Title>
        <EndpointFields form={form} />
        <DeliveryFields form={form} />
        <Dimmed size="sm">
          {draft.delivery_kind === "batch"
            ? "URL and headers apply to the next attempt. The interval counts from the last batch."
            : "URL, order and headers apply to the next attempt; events and body to new events only."}
        </Dimmed>
      </Form>
    </Paper>
  );
}

function DisableButton({ id }: { readonly id: string }) {
  const { disable } = useSubscriptionActions(id);
  return (
    <ConfirmedAction
      label="Disable …"
      button={{ leftSection: <Icon name="pause" size={16} /> }}
      title="Disable the subscription"
      action="Disable"
      onConfirm={disable}
      done="The subscription is disabled."
    >
      Nothing is sent until you enable it again. You then choose whether the held events are sent or
      skipped.
    </ConfirmedAction>
  );
}

function DeleteButton({ subscription }: SubscriptionProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button
        variant="light"
        color="red"
        onClick={open}
        leftSection={<Icon name="trash" size={16} />}
      >
        Delete the subscription …
      </Button>
      {opened && <DeleteDialog subscription={subscription} onClose={close} />}
    </>
  );
}

interface DeleteDialogProps extends SubscriptionProps {
  readonly onClose: () => void;
}

/**
 * Dialog that confirms the deletion of a subscription. The user must type the label, because a deleted
 * subscription cannot be restored.
 */
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
      action="Delete permanently"
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
  const health = useQuery(healthOptions(useReader(), id)).data;
  const waiting = health === undefined ? undefined : health.pending + health.held;
  return (
    <div>
      <Text size="sm">This data is deleted permanently:</Text>
      <ul>
        <li>
          {waiting === undefined
            ? "the events that are queued"
            : `${number(waiting)} queued ${waiting === 1 ? "event" : "events"}`}
          , which will never be sent
        </li>
        <li>the secret: a new subscription gets a new one</li>
        <li>the deliveries and charts of the last 30 days</li>
      </ul>
    </div>
  );
}
