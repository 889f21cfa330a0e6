import { Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactNode } from "react";

import { useApi } from "../../session.tsx";
import { notify } from "../../ui/notify.ts";
import { ErrorNotice } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { counted } from "../../ui/words.ts";
import { keys } from "./data.ts";
import type { Subscription } from "./model.ts";
import { DeleteButton } from "./delete-dialog.tsx";
import { DeliveryFields } from "./delivery-fields.tsx";
import { changesOf, draftOf, type Draft } from "./draft.ts";
import { EndpointFields } from "./endpoint-fields.tsx";
import { RotateButton } from "./rotate-dialog.tsx";
import { updateSubscription } from "./save.ts";
import { Secret } from "./secret.tsx";
import { urlHint } from "./url-hint.ts";
import { isAtField, useFieldFaults } from "./use-field-faults.ts";
import { VerifyCode } from "./verify-code.tsx";

export function Settings({ subscription }: { readonly subscription: Subscription }) {
  const { id, secret_fingerprint: fingerprint } = subscription;
  return (
    <Stack gap="lg">
      <EditForm subscription={subscription} />
      <Section title="Signing secret">
        <Text size="sm">
          Fingerprint <code>{fingerprint}</code>: the first 16 digits of its SHA-256, to compare
          without showing it. Each look is written to the audit log.
        </Text>
        {/* After a rotation what was shown is the old one. */}
        <Group align="flex-start">
          <Secret key={fingerprint} id={id} />
          <RotateButton id={id} />
        </Group>
        <details>
          <summary>Code that checks signatures</summary>
          <VerifyCode />
        </details>
      </Section>
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

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Paper withBorder p="lg" component="section">
      <Stack align="stretch">
        <Title order={2} size="h4">
          {title}
        </Title>
        {children}
      </Stack>
    </Paper>
  );
}

function EditForm({ subscription }: { readonly subscription: Subscription }) {
  const { draft, edit, reset, changes, save, error, isBusy } = useEditing(subscription);
  const form = useFieldFaults(error);
  const isReady =
    changes > 0 && draft.label.trim() !== "" && urlHint(draft.url.trim())?.kind !== "error";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) void save();
  };
  return (
    <Paper withBorder p="lg" component="form" onSubmit={submit} noValidate ref={form}>
      <Stack gap="lg">
        <Title order={2} size="h4">
          Delivery
        </Title>
        <EndpointFields draft={draft} edit={edit} error={error} />
        <DeliveryFields draft={draft} edit={edit} error={error} />
        <Text size="sm" c="dimmed">
          {draft.kind === "batch"
            ? "A new URL holds from the next attempt on; a new interval counts from the last batch."
            : "A new URL and order hold from the next attempt on; events and body for what happens from now on."}
        </Text>
        {error !== undefined && !isAtField(error) && <ErrorNotice error={error} />}
        <Group>
          <Button type="submit" loading={isBusy} disabled={!isReady}>
            {changes === 0 ? "Save" : `Save ${counted(changes, "change")}`}
          </Button>
          {changes > 0 && (
            <Button variant="default" onClick={reset}>
              Discard
            </Button>
          )}
        </Group>
      </Stack>
    </Paper>
  );
}

/** Only what somebody touched is kept aside: the rest follows what others change meanwhile. */
function useEditing(current: Subscription) {
  const api = useApi();
  const client = useQueryClient();
  const [touched, setTouched] = useState<Partial<Draft>>({});
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const draft: Draft = { ...draftOf(current), ...touched };
  const reset = () => {
    setTouched({});
    setError(undefined);
  };
  const save = async () => {
    setBusy(true);
    try {
      client.setQueryData(keys.one(current.id), await updateSubscription(api, draft, current));
      reset();
      notify.done("Saved.");
      void client.invalidateQueries({ queryKey: keys.list });
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return {
    draft,
    edit: (change: Partial<Draft>) => setTouched((before) => ({ ...before, ...change })),
    reset,
    changes: Object.keys(changesOf(draft, current)).length,
    save,
    error,
    isBusy,
  };
}
