import { PageTabs } from "../../ui/layout.tsx";
import { Code, Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session/session.tsx";
import { ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { useFilters } from "../../ui/filters.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { CellText, PageHeader } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { SecretDialog } from "../../ui/secret.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { type ProviderSecret, providersOptions, useProviderActions } from "./data.ts";
import { SsoConnections } from "./sso-connections.tsx";

export function Page() {
  const { get, set } = useFilters(["tab", "company"]);
  return (
    <>
      <PageHeader
        title="Connections"
        description="Providers of reviews, and connections for single sign-on."
      />
      <PageTabs
        value={get("tab") === "sso" ? "sso" : "providers"}
        onChange={(tab) => set({ tab: tab === "sso" ? tab : undefined, company: undefined })}
        tabs={{
          providers: { title: "Providers", content: <Providers /> },
          sso: { title: "Single sign-on", content: <SsoConnections /> },
        }}
      />
    </>
  );
}

/**
 * List of the providers, which are review sites that report events. Each provider signs its events with a
 * separate secret.
 */
function Providers() {
  const [secret, setSecret] = useState<ProviderSecret>();
  const create = (
    <DialogButton label="New provider">
      {(close) => <NewProvider onClose={close} onSecret={setSecret} />}
    </DialogButton>
  );
  return (
    <>
      <Group justify="space-between" mb="md" gap="sm">
        <Text size="sm" c="dimmed" maw={620} flex="1 1 280px">
          A provider reports the events of a review site in requests that are signed with its
          secret.
        </Text>
        {create}
      </Group>
      <TableList
        list={useList(providersOptions(useApi()))}
        noun={["provider", "providers"]}
        empty={
          <EmptyState icon="plug" title="No providers yet" action={create}>
            Create a provider for each review site and configure its secret in the puller.
          </EmptyState>
        }
        table={{
          caption: "Providers, newest first",
          end: "Change",
          columns: (one) => ({
            Name: <CellText title={one.name} />,
            Slug: <Code>{one.slug}</Code>,
            "Reports to": (
              <Code>
                /api/v1/providers/
                <wbr />
                {one.slug}
                <wbr />
                /events
              </Code>
            ),
            Change: <RotateSecret provider={one} onSecret={setSecret} />,
          }),
        }}
      />
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

interface RotateSecretProps {
  readonly provider: { readonly id: number; readonly name: string };
  readonly onSecret: (secret: ProviderSecret) => void;
}

function RotateSecret({ provider: { id, name }, onSecret }: RotateSecretProps) {
  const { rotateSecret } = useProviderActions();
  return (
    <ConfirmedAction
      label="Rotate secret"
      button={{ size: "xs", "aria-label": `Rotate secret of ${name}` }}
      title={`Rotate the secret of ${name}?`}
      action="Rotate secret"
      danger
      onConfirm={async () => onSecret(await rotateSecret(id))}
    >
      The current secret stays valid for 24 hours. Configure the new one in the puller of {name}{" "}
      before it expires.
    </ConfirmedAction>
  );
}

interface NewProviderProps {
  readonly onClose: () => void;
  readonly onSecret: (secret: ProviderSecret) => void;
}

function NewProvider({ onClose, onSecret }: NewProviderProps) {
  const { create } = useProviderActions();
  const form = useForm({
    name: "new provider",
    initial: { name: "", slug: "" },
    send: create,
    onDone: (provider) => {
      onClose();
      onSecret(provider);
    },
  });
  return (
    <Form form={form} action="Create provider" onCancel={onClose}>
      <TextInput
        label="Name"
        description="Name of the review site."
        required
        data-autofocus
        {...form.text("name")}
      />
      <TextInput
        label="Slug"
        description="Used in URLs and payloads and cannot be changed: a-z, 0-9, - and _."
        required
        {...form.text("slug")}
      />
    </Form>
  );
}
