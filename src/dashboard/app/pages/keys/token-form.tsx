import { TextInput } from "@mantine/core";

import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons, Form } from "../../ui/form.tsx";
import { useForm } from "../../ui/use-form.ts";
import { useApiTokenActions, type TokenDraft } from "./data.ts";
import { ScopesField } from "./scopes-field.tsx";

interface NewTokenProps {
  readonly onClose: () => void;
  readonly onSecret: (token: string) => void;
}

interface TokenFormProps extends NewTokenProps {
  readonly opened: boolean;
}

export function TokenForm({ opened, onClose, onSecret }: TokenFormProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title="Create an API token" centered>
      <NewToken onClose={onClose} onSecret={onSecret} />
    </Dialog>
  );
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
      buttons={
        <DialogButtons
          form={form}
          action="Create token"
          onCancel={onClose}
          isReady={scopes.length > 0}
        />
      }
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
