import { PasswordInput, Switch, TagsInput, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { fieldError, listError } from "../../ui/explain.ts";
import { DialogForm, FormDialog } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { CompanySelect } from "./company-select.tsx";
import { EMPTY_SSO, ssoSettings, type SsoDraft } from "./sso-draft.ts";

type Api = ReturnType<typeof useApi>;
const load = (api: Api) => api.call("GET", "/admin/sso-connections", {});
export type SsoConnection = Awaited<ReturnType<typeof load>>["data"][number];

interface Props {
  /** What the form is open for, if it is. */
  readonly editing: SsoConnection | "new" | undefined;
  readonly onClose: () => void;
}

export function SsoForm({ editing, onClose }: Props) {
  const title = editing === "new" ? "New connection" : "Change connection";
  return (
    <FormDialog opened={editing !== undefined} onClose={onClose} title={title}>
      {editing !== undefined && (
        <Form connection={editing === "new" ? undefined : editing} onClose={onClose} />
      )}
    </FormDialog>
  );
}

interface FormProps {
  readonly connection: SsoConnection | undefined;
  readonly onClose: () => void;
}

function Form({ connection, onClose }: FormProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [draft, setDraft] = useState(() => draftOf(connection));
  const { clientSecret: secret } = draft;
  const send = () =>
    connection === undefined
      ? api.call("POST", "/admin/sso-connections", {
          // Zero is nobody's number: the answer names the field.
          body: {
            company_id: draft.companyId ?? 0,
            client_secret: secret,
            ...ssoSettings(draft),
          },
        })
      : api.call("PATCH", "/admin/sso-connections/:id", {
          params: { id: connection.id },
          body: { ...ssoSettings(draft), ...(secret !== "" && { client_secret: secret }) },
        });
  return (
    <DialogForm
      action={connection === undefined ? "Create connection" : "Save changes"}
      fields={["company_id", "issuer", "client_id", "client_secret", "domains"]}
      onCancel={onClose}
      send={send}
      onDone={() => {
        void queries.invalidateQueries({ queryKey: ["sso-connections"] });
        notify.done(
          connection === undefined
            ? "The connection is made. Give its redirect URI to the company."
            : "The connection is changed.",
        );
        onClose();
      }}
    >
      {(error) => (
        <Fields draft={draft} onChange={setDraft} error={error} isNew={connection === undefined} />
      )}
    </DialogForm>
  );
}

function draftOf(connection: SsoConnection | undefined): SsoDraft {
  if (connection === undefined) return EMPTY_SSO;
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
  readonly draft: SsoDraft;
  readonly onChange: (draft: SsoDraft) => void;
  readonly error: unknown;
  readonly isNew: boolean;
}

function Fields({ draft, onChange, error, isNew }: FieldsProps) {
  return (
    <>
      {isNew && (
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          required
          value={draft.companyId}
          error={fieldError(error, "company_id") && "Choose a partner or an account."}
          onChange={(company) => onChange({ ...draft, companyId: company?.id })}
        />
      )}
      <TextInput
        label="Issuer"
        description="The https address of the identity provider, as its discovery document has it."
        placeholder="https://"
        type="url"
        required
        value={draft.issuer}
        error={fieldError(error, "issuer")}
        onChange={(event) => onChange({ ...draft, issuer: event.currentTarget.value })}
      />
      <TextInput
        label="Client id"
        required
        autoComplete="off"
        value={draft.clientId}
        error={fieldError(error, "client_id")}
        onChange={(event) => onChange({ ...draft, clientId: event.currentTarget.value })}
      />
      <PasswordInput
        label="Client secret"
        description={
          isNew ? "Stored sealed; it is never shown again." : "Left out, it stays as it is."
        }
        required={isNew}
        autoComplete="off"
        value={draft.clientSecret}
        error={fieldError(error, "client_secret")}
        onChange={(event) => onChange({ ...draft, clientSecret: event.currentTarget.value })}
      />
      <TagsInput
        label="Email domains"
        description="That the company owns; Enter after each. People with such an address sign in here."
        required
        value={[...draft.domains]}
        error={listError(error, "domains")}
        acceptValueOnBlur
        onChange={(domains) => onChange({ ...draft, domains })}
      />
      <Switch
        label="Allow passwords, too"
        description="Off: nobody of these domains signs in with a password any more, only at the identity provider. Turn it off once single sign-on has worked."
        checked={draft.passwordLogin}
        onChange={(event) => onChange({ ...draft, passwordLogin: event.currentTarget.checked })}
      />
    </>
  );
}
