import {
  MultiSelect,
  NativeSelect,
  PasswordInput,
  Stack,
  Switch,
  TagsInput,
  TextInput,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";
import { roleName } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import { companyOptions } from "../companies/data.ts";
import { accountStoresOptions } from "../stores/data.ts";
import {
  EMPTY_SSO,
  NEW_USER_ROLES,
  type SsoConnection,
  type SsoDraft,
  ssoDraft,
  useSsoActions,
} from "./data.ts";

interface ConnectionFormProps {
  /** SSO connection that the form edits; undefined to create one. */
  readonly connection?: SsoConnection;
  readonly onClose: () => void;
  readonly onCreated?: (connection: SsoConnection) => void;
}

/** Form that changes an SSO connection, or creates one. */
export function ConnectionForm({ connection, onClose, onCreated }: ConnectionFormProps) {
  const { create, change } = useSsoActions();
  const form = useForm({
    ...(connection === undefined && { name: "new sso connection" }),
    secrets: ["client_secret"],
    initial: connection === undefined ? EMPTY_SSO : ssoDraft(connection),
    names: { role: "new_users.role", store_ids: "new_users.store_ids" },
    send: (draft: SsoDraft) =>
      connection === undefined ? create(draft) : change(connection.id, draft),
    done: connection === undefined ? "Connection created." : "Connection saved.",
    onDone: (saved) => {
      onClose();
      onCreated?.(saved);
    },
  });
  const isNew = connection === undefined;
  return (
    <Form form={form} action={isNew ? "Create connection" : "Save changes"} onCancel={onClose}>
      {isNew && (
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          required
          isFirst
          value={form.draft.company_id}
          error={form.errorOf("company_id") && "Choose a partner or an account."}
          onChange={(company) =>
            form.edit({ company_id: company?.id, role: undefined, store_ids: [] })
          }
        />
      )}
      <ProviderFields form={form} isNew={isNew} />
      <DomainsField form={form} />
      {/* A new connection works with the defaults. */}
      <details open={!isNew}>
        <summary>Passwords and new users</summary>
        <Stack mt="md">
          <PeopleFields form={form} />
          <NewUserFields form={form} />
        </Stack>
      </details>
    </Form>
  );
}

interface FieldsProps {
  readonly form: FormState<SsoDraft>;
}

/** Form fields for the identity provider and for the client credentials that it has given us. */
function ProviderFields({ form, isNew }: FieldsProps & { readonly isNew: boolean }) {
  return (
    <>
      <TextInput
        label="Issuer"
        description="The https URL of the identity provider, exactly as in its discovery document."
        placeholder="https://"
        type="url"
        required
        data-autofocus={!isNew || undefined}
        {...form.text("issuer")}
      />
      <TextInput label="Client ID" required autoComplete="off" {...form.text("client_id")} />
      <PasswordInput
        label="Client secret"
        description={
          isNew
            ? "Stored encrypted and never shown again. Leave empty for a public client, which uses PKCE alone."
            : "Leave empty to keep the current secret."
        }
        autoComplete="off"
        {...form.text("client_secret")}
      />
    </>
  );
}

function DomainsField({ form }: FieldsProps) {
  return (
    <TagsInput
      label="Email domains"
      description="Domains that the company owns. Press Enter after each. Users with such an address sign in here."
      required
      value={[...form.draft.domains]}
      error={form.errorOf("domains")}
      acceptValueOnBlur
      onChange={(next) => form.edit({ domains: next })}
    />
  );
}

/** Form fields that decide how users sign in through the SSO connection. */
function PeopleFields({ form }: FieldsProps) {
  const { password_login: passwordLogin, trust_email: trustEmail } = form.draft;
  return (
    <>
      <Switch
        label="Allow passwords"
        description="If off, users of these domains sign in only with the identity provider. Turn it off after single sign-on has worked."
        checked={passwordLogin}
        onChange={(event) => form.edit({ password_login: event.currentTarget.checked })}
      />
      <Switch
        label="Trust unverified addresses"
        description="For identity providers that do not report whether an address is verified, such as Microsoft Entra ID. Applies only to domains that are verified by DNS. Leave it off if users can register themselves at the identity provider."
        checked={trustEmail}
        onChange={(event) => form.edit({ trust_email: event.currentTarget.checked })}
      />
    </>
  );
}

/** Form fields for the users that a sign-in creates. The roles depend on the type of the company. */
function NewUserFields({ form }: FieldsProps) {
  const { company_id: companyId, role } = form.draft;
  const type = useQuery(companyOptions(useApi(), companyId)).data?.type;
  const roles: readonly NonNullable<typeof role>[] =
    type === "partner" || type === "account" ? NEW_USER_ROLES[type] : [];
  const [first] = roles;
  return (
    <>
      <Switch
        label="Create users at their first sign-in"
        description="For addresses in domains that are verified by DNS. If off, you or the company invite each user first."
        checked={role !== undefined}
        disabled={first === undefined}
        onChange={(event) => form.edit({ role: event.currentTarget.checked ? first : undefined })}
      />
      {role !== undefined && (
        <NativeSelect
          label="Role of new users"
          value={role}
          error={form.errorOf("role")}
          data={roles.map((one) => ({ value: one, label: roleName(one) }))}
          onChange={(event) =>
            form.edit({ role: roles.find((one) => one === event.currentTarget.value) })
          }
        />
      )}
      {role === "location_user" && companyId !== undefined && (
        <StoresOfNewUsers form={form} accountId={companyId} />
      )}
    </>
  );
}

function StoresOfNewUsers({ form, accountId }: FieldsProps & { readonly accountId: number }) {
  const stores = useQuery(accountStoresOptions(useApi(), accountId)).data ?? [];
  return (
    <MultiSelect
      label="Stores of new users"
      description="They see the reviews of these stores only."
      required
      searchable
      data={stores.map(({ id, name }) => ({ value: String(id), label: name }))}
      value={[...form.draft.store_ids]}
      error={form.errorOf("store_ids")}
      onChange={(ids) => form.edit({ store_ids: ids })}
    />
  );
}
