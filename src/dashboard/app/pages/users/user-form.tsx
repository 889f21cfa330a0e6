import { MultiSelect, NativeSelect, PasswordInput, TextInput } from "@mantine/core";

import { roleName, ROLES } from "../../session/identity.ts";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import {
  COMPANY_TYPE_OF,
  EMPTY_USER,
  ROLE_MEANING,
  type UserDraft,
  useUserActions,
  withRole,
} from "./data.ts";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";

export function NewUser({ onClose }: { readonly onClose: () => void }) {
  const { create } = useUserActions();
  const form = useForm({
    name: "new user",
    secrets: ["password"],
    initial: EMPTY_USER,
    names: { company: "company_id" },
    send: create,
    done: ({ name }) => `${name} is created.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action="Create user" onCancel={onClose}>
      <TextInput label="Name" required data-autofocus {...form.text("name")} />
      <TextInput label="Email" type="email" required autoComplete="off" {...form.text("email")} />
      <RoleFields form={form} />
      <PasswordInput
        label="Password"
        description="Optional. Leave empty for users of an identity provider, or who set a password by email."
        autoComplete="new-password"
        {...form.text("password")}
      />
    </Form>
  );
}

interface FieldsProps {
  readonly form: FormState<UserDraft>;
}

/** Form fields for the user's role, and for the company or stores in which the user has the role. */
function RoleFields({ form }: FieldsProps) {
  const { role, company } = form.draft;
  const type = COMPANY_TYPE_OF[role];
  return (
    <>
      <NativeSelect
        label="Role"
        description={ROLE_MEANING[role]}
        value={role}
        error={form.errorOf("role")}
        data={ROLES.map((one) => ({ value: one, label: roleName(one) }))}
        onChange={(event) => {
          const next = ROLES.find((one) => one === event.currentTarget.value);
          if (next !== undefined) form.edit(withRole(form.draft, next));
        }}
      />
      {type !== "platform" && (
        <CompanySelect
          key={type}
          label={type === "partner" ? "Partner" : "Account"}
          types={[type]}
          required
          value={company?.id}
          error={form.errorOf("company") && `Choose the ${type}.`}
          onChange={(next) => form.edit({ company: next, store_ids: [] })}
        />
      )}
      {role === "location_user" && <StoresField form={form} />}
    </>
  );
}

function StoresField({ form }: FieldsProps) {
  const { company, store_ids: storeIds } = form.draft;
  return (
    <MultiSelect
      label="Stores"
      description="The user sees the reviews of these stores only."
      placeholder={company === undefined ? "Choose the account first" : ""}
      disabled={company === undefined}
      required
      searchable
      data={company?.stores.map(({ id, name }) => ({ value: String(id), label: name })) ?? []}
      value={[...storeIds]}
      error={form.errorOf("store_ids")}
      onChange={(ids) => form.edit({ store_ids: ids })}
    />
  );
}
