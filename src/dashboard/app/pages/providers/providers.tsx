import { Button, Code, Group, Menu, NativeSelect, Switch, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { BASE_URL } from "../../api/connect.ts";
import { useApi } from "../../session/session.tsx";
import { BreakableText, Tag } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import {
  Confirm,
  Dialog,
  DialogButton,
  type OpenedByLink,
  useRowDialog,
} from "../../ui/dialog.tsx";
import { useOpenedByLink } from "../../ui/filters.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Dimmed, PageHeader, PageLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { SecretDialog } from "../../ui/secret.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Time, useNow } from "../../ui/time.tsx";
import {
  type Provider,
  type ProviderDraft,
  type ProviderSecret,
  providersOptions,
  useProviderActions,
} from "./data.ts";

/**
 * List of the providers, which are review sites that report events. Each provider signs its events with a
 * separate secret.
 */
export function Page() {
  const [secret, setSecret] = useState<ProviderSecret>();
  const editing = useRowDialog<Provider>();
  const create = (opened: OpenedByLink = {}) => (
    <DialogButton label="New provider" {...opened}>
      {(close) => <ProviderForm onClose={close} onSecret={setSecret} />}
    </DialogButton>
  );
  return (
    <>
      <PageHeader
        title="Providers"
        description="The review sites. Your puller, the program that reads a site, reports what happens there in requests signed with the provider's secret."
        actions={create(useOpenedByLink())}
      />
      <TableList
        list={useList(providersOptions(useApi()))}
        noun={["provider", "providers"]}
        empty={
          <EmptyState icon="plug" title="No providers yet" action={create()}>
            Create a provider for each review site, and put its secret into the puller.
          </EmptyState>
        }
        table={{
          caption: "Providers, newest first",
          end: "Actions",
          columns: (one) => ({
            Name: (
              <CellText title={one.name}>
                {one.requires_timestamp ? "Requires a timestamp" : "Timestamp optional"}
              </CellText>
            ),
            "Reports to": (
              <div data-name>
                <Group gap={4} wrap="nowrap">
                  <code>
                    <BreakableText text={`/providers/${one.slug}/events`} />
                  </code>
                  <Copy
                    value={`${BASE_URL}/providers/${one.slug}/events`}
                    label={`Copy the URL of ${one.name}`}
                  />
                </Group>
              </div>
            ),
            Fingerprint: <SecretState provider={one} />,
            "Last refused request": <LastRefused provider={one} />,
            Actions: (
              <ProviderActions
                provider={one}
                onEdit={() => editing.show(one)}
                onSecret={setSecret}
              />
            ),
          }),
        }}
      />
      <Dialog {...editing.dialog} title={`Edit ${editing.dialog.row?.name ?? ""}`} size="lg">
        {editing.dialog.row && (
          <ProviderForm provider={editing.dialog.row} onClose={editing.dialog.onClose} />
        )}
      </Dialog>
      <SecretDialog
        title={`The secret of ${secret?.name ?? ""}`}
        label="Secret"
        secret={secret?.secret}
        onClose={() => setSecret(undefined)}
      >
        <Text size="sm">
          The puller signs the body of each request with this secret, in the header{" "}
          <Code>X-Provider-Signature</Code>.
        </Text>
      </SecretDialog>
    </>
  );
}

/** Shows the beginning of the fingerprint of the secret, and until when the previous secret is valid. */
function SecretState({ provider }: { readonly provider: Provider }) {
  const { secret_fingerprint: fingerprint, previous_secret_expires_at: until } = provider;
  return (
    <>
      <Code title={`First 8 bytes of the secret's SHA-256: ${fingerprint}`}>
        {fingerprint.slice(0, 8)}
      </Code>
      {until !== null && (
        <Dimmed>
          The previous one ends <Time at={until} mayBeAhead />
        </Dimmed>
      )}
    </>
  );
}

/** Time in ms for which a refused request is marked, because its cause may still be there. */
const RECENT_MS = 86_400_000;
const TICK_MS = 60_000;

/** Time at which a request was last refused for its signature, with the audit log of all such requests. */
function LastRefused({ provider }: { readonly provider: Provider }) {
  const { last_refused_at: at } = provider;
  const now = useNow(TICK_MS);
  if (at === null) return <Dimmed size="sm">None recently</Dimmed>;
  return (
    <PageLink href="/audit?action=PROVIDER_AUTH_FAILED" title="Show refused requests">
      {now - Date.parse(at) > RECENT_MS ? (
        <Time at={at} />
      ) : (
        <Tag color="yellow">
          <Time at={at} />
        </Tag>
      )}
    </PageLink>
  );
}

