import { PasswordInput, Switch, TagsInput, TextInput } from "@mantine/core";

import { Dialog } from "../../ui/dialog.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { discardDraft } from "../../ui/drafts.ts";
import { notify } from "../../ui/notify.ts";
import { CompanySelect } from "../companies/company-select.tsx";
import { EMPTY_SSO, type SsoConnection, type SsoDraft, useSsoActions } from "./data.ts";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";

interface SsoFormProps {
  /** SSO connection that the form edits, or "new" to create one; undefined while the form is closed. */
  readonly editing: SsoConnection | "new" | undefined;
  readonly onClose: () => void;
}

export function SsoForm({ editing, onClose }: SsoFormProps) {
  const title = editing === "new" ? "New connection" : "Change connection";
  const close = () => {
    // Discards the unsaved changes. Otherwise they would reappear when the dialog opens again, and look like
    // saved values.
    if (typeof editing === "object") discardDraft(draftNameOf(editing));
    onClose();
  };
  return (
    <Dialog opened={editing !== undefined} onClose={close} title={title} size="lg">
      {editing === "new" && <NewConnection onClose={onClose} />}
      {typeof editing === "object" && <ChangeConnection connection={editing} onClose={onClose} />}
    </Dialog>
  );
}

const draftNameOf = ({ id }: SsoConnection) => `sso connection:${id}`;

const FIELDS = {
  companyId: "company_id",
  issuer: "issuer",
  clientId: "client_id",
  clientSecret: "client_secret",
  domains: "domains",
} as const;

function NewConnection({ onClose }: { readonly onClose: () => void }) {
  const { create } = useSsoActions();
  const form = useForm({
    name: "new sso connection",
    secrets: ["clientSecret"],
    initial: EMPTY_SSO,
    names: FIELDS,
    send: create,
    onDone: () => {
      notify.done("The connection is made. Give its redirect URI to the company.");
      onClose();
    },
  });
  return (
    <Form form={form} action="Create connection" onCancel={onClose}>
      <CompanySelect
        label="Company"
        types={["partner", "account"]}
        required
        value={form.draft.companyId}
        error={form.errorOf("companyId") && "Choose a partner or an account."}
        onChange={(company) => form.edit({ companyId: company?.id })}
      />
      <ProviderFields form={form} isNew />
      <PeopleFields form={form} />
    </Form>
  );
}

interface ChangeConnectionProps {
  readonly connection: SsoConnection;
  readonly onClose: () => void;
}

function ChangeConnection({ connection, onClose }: ChangeConnectionProps) {
  const { change } = useSsoActions();
  const form = useForm({
    name: draftNameOf(connection),
    secrets: ["clientSecret"],
    initial: draftOf(connection),
    names: FIELDS,
    send: (draft) => change(connection.id, draft),
    onDone: () => {
      notify.done("The connection is changed.");
      onClose();
    },
  });
  return (
    <Form form={form} action="Save changes" onCancel={onClose}>
      <ProviderFields form={form} isNew={false} />
      <PeopleFields form={form} />
    </Form>
  );
}

function draftOf(connection: SsoConnection): SsoDraft {
  return {
    companyId: connection.company_id,
    issuer: connection.issuer,
    clientId: connection.client_id,
    clientSecret: "",
    domains: connection.domains,
    passwordLogin: connection.password_login,
  };
}

interface FieldsProps {
  readonly form: FormState<SsoDraft>;
}

/** Form fields for the identity provider and for our client credentials at the identity provider. */
function ProviderFields({ form, isNew }: FieldsProps & { readonly isNew: boolean }) {
  return (
    <>
      <TextInput
        label="Issuer"
        description="The https URL of the identity provider, exactly as in its discovery document."
        placeholder="https://"
        type="url"
        required
        {...form.text("issuer")}
      />
      <TextInput label="Client id" required autoComplete="off" {...form.text("clientId")} />
      <PasswordInput
        label="Client secret"
        description={
          isNew
            ? "Stored encrypted and never shown again."
            : "Leave empty to keep the current secret."
        }
        required={isNew}
        autoComplete="off"
        {...form.text("clientSecret")}
      />
    </>
  );
}

/** Form fields that decide which users may sign in through the connection: company and email domains. */
function PeopleFields({ form }: FieldsProps) {
  const { domains, passwordLogin } = form.draft;
  return (
    <>
      <TagsInput
        label="Email domains"
        description="Domains that the company owns. Press Enter after each. Users with such an address sign in here."
        required
        value={[...domains]}
        error={form.errorOf("domains")}
        acceptValueOnBlur
        onChange={(next) => form.edit({ domains: next })}
      />
      <Switch
        label="Allow passwords"
        description="If off, users of these domains sign in only with the identity provider. Turn it off after single sign-on has worked."
        checked={passwordLogin}
        onChange={(event) => form.edit({ passwordLogin: event.currentTarget.checked })}
      />
    </>
  );
}
