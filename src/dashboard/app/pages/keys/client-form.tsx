import { Checkbox, Stack, Switch, Textarea, TextInput } from "@mantine/core";

import { apiErrorOf } from "../../api/client.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Choice, Form, type FormState, useForm } from "../../ui/form.tsx";
import { discardDraft } from "../../ui/drafts.ts";
import { notify } from "../../ui/notify.ts";
import {
  clientDraft,
  type ClientDraft,
  type ClientsPath,
  isGrantType,
  isPlatformPath,
  NEW_CLIENT,
  redirectErrors,
} from "./client-model.ts";
import { type NewClientSecret, type OAuthClient, useOAuthClientActions } from "./data.ts";
import { ScopesField } from "./scopes-field.tsx";

interface NewClientProps {
  readonly path: ClientsPath;
  readonly onClose: () => void;
  readonly onSecret: (client: NewClientSecret) => void;
}

interface ClientFormProps extends NewClientProps {
  /** OAuth client that the form edits, or "new" to create one; undefined while the form is closed. */
  readonly editing: OAuthClient | "new" | undefined;
}

export function ClientForm({ editing, ...rest }: ClientFormProps) {
  const title = typeof editing === "object" ? "Edit client" : "Create an OAuth client";
  const close = () => {
    // Discards the unsaved changes. Otherwise they would reappear when the dialog opens again, and look like
    // saved values.
    if (typeof editing === "object") discardDraft(draftNameOf(editing));
    rest.onClose();
  };
  return (
    <Dialog opened={editing !== undefined} onClose={close} title={title} size="lg">
      {editing === "new" && <NewClient {...rest} />}
      {typeof editing === "object" && <EditClient client={editing} {...rest} />}
    </Dialog>
  );
}

const draftNameOf = ({ client_id: id }: OAuthClient) => `client:${id}`;

/**
 * Maps a field of the draft to the API field of the same value, so that API validation errors appear at the
 * form field.
 */
const FIELDS = {
  name: "name",
  redirectUris: "redirect_uris",
  scopes: "scopes",
  grantTypes: "grant_types",
} as const;

function NewClient({ path, onClose, onSecret }: NewClientProps) {
  const { create } = useOAuthClientActions(path);
  const form = useForm({
    name: "new client",
    initial: NEW_CLIENT,
    names: FIELDS,
    send: create,
    onDone: (created) => {
      onClose();
      onSecret(created);
    },
  });
  return (
    <Form
      form={form}
      isCheckedByBrowser
      isReady={isComplete(form.draft)}
      action="Create client"
      onCancel={onClose}
    >
      <NameField form={form} />
      {/* The kind cannot change after the creation. */}
      <Choice
        label="Where it runs"
        value={form.draft.confidential ? "confidential" : "public"}
        onChange={(kind) => form.edit({ confidential: kind === "confidential" })}
        options={[
          {
            value: "confidential",
            label: "On a server",
            description: "Can keep a secret (confidential client).",
          },
          {
            value: "public",
            label: "In a browser or on a phone",
            description: "Cannot keep a secret (public client), so it must use PKCE.",
          },
        ]}
      />
      <AccessFields form={form} path={path} />
    </Form>
  );
}

interface EditClientProps {
  readonly path: ClientsPath;
  readonly client: OAuthClient;
  readonly onClose: () => void;
}

function EditClient({ path, client, onClose }: EditClientProps) {
  const { change } = useOAuthClientActions(path);
  const form = useForm({
    name: draftNameOf(client),
    initial: clientDraft(client),
    names: FIELDS,
    send: (draft) => change(client.client_id, draft),
    onDone: () => {
      notify.done("Client updated.");
      onClose();
    },
  });
  return (
    <Form
      form={form}
      isCheckedByBrowser
      isReady={isComplete(form.draft)}
      action="Save"
      onCancel={onClose}
    >
      <NameField form={form} />
      <AccessFields form={form} path={path} />
    </Form>
  );
}

interface FieldsProps {
  readonly form: FormState<ClientDraft>;
}

const isComplete = ({ scopes, grantTypes }: ClientDraft): boolean =>
  scopes.length > 0 && grantTypes.length > 0;

function NameField({ form }: FieldsProps) {
  return (
    <TextInput
      label="Name"
      description="Shown on the consent page."
      required
      withAsterisk={false}
      maxLength={100}
      data-autofocus
      {...form.text("name")}
    />
  );
}

/** Form fields for the redirect URIs, grant types and scopes of an OAuth client. */
function AccessFields({ form, path }: FieldsProps & { readonly path: ClientsPath }) {
  const { draft } = form;
  return (
    <>
      <Textarea
        label="Redirect URIs"
        description="One per line. Must match exactly: https, or http on localhost."
        placeholder="https://app.example.com/callback"
        autosize
        minRows={2}
        {...form.text("redirectUris")}
        error={redirectErrors(apiErrorOf(form.error)?.errors ?? {}, draft)}
      />
      <ScopesField
        value={draft.scopes}
        onChange={(scopes) => form.edit({ scopes })}
        error={form.errorOf("scopes")}
      />
      <GrantsField
        draft={draft}
        onChange={(change) => form.edit(change)}
        isPlatform={isPlatformPath(path)}
        error={form.errorOf("grantTypes")}
      />
    </>
  );
}

interface GrantsFieldProps {
  readonly draft: ClientDraft;
  readonly onChange: (change: Partial<ClientDraft>) => void;
  readonly isPlatform: boolean;
  readonly error: string | undefined;
}

function GrantsField({ draft, onChange, isPlatform, error }: GrantsFieldProps) {
  return (
    <>
      <Checkbox.Group
        label="Grant types"
        value={[...draft.grantTypes]}
        onChange={(next) => onChange({ grantTypes: next.filter(isGrantType) })}
        error={error}
      >
        <Stack gap={8} mt={8}>
          <Checkbox
            value="authorization_code"
            label="Authorization code"
            description="Users sign in on the ReviewRelay page."
          />
          <Checkbox
            value="refresh_token"
            label="Refresh token"
            description="Users stay signed in for 30 days after each use."
          />
          {(isPlatform || draft.grantTypes.includes("password")) && (
            <Checkbox
              value="password"
              label="Password"
              description="For trusted first-party servers only, because they see the password."
              disabled={!draft.confidential}
            />
          )}
        </Stack>
      </Checkbox.Group>
      {draft.confidential && (
        <Switch
          label="Require PKCE"
          description="Turn it off only if your library does not support PKCE."
          checked={draft.requirePkce}
          onChange={(event) => onChange({ requirePkce: event.currentTarget.checked })}
        />
      )}
      {isPlatform && (
        <Switch
          label="First-party"
          description="Own app of the platform. If it has a secret, users are not asked for consent."
          checked={draft.firstParty}
          onChange={(event) => onChange({ firstParty: event.currentTarget.checked })}
        />
      )}
    </>
  );
}
