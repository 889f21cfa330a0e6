import { Button, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { ConfirmedAction, Dialog } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { PageHeader, Section } from "../../ui/layout.tsx";
import { List, Row, Rows } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { clientsPathOf } from "./client-model.ts";
import { type ApiToken, apiTokensOptions, type TokenDraft, useApiTokenActions } from "./data.ts";
import { OAuthClientsSection } from "./oauth-clients.tsx";
import { PersonalTokenSection } from "./personal-token.tsx";
import { ScopesField } from "./scopes-field.tsx";
import { scopeWords } from "./scopes.ts";
import { ShownOnce } from "./shown-once.tsx";

export function Page() {
  const { role } = useSession().user;
  const clientsPath = clientsPathOf(role);
  return (
    <>
      <PageHeader
        title="API keys"
        description="What your own programs use to call the API as you. Keep them like passwords."
      />
      <Stack gap="lg">
        <PersonalTokenSection />
        <ApiTokensSection />
        {clientsPath !== undefined && <OAuthClientsSection path={clientsPath} />}
      </Stack>
    </>
  );
}

export function ApiTokensSection() {
  const [isCreating, setCreating] = useState(false);
  const stop = () => setCreating(false);
  const [secret, setSecret] = useState<string>();
  return (
    <Section
      title="API tokens for a day"
      description="For a job that ends today, such as an import: as many as you like, each with its own scopes. They expire after a day by themselves."
      actions={
        <Button variant="default" onClick={() => setCreating(true)}>
          Create token
        </Button>
      }
    >
      <List
        list={useList(apiTokensOptions(useApi()))}
        more="Show older ones"
        empty={
          <EmptyState icon="key" title="No tokens">
            Create one, give it to the job, and forget it: tomorrow it is gone.
          </EmptyState>
        }
      >
        {(rows) => (
          <Rows label="API tokens">
            {rows.map((one) => (
              <TokenRow key={one.id} token={one} />
            ))}
          </Rows>
        )}
      </List>
      <Dialog opened={isCreating} onClose={stop} title="Create an API token" centered>
        <NewToken onClose={stop} onSecret={setSecret} />
      </Dialog>
      <ShownOnce
        title="Your new token"
        label="API token"
        secret={secret}
        onClose={() => setSecret(undefined)}
      />
    </Section>
  );
}

interface TokenProps {
  readonly token: ApiToken;
}

function TokenRow({ token }: TokenProps) {
  return (
    <Row actions={<DeleteToken token={token} />}>
      <Text fw={600}>{token.name}</Text>
      <Text size="sm" c="dimmed">
        {scopeWords(token.scopes)}
      </Text>
      <Text size="sm" c="dimmed">
        Created <Time at={token.created_at} />, <LastUsed at={token.last_used_at} />, expires{" "}
        <Time at={token.expires_at} mayBeAhead />
      </Text>
    </Row>
  );
}

function DeleteToken({ token: { id, name } }: TokenProps) {
  const { remove } = useApiTokenActions();
  return (
    <ConfirmedAction
      label="Delete"
      button={{ size: "xs", "aria-label": `Delete the token ${name}` }}
      title="Delete the token?"
      action="Delete"
      danger
      onConfirm={() => remove(id)}
      done="The token is deleted."
    >
      Whatever uses <strong>{name}</strong> stops working at once.
    </ConfirmedAction>
  );
}

interface NewTokenProps {
  readonly onClose: () => void;
  readonly onSecret: (token: string) => void;
}

const EMPTY_TOKEN: TokenDraft = { name: "", scopes: [] };

function NewToken({ onClose, onSecret }: NewTokenProps) {
  const { create } = useApiTokenActions();
  const form = useForm({
    name: "new token",
    initial: EMPTY_TOKEN,
    names: { name: "name", scopes: "scopes" },
    send: create,
    onDone: (token) => {
      onClose();
      onSecret(token);
    },
  });
  const { scopes } = form.draft;
  return (
    <Form
      form={form}
      isCheckedByBrowser
      action="Create token"
      onCancel={onClose}
      isReady={scopes.length > 0}
    >
      <TextInput
        label="Name"
        description="What it is for."
        required
        withAsterisk={false}
        maxLength={100}
        data-autofocus
        {...form.text("name")}
      />
      <ScopesField
        value={scopes}
        onChange={(next) => form.edit({ scopes: next })}
        error={form.errorOf("scopes")}
      />
    </Form>
  );
}
