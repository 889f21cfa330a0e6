import { Button, Group, Modal, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { fieldError, problemOf } from "../../ui/explain.ts";
import { notify } from "../../ui/notify.ts";
import { ErrorNotice } from "../../ui/states.tsx";
import { useSubmit } from "../../ui/use-submit.ts";
import { GrantsField, KindField } from "./client-fields.tsx";
import {
  bodyOf,
  draftOf,
  NEW_CLIENT,
  redirectFaults,
  type ClientDraft,
  type ClientsPath,
} from "./client-model.ts";
import { ScopesField } from "./scopes-field.tsx";
import type { OAuthClient } from "./use-clients.ts";

export interface Saved {
  readonly client_id: string;
  /** Of a new client; null for a public one, absent after a change. */
  readonly client_secret?: string | null;
}

interface ClientFormProps {
  readonly path: ClientsPath;
  /** Undefined: closed. Without a client: a new one. */
  readonly asked: { readonly client?: OAuthClient | undefined } | undefined;
  readonly onClose: () => void;
  readonly onSaved: (saved: Saved) => void;
}

export function ClientForm({ path, asked, onClose, onSaved }: ClientFormProps) {
  return (
    <Modal
      opened={asked !== undefined}
      onClose={onClose}
      title={<Text fw={650}>{asked?.client ? "Edit the client" : "Create an OAuth client"}</Text>}
      closeButtonProps={{ "aria-label": "Close" }}
      size="lg"
    >
      {asked !== undefined && (
        <Form
          path={path}
          {...(asked.client && { client: asked.client })}
          onSaved={(saved) => {
            onClose();
            onSaved(saved);
          }}
        />
      )}
    </Modal>
  );
}

function Form({
  path,
  client,
  onSaved,
}: {
  readonly path: ClientsPath;
  readonly client?: OAuthClient;
  readonly onSaved: (saved: Saved) => void;
}) {
  const api = useApi();
  const [draft, setDraft] = useState(() => (client === undefined ? NEW_CLIENT : draftOf(client)));
  const isPlatform = path === "/sso/clients";
  const change = (changes: Partial<ClientDraft>) => setDraft((now) => ({ ...now, ...changes }));
  const save = async (): Promise<Saved> => {
    const body = bodyOf(draft, isPlatform);
    if (client === undefined)
      return api.call("POST", path, { body: { ...body, confidential: draft.confidential } });
    const params = { id: client.client_id };
    const saved = await api.call("PATCH", `${path}/:id`, { params, body });
    notify.done("The client is changed.");
    return saved;
  };
  const { error, isBusy, onSubmit } = useSubmit(async () => onSaved(await save()));
  const wrong = (field: string) => fieldError(error, field);
  return (
    <form onSubmit={onSubmit}>
      <Stack>
        <TextInput
          label="Name"
          description="People read it on the consent page."
          required
          withAsterisk={false}
          maxLength={100}
          data-autofocus
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          error={wrong("name")}
        />
        {client === undefined && (
          <KindField
            value={draft.confidential}
            onChange={(confidential) => change({ confidential })}
          />
        )}
        <Textarea
          label="Redirect URIs"
          description="One per line, letter by letter as the app sends them: https, or http on this machine."
          placeholder="https://app.example.com/callback"
          autosize
          minRows={2}
          value={draft.redirectUris}
          onChange={(event) => change({ redirectUris: event.currentTarget.value })}
          error={redirectFaults(problemOf(error)?.errors ?? {}, draft)}
        />
        <ScopesField
          value={draft.scopes}
          onChange={(scopes) => change({ scopes })}
          error={wrong("scopes")}
        />
        <GrantsField
          draft={draft}
          onChange={change}
          isPlatform={isPlatform}
          error={wrong("grant_types")}
        />
        {error !== undefined && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button
            type="submit"
            loading={isBusy}
            disabled={draft.scopes.length === 0 || draft.grantTypes.length === 0}
          >
            {client === undefined ? "Create client" : "Save"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
