import { TextInput } from "@mantine/core";

import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { type ApiToken, type TokenDraft, useApiTokenActions } from "./data.ts";
import { ScopesField } from "./scopes-field.tsx";

interface TokenProps {
  readonly token: ApiToken;
}

/** Button that deletes an API token, after a dialog has asked for it. */
export function DeleteToken({ token: { id, name } }: TokenProps) {
  const { remove } = useApiTokenActions();
  return (
    <ConfirmedAction
      label="Delete"
      button={{ size: "xs", "aria-label": `Delete the token ${name}` }}
      title="Delete the token?"
      action="Delete"
      danger
      onConfirm={() => remove(id)}
      done="Token deleted."
    >
      Everything that uses <strong>{name}</strong> stops working immediately.
    </ConfirmedAction>
  );
}

interface NewTokenProps {
  readonly onClose: () => void;
  readonly onSecret: (token: string) => void;
}

const EMPTY_TOKEN: TokenDraft = { name: "", scopes: ["reviews:read"] };

/** Form for a new API token. */
export function NewToken({ onClose, onSecret }: NewTokenProps) {
  const { create } = useApiTokenActions();
  const form = useForm({
    name: "new token",
    initial: EMPTY_TOKEN,
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
        description="For example, the job that uses it."
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
