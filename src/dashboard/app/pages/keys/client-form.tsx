import { Checkbox, Stack, Switch, Textarea, TextInput } from "@mantine/core";

import { apiErrorOf } from "../../api/client.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Choice } from "../../ui/form.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
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

interface ClientFormProps {
  readonly path: ClientsPath;
  /** OAuth client that the form edits, or "new" to create one; undefined while the form is closed. */
  readonly editing: OAuthClient | "new" | undefined;
  readonly onClose: () => void;
  readonly onSecret: (client: NewClientSecret) => void;
}

export function ClientForm(props: ClientFormProps) {
  const { editing, onClose } = props;
  const title = typeof editing === "object" ? "Edit client" : "Create an OAuth client";
  const close = () => {
    // Discards the unsaved changes. Otherwise they would reappear when the dialog opens again, and look like
    // saved values.
    if (typeof editing === "object") discardDraft(draftNameOf(editing));
    onClose();
  };
  return (
    <Dialog opened={editing !== undefined} onClose={close} title={title} size="lg">
      {editing && <ClientFields {...props} />}
    </Dialog>
  );
}

const draftNameOf = ({ client_id: id }: OAuthClient) => `client:${id}`;

/** Form that changes an OAuth client, or creates one if `editing` is "new". */
function ClientFields({ path, editing, onClose, onSecret }: ClientFormProps) {
  const { create, change } = useOAuthClientActions(path);
  const client = typeof editing === "object" ? editing : undefined;
  const form = useForm({
    name: client ? draftNameOf(client) : "new client",
    initial: client ? clientDraft(client) : NEW_CLIENT,
    send: async (draft) => {
      if (client === undefined) return create(draft);
      await change(client.client_id, draft);
      return undefined;
    },
    onDone: (created) => {
      onClose();
      if (created) onSecret(created);
      else notify.done("Client updated.");
    },
  });
  return (
    <Form
      form={form}
      isCheckedByBrowser
      isReady={form.draft.scopes.length > 0 && form.draft.grant_types.length > 0}
      action={client ? "Save" : "Create client"}
      onCancel={onClose}
    >
      <TextInput
        label="Name"
        description="Shown on the consent page."
        required
        withAsterisk={false}
        maxLength={100}
        data-autofocus
        {...form.text("name")}
      />
      {/* The kind cannot change after the creation. */}
      {client === undefined && (
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
      )}
      <AccessFields form={form} path={path} />
    </Form>
  );
}

interface FieldsProps {
  readonly form: FormState<ClientDraft>;
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
        {...form.text("redirect_uris")}
        error={redirectErrors(apiErrorOf(form.error)?.errors ?? {}, draft)}
      />
      <ScopesField
        value={draft.scopes}
        onChange={(scopes) => form.edit({ scopes })}
        error={form.errorOf("scopes")}
      />
      <GrantsField form={form} isPlatform={isPlatformPath(path)} />
    </>
  );
}

function GrantsField({ form, isPlatform }: FieldsProps & { readonly isPlatform: boolean }) {
  const { draft } = form;
  return (
    <>
      <Checkbox.Group
        label="Grant types"
        value={[...draft.grant_types]}
        onChange={(next) => form.edit({ grant_types: next.filter(isGrantType) })}
        error={form.errorOf("grant_types")}
      >
        <Stack gap={8} mt={8}>
          <Checkbox
            value="authorization_code"
            label="Authorization code"
            description="Users sign in on our sign-in page."
          />
          <Checkbox
            value="refresh_token"
            label="Refresh token"
            description="Users stay signed in for 30 days after each use."
          />
          {(isPlatform || draft.grant_types.includes("password")) && (
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
          checked={draft.require_pkce}
          onChange={(event) => form.edit({ require_pkce: event.currentTarget.checked })}
        />
      )}
      {isPlatform && (
        <Switch
          label="First-party"
          description="Own app of the platform. If it has a secret, users are not asked for consent."
          checked={draft.first_party}
          onChange={(event) => form.edit({ first_party: event.currentTarget.checked })}
        />
      )}
    </>
  );
}
