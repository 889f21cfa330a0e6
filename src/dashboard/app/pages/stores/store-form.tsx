import { TextInput } from "@mantine/core";

import { Form, useForm } from "../../ui/form.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import { type Store, storeDraft, type StoreDraft, useStoreActions } from "./data.ts";

interface StoreFormProps {
  /** Store that the form edits; undefined to create one. */
  readonly store?: Store;
  /** Account that the form of a new store proposes. */
  readonly accountId?: number | undefined;
  readonly onClose: () => void;
  readonly onCreated?: (store: Store) => void;
}

/** Form that creates a store of an account, or changes one. The account of a store never changes. */
export function StoreForm({ store, accountId, onClose, onCreated }: StoreFormProps) {
  const { create, change } = useStoreActions();
  const form = useForm({
    ...(store === undefined && { name: "new store" }),
    initial: storeDraft(store, accountId),
    send: (draft: StoreDraft) => (store === undefined ? create(draft) : change(store.id, draft)),
    done: ({ name }) => `${name} ${store === undefined ? "created" : "saved"}.`,
    onDone: (saved) => {
      onClose();
      onCreated?.(saved);
    },
  });
  return (
    <Form form={form} action={store === undefined ? "Create store" : "Save"} onCancel={onClose}>
      {store === undefined && (
        <CompanySelect
          label="Account"
          types={["account"]}
          required
          isFirst={accountId === undefined}
          value={form.draft.account_id}
          error={form.errorOf("account_id") && "Choose the account."}
          onChange={(account) => form.edit({ account_id: account?.id })}
        />
      )}
      <TextInput
        label="Name"
        description="As partners and webhooks show it."
        required
        data-autofocus={store !== undefined || accountId !== undefined || undefined}
        {...form.text("name")}
      />
      <TextInput
        label="External ID"
        description="Optional. The id that the platform's own systems use for the store."
        autoComplete="off"
        {...form.text("external_id")}
      />
    </Form>
  );
}
