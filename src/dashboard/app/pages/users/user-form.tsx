import { MultiSelect, NativeSelect, PasswordInput, TextInput } from "@mantine/core";

import { roleName, ROLES } from "../../session/roles.ts";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import type { CompanyChoice } from "../companies/company-drafts.ts";
import { type User, useUserActions } from "./data.ts";
import {
  COMPANY_TYPE_OF,
  draftOf,
  EMPTY_USER,
  ROLE_MEANING,
  rolesBeside,
  type UserDraft,
  withRole,
} from "./user-drafts.ts";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";

interface NewUserProps {
  /** Company of the new user; undefined if the operator chooses it. */
  readonly company?: CompanyChoice & { readonly type: "partner" | "account" };
  readonly onClose: () => void;
}

/** Form for a new user, of the given company or of any. */
export function NewUser({ company, onClose }: NewUserProps) {
  const { create } = useUserActions();
  const role = company?.type === "account" ? "account_owner" : EMPTY_USER.role;
  const form = useForm({
    name: company === undefined ? "new user" : `new user of ${company.id}`,
    secrets: ["password"],
    initial: { ...EMPTY_USER, role, company },
    names: { company: "company_id" },
    send: async (draft) => ({ user: await create(draft), isInvited: draft.password === "" }),
    done: ({ user, isInvited }) =>
      isInvited ? `Invitation sent to ${user.email}.` : `${user.name} created.`,
    onDone: onClose,
  });
  return (
    <Form form={form} action="Create user" onCancel={onClose}>
      <NameFields form={form} />
      <RoleField form={form} roles={company === undefined ? ROLES : rolesBeside(role)} />
      {company === undefined && <CompanyField form={form} />}
      <StoresField form={form} />
      <PasswordInput
        label="Password"
        description="Optional. Without one, we email an invitation to set a password or to use single sign-on."
        autoComplete="new-password"
        {...form.text("password")}
      />
      <ExternalIdField form={form} />
    </Form>
  );
}

interface EditUserProps {
  readonly user: User;
  /** The user's account with its stores; undefined for users of other companies. */
  readonly company: CompanyChoice | undefined;
  readonly onClose: () => void;
}

/** Form that changes a user. The company of a user cannot change. */
export function EditUser({ user, company, onClose }: EditUserProps) {
  const { change } = useUserActions();
  const form = useForm({
    initial: draftOf(user, company),
    names: { company: "company_id" },
    send: (draft) => change(user, draft),
    done: "User saved.",
    onDone: onClose,
  });
  const isMoved = form.draft.email.trim() !== user.email;
  return (
    <Form form={form} action="Save" onCancel={onClose}>
      <NameFields
        form={form}
        emailHint={
          isMoved
            ? "Saving signs the user out everywhere and revokes all tokens."
            : "A new address signs the user out everywhere."
        }
      />
      <RoleField form={form} roles={rolesBeside(form.draft.role)} />
      <StoresField form={form} />
      <ExternalIdField form={form} />
    </Form>
  );
}

interface FieldsProps {
  readonly form: FormState<UserDraft>;
}

function NameFields({ form, emailHint }: FieldsProps & { readonly emailHint?: string }) {
  return (
    <>
      <TextInput label="Name" required data-autofocus {...form.text("name")} />
      <TextInput
        label="Email"
        type="email"
        required
        autoComplete="off"
        description={emailHint}
        {...form.text("email")}
      />
    </>
  );
}

function RoleField({ form, roles }: FieldsProps & { readonly roles: typeof ROLES }) {
  const { role } = form.draft;
  if (roles.length === 1) return null;
  return (
    <NativeSelect
      label="Role"
      description={ROLE_MEANING[role]}
      value={role}
      error={form.errorOf("role")}
      data={roles.map((one) => ({ value: one, label: roleName(one) }))}
      onChange={(event) => {
        const next = roles.find((one) => one === event.currentTarget.value);
        if (next !== undefined) form.edit(withRole(form.draft, next));
      }}
    />
  );
}

function CompanyField({ form }: FieldsProps) {
  const type = COMPANY_TYPE_OF[form.draft.role];
  if (type === "platform") return null;
  return (
    <CompanySelect
      key={type}
      label={type === "partner" ? "Partner" : "Account"}
      types={[type]}
      required
      value={form.draft.company?.id}
      error={form.errorOf("company") && `Choose the ${type}.`}
      onChange={(next) => form.edit({ company: next, store_ids: [] })}
    />
  );
}

function StoresField({ form }: FieldsProps) {
  const { company, role, store_ids: storeIds } = form.draft;
  if (role !== "location_user") return null;
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

function ExternalIdField({ form }: FieldsProps) {
  return (
    <TextInput
      label="External ID"
      description="Optional. The ID of this user in your own systems."
      {...form.text("external_id")}
    />
  );
}
