import { TextInput } from "@mantine/core";

import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons, Form } from "../../ui/form.tsx";
import { useForm } from "../../ui/use-form.ts";
import { useProviderActions, type ProviderSecret } from "./data.ts";

interface NewProviderProps {
  readonly onClose: () => void;
  readonly onSecret: (secret: ProviderSecret) => void;
}

interface ProviderFormProps extends NewProviderProps {
  readonly opened: boolean;
}

export function ProviderForm({ opened, onClose, onSecret }: ProviderFormProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title="New provider" size="lg">
      <NewProvider onClose={onClose} onSecret={onSecret} />
    </Dialog>
  );
}

function NewProvider({ onClose, onSecret }: NewProviderProps) {
  const { create } = useProviderActions();
  const form = useForm({
    name: "new provider",
    initial: { name: "", slug: "" },
    names: { name: "name", slug: "slug" },
    send: create,
    onDone: (provider) => {
      onClose();
      onSecret(provider);
    },
  });
  return (
    <Form
      form={form}
      buttons={<DialogButtons form={form} action="Create provider" onCancel={onClose} />}
    >
      <TextInput
        label="Name"
        description="As people know the site."
        required
        data-autofocus
        {...form.text("name")}
      />
      <TextInput
        label="Slug"
        description="In addresses and webhook bodies, for ever: a-z, 0-9, - and _."
        required
        {...form.text("slug")}
      />
    </Form>
  );
}
