import { PasswordInput, Switch, TagsInput, TextInput } from "@mantine/core";

import { Dialog } from "../../ui/dialog.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { discardDraft } from "../../ui/drafts.ts";
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
      {editing && <ConnectionForm editing={editing} onClose={onClose} />}
    </Dialog>
  );
}

const draftNameOf = ({ id }: SsoConnection) => `sso connection:${id}`;

/** Form of a connection, which creates one if there is none. */
function ConnectionForm({ editing, onClose }: SsoFormProps) {
  const { create, change } = useSsoActions();
  const connection = typeof editing === "object" ? editing : undefined;
  const form = useForm({
    name: connection ? draftNameOf(connection) : "new sso connection",
    secrets: ["client_secret"],
    initial: connection ? { ...connection, client_secret: "" } : EMPTY_SSO,
    send: (draft: SsoDraft) => (connection ? change(connection.id, draft) : create(draft)),
    done: connection
      ? "The connection is changed."
      : "The connection is made. Give its redirect URI to the company.",
    onDone: onClose,
  });
  return (
    <Form form={form} action={connection ? "Save changes" : "Create connection"} onCancel={onClose}>
      {connection === undefined && (
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          required
          value={form.draft.company_id}
          error={form.errorOf("company_id") && "Choose a partner or an account."}
          onChange={(company) => form.edit({ company_id: company?.id })}
        />
      )}
      <ProviderFields form={form} isNew={connection === undefined} />
      <PeopleFields form={form} />
    </Form>
  );
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
      <TextInput label="Client id" required autoComplete="off" {...form.text("client_id")} />
      <PasswordInput
        label="Client secret"
        description={
          isNew
            ? "Stored encrypted and never shown again."
            : "Leave empty to keep the current secret."
        }
        required={isNew}
        autoComplete="off"
        {...form.text("client_secret")}
      />
    </>
  );
}

/** Form fields that decide which users may sign in through the connection: company and email domains. */
function PeopleFields({ form }: FieldsProps) {
  const { domains, password_login: passwordLogin, trust_email: trustEmail } = form.draft;
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
        onChange={(event) => form.edit({ password_login: event.currentTarget.checked })}
      />
      <Switch
        label="Trust unconfirmed addresses"
        description="For a provider that does not say whether an address is verified, such as Microsoft Entra ID. Counts only for domains with a DNS proof. Leave it off if people can register themselves at the provider."
        checked={trustEmail}
        onChange={(event) => form.edit({ trust_email: event.currentTarget.checked })}
      />
    </>
  );
}
