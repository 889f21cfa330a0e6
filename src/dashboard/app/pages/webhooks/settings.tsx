import { Button, Group, Paper, Stack, Text, Title } from "@mantine/core";

import { Form, SubmitButton } from "../../ui/form.tsx";
import { counted } from "../../ui/format.ts";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import type { Subscription } from "./data/reads.ts";
import { changesOf, DRAFT_FIELDS, draftOf } from "./data/draft.ts";
import { useSubscriptionActions } from "./data/use-subscription-actions.ts";
import { DeleteButton } from "./delete-button.tsx";
import { DeliveryFields } from "./form/delivery-fields.tsx";
import { EndpointFields } from "./form/endpoint-fields.tsx";
import { urlHint } from "./form/url-hint.ts";
import { SecretPanel } from "./secret-panel.tsx";

interface SettingsProps {
  readonly subscription: Subscription;
}

export function Settings({ subscription }: SettingsProps) {
  const { id } = subscription;
  return (
    <Stack gap="lg">
      <EditForm subscription={subscription} />
      <SecretPanel subscription={subscription} />
      <Section title="Delete">
        <Text size="sm">
          Deliveries stop at once, and the slot is free for another subscription.
        </Text>
        <DeleteButton subscription={subscription} />
      </Section>
      <Text size="sm" c="dimmed">
        Created <ExactTime at={subscription.created_at} />, changed{" "}
        <ExactTime at={subscription.updated_at} />. Id <code>{id}</code>
      </Text>
    </Stack>
  );
}

/** Fields that nobody touched follow what others change meanwhile. */
function EditForm({ subscription }: SettingsProps) {
  const { update } = useSubscriptionActions(subscription.id);
  const form = useForm({
    name: `subscription:${subscription.id}`,
    initial: draftOf(subscription),
    names: DRAFT_FIELDS,
    send: (draft) => update(draft, subscription),
    onDone: (_, changes) => {
      changes.reset();
      notify.done("Saved.");
    },
  });
  const { draft } = form;
  const changes = Object.keys(changesOf(draft, subscription)).length;
  const isValid = draft.label.trim() !== "" && urlHint(draft.url.trim())?.kind !== "error";
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
        <Text size="sm" c="dimmed">
          {draft.kind === "batch"
            ? "A new URL holds from the next attempt on; a new interval counts from the last batch."
            : "A new URL and order hold from the next attempt on; events and body for what happens from now on."}
        </Text>
      </Form>
    </Paper>
  );
}