interface ProviderActionsProps {
  readonly provider: Provider;
  readonly onEdit: () => void;
  readonly onSecret: (secret: ProviderSecret) => void;
}

function ProviderActions({ provider, onEdit, onSecret }: ProviderActionsProps) {
  const { rotateSecret, remove } = useProviderActions();
  const [question, setQuestion] = useState<"rotate" | "delete">();
  const [hours, setHours] = useState("24");
  const { id, name } = provider;
  const close = () => setQuestion(undefined);
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      <Button size="xs" variant="default" aria-label={`Edit ${name}`} onClick={onEdit}>
        Edit
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button
            size="xs"
            variant="subtle"
            color="gray"
            rightSection={<Icon name="chevronDown" size={14} />}
            aria-label={`More actions for ${name}`}
          >
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setQuestion("rotate")}>Rotate secret</Menu.Item>
          <Menu.Item c="var(--mantine-color-error)" onClick={() => setQuestion("delete")}>
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Confirm
        opened={question === "rotate"}
        onClose={close}
        title={`Rotate the secret of ${name}?`}
        action="Rotate secret"
        danger
        onConfirm={async () => onSecret(await rotateSecret(id, Number(hours)))}
      >
        <NativeSelect
          label="The current secret stays valid for"
          description={`Until then, put the new one into the puller of ${name}. An older secret ends immediately.`}
          value={hours}
          data={GRACE_HOURS.map(([value, label]) => ({ value, label }))}
          onChange={(event) => setHours(event.currentTarget.value)}
        />
      </Confirm>
      <Confirm
        opened={question === "delete"}
        onClose={close}
        title={`Delete ${name}?`}
        action="Delete provider"
        danger
        onConfirm={() => remove(id)}
        done={`${name} deleted.`}
      >
        The puller's requests are refused from now on. A provider to which a store is connected
        cannot be deleted.
      </Confirm>
    </Group>
  );
}

const GRACE_HOURS = [
  ["0", "No time: it ends now"],
  ["1", "1 hour"],
  ["24", "24 hours"],
  ["72", "3 days"],
  ["168", "7 days"],
] as const;

/** Returns the slug that the form proposes for a name: `Google Maps` becomes `google-maps`. */
const slugOf = (name: string): string =>
  name
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 64);

/** Lets the slug follow the name until somebody edits the slug. */
const withSlug = ({ name }: Partial<ProviderDraft>, before: ProviderDraft) =>
  name !== undefined && before.slug === slugOf(before.name) ? { slug: slugOf(name) } : {};

const EMPTY_PROVIDER: ProviderDraft = { name: "", slug: "", requires_timestamp: false };

interface ProviderFormProps {
  /** Provider that the form edits; undefined to create one. */
  readonly provider?: Provider;
  readonly onClose: () => void;
  readonly onSecret?: (secret: ProviderSecret) => void;
}

function ProviderForm({ provider, onClose, onSecret }: ProviderFormProps) {
  const { create, change } = useProviderActions();
  const form = useForm<ProviderDraft, ProviderSecret | undefined>({
    ...(provider === undefined && { name: "new provider", alongside: withSlug }),
    initial: provider ?? EMPTY_PROVIDER,
    send: async (draft) => {
      if (provider === undefined) return create(draft);
      await change(provider.id, draft);
      return undefined;
    },
    onDone: (created) => {
      onClose();
      if (created) onSecret?.(created);
    },
  });
  return (
    <Form
      form={form}
      action={provider === undefined ? "Create provider" : "Save"}
      onCancel={onClose}
    >
      <TextInput
        label="Name"
        description="Name of the review site, as partners and accounts see it."
        required
        data-autofocus
        {...form.text("name")}
      />
      {provider === undefined && (
        <TextInput
          label="Slug"
          description="Short name in addresses and webhooks: a-z, 0-9, - and _. It cannot be changed."
          required
          {...form.text("slug")}
        />
      )}
      <Switch
        label="Require a timestamp"
        description="Refuses requests without a signed timestamp, so that nobody can send a recorded request again. The puller must send the header X-Provider-Timestamp."
        checked={form.draft.requires_timestamp}
        onChange={(event) => form.edit({ requires_timestamp: event.currentTarget.checked })}
      />
    </Form>
  );
}
