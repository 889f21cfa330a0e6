import { Button, Group, Text, PasswordInput, Switch, TagsInput, TextInput } from "@mantine/core";
import { useState } from "react";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";
import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { ActiveSwitch, ConfirmedAction, Dialog } from "../../ui/dialog.tsx";
import { discardDraft } from "../../ui/drafts.ts";
import { FilterBar, useFilters } from "../../ui/filters.tsx";
import { Form, type FormState, useForm } from "../../ui/form.tsx";
import { idOf } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Dimmed } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { CompanyName, CompanySelect } from "../companies/company-select.tsx";
import {
  type SsoConnection,
  ssoConnectionsOptions,
  useSsoActions,
  EMPTY_SSO,
  type SsoDraft,
} from "./data.ts";

export function SsoConnections() {
  const { get, set, count, clear } = useFilters(["company"]);
  const [editing, setEditing] = useState<SsoConnection | "new">();
  const create = () => setEditing("new");
  const companyId = idOf(get("company"));
  const connections = useList(
    ssoConnectionsOptions(useApi(), companyId === undefined ? {} : { company_id: companyId }),
  );
  return (
    <>
      <Group justify="space-between" mb="md" gap="sm">
        <Text size="sm" c="dimmed" maw={620} flex="1 1 280px">
          Users of a company sign in at its own identity provider (OpenID Connect).
        </Text>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={create}>
          New connection
        </Button>
      </Group>
      <FilterBar count={count} onClear={clear}>
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          placeholder="Every company"
          value={companyId}
          onChange={(company) => set({ company: company && String(company.id) })}
        />
      </FilterBar>
      <TableList
        list={connections}
        noun={["connection", "connections"]}
        empty={<NoConnection isFiltered={count > 0} onCreate={create} />}
        table={{
          caption: "SSO connections, newest first",
          end: "Actions",
          columns: (one) => ({
            Company: <CellText title={<CompanyName id={one.company_id} />}>{one.issuer}</CellText>,
            State: <StateBadge state={one.is_active ? "active" : "inactive"} />,
            Domains: one.domain_proofs.map(({ domain, proved_at: provedAt }) => (
              <CellText key={domain} title={domain}>
                {provedAt === null ? "Not verified by DNS" : "Verified by DNS"}
              </CellText>
            )),
            Client: (
              <>
                <code>{one.client_id}</code>
                <Group gap={4} wrap="nowrap">
                  <Dimmed>{one.redirect_uri}</Dimmed>
                  <Copy value={one.redirect_uri} label="Copy the redirect URI" />
                </Group>
              </>
            ),
            Passwords: one.password_login ? "Allowed" : "Not allowed",
            Changed: <Time at={one.updated_at} />,
            Actions: <SsoActions connection={one} onEdit={() => setEditing(one)} />,
          }),
        }}
      />
      <SsoForm editing={editing} onClose={() => setEditing(undefined)} />
    </>
  );
}

interface NoSsoActionsProps {
  readonly isFiltered: boolean;
  readonly onCreate: () => void;
}

function NoConnection({ isFiltered, onCreate }: NoSsoActionsProps) {
  return (
    <EmptyState
      icon="link"
      title={isFiltered ? "This company has no SSO connection" : "No SSO connection yet"}
      action={<Button onClick={onCreate}>New connection</Button>}
    >
      Ask the company for the issuer, the client id and the client secret of an application at its
      identity provider. After you create the connection, send its redirect URI to the company.
    </EmptyState>
  );
}

interface SsoActionsProps {
  readonly connection: SsoConnection;
  readonly onEdit: () => void;
}

function SsoActions({ connection, onEdit }: SsoActionsProps) {
  const { id, issuer, is_active: isActive } = connection;
  const { setActive, remove } = useSsoActions();
  return (
    <Group gap="xs" justify="flex-end" className="row-actions">
      <Button size="xs" variant="default" onClick={onEdit} aria-label={`Change ${issuer}`}>
        Change
      </Button>
      <ActiveSwitch
        isActive={isActive}
        name={issuer}
        noun="the connection"
        onSwitch={(next) => setActive(id, next)}
        done={`The connection is ${isActive ? "inactive" : "active"}.`}
      >
        {isActive
          ? "Nobody can sign in through this connection until it is active again. Users of its domains can sign in with a password if they have one. Current sessions stay active."
          : "Users of its domains can sign in through this connection again."}
      </ActiveSwitch>
      <ConfirmedAction
        label="Delete"
        button={{ size: "xs", variant: "subtle", color: "red", "aria-label": `Delete ${issuer}` }}
        title="Delete the connection?"
        action="Delete"
        danger
        onConfirm={() => remove(id)}
        done="The connection is deleted."
      >
        The settings, the client secret and the links between users and the identity provider are
        deleted. Current sessions stay active.
      </ConfirmedAction>
    </Group>
  );
}

interface SsoFormProps {
  /** SSO connection that the form edits, or "new" to create one; undefined while the form is closed. */
  readonly editing: SsoConnection | "new" | undefined;
  readonly onClose: () => void;
}

function SsoForm({ editing, onClose }: SsoFormProps) {
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

/** Form that changes an SSO connection, or creates one if `editing` is "new". */
function ConnectionForm({ editing, onClose }: SsoFormProps) {
  const { create, change } = useSsoActions();
  const connection = typeof editing === "object" ? editing : undefined;
  const form = useForm({
    name: connection ? draftNameOf(connection) : "new sso connection",
    secrets: ["client_secret"],
    initial: connection ? { ...connection, client_secret: "" } : EMPTY_SSO,
    send: (draft: SsoDraft) => (connection ? change(connection.id, draft) : create(draft)),
    done: connection
      ? "The connection is saved."
      : "The connection is created. Send its redirect URI to the company.",
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

/** Form fields that decide which users may sign in through the SSO connection: company and email domains. */
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
        label="Trust unverified addresses"
        description="For identity providers that do not report whether an address is verified, such as Microsoft Entra ID. Applies only to domains that are verified by DNS. Leave it off if users can register themselves at the identity provider."
        checked={trustEmail}
        onChange={(event) => form.edit({ trust_email: event.currentTarget.checked })}
      />
    </>
  );
}
