import { Button, Group, Menu, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction, Dialog } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { CellText, PageHeader, Dimmed } from "../../ui/layout.tsx";
import { List, rowsOf } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { SecretDialog } from "../../ui/secret.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { ClientForm } from "./client-form.tsx";
import { type ClientsPath, clientsPathOf, isPlatformPath } from "./client-model.ts";
import {
  type ApiToken,
  apiTokensOptions,
  type NewClientSecret,
  type OAuthClient,
  oauthClientsOptions,
  type TokenDraft,
  useApiTokenActions,
} from "./data.ts";
import { ClientActions } from "./oauth-clients.tsx";
import { PersonalToken, usePersonalToken } from "./personal-token.tsx";
import { ScopesField } from "./scopes-field.tsx";
import { scopeWords } from "./client-model.ts";

/** One line of the table: the personal access token, an API token, or an OAuth client. */
interface Key {
  readonly id: string;
  readonly name: ReactNode;
  readonly scopes: string;
  readonly expires: ReactNode;
  readonly lastUsed: ReactNode;
  readonly actions: ReactNode;
}

type CreatedKind = "token" | "client";

export function Page() {
  const clientsPath = clientsPathOf(useSession().user.role);
  const own = usePersonalToken();
  const [creating, setCreating] = useState<CreatedKind>();
  const close = () => setCreating(undefined);
  const [token, setToken] = useState<string>();
  // Omits the line of the personal access token until the API has answered whether the user has one.
  const personal: readonly Key[] =
    own.use === undefined
      ? []
      : [
          {
            id: "personal",
            name: <CellText title="Personal access token">One per person</CellText>,
            scopes: "Full access",
            expires: "Never",
            lastUsed: own.use === null ? "Not generated" : <LastUsed at={own.use.last_used_at} />,
            actions: !own.isOpen && (
              <Button variant="default" size="xs" onClick={own.open}>
                Manage token
              </Button>
            ),
          },
        ];
  return (
    <>
      <PageHeader
        title="API Keys"
        description="Credentials for your own programs. Store them like passwords."
        actions={<CreateMenu hasClients={clientsPath !== undefined} onCreate={setCreating} />}
      />
      <Stack gap="lg">
        <PersonalToken own={own} />
        <DayTokens>
          {(tokens) =>
            clientsPath === undefined ? (
              <KeyTable keys={[...personal, ...tokens]} />
            ) : (
              <Clients
                path={clientsPath}
                isCreating={creating === "client"}
                onClose={close}
                before={[...personal, ...tokens]}
              />
            )
          }
        </DayTokens>
      </Stack>
      <Dialog opened={creating === "token"} onClose={close} title="Create a 24-hour token" centered>
        <NewToken onClose={close} onSecret={setToken} />
      </Dialog>
      <SecretDialog
        title="Your new token"
        label="API token"
        secret={token}
        onClose={() => setToken(undefined)}
      />
    </>
  );
}

const KINDS: Readonly<Record<CreatedKind, readonly [name: string, purpose: string]>> = {
  token: ["24-hour token", "For scripts and jobs, with scopes of its own."],
  client: ["OAuth client", "For an app that signs users in."],
};

interface CreateMenuProps {
  readonly hasClients: boolean;
  readonly onCreate: (kind: CreatedKind) => void;
}

function CreateMenu({ hasClients, onCreate }: CreateMenuProps) {
  const offered: readonly CreatedKind[] = hasClients ? ["token", "client"] : ["token"];
  return (
    <Menu position="bottom-end" width={320}>
      <Menu.Target>
        <Button rightSection={<Icon name="chevronDown" size={14} />}>Create</Button>
      </Menu.Target>
      <Menu.Dropdown>
        {offered.map((kind) => (
          <Menu.Item key={kind} onClick={() => onCreate(kind)}>
            {KINDS[kind][0]}
            <Text span display="block" size="xs">
              {KINDS[kind][1]}
            </Text>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function KeyTable({ keys }: { readonly keys: readonly Key[] }) {
  return (
    <DataTable
      caption="API Keys"
      rows={keys}
      rowKey={({ id }) => id}
      end="Actions"
      columns={({ name, scopes, expires, lastUsed, actions }) => ({
        Name: name,
        Scopes: scopes,
        Expires: expires,
        "Last used": lastUsed,
        Actions: actions,
      })}
    />
  );
}

function DayTokens({ children }: { readonly children: (keys: readonly Key[]) => ReactNode }) {
  const list = useList(apiTokensOptions(useApi()));
  const shown = (rows: readonly ApiToken[]) =>
    children(
      rows.map((one) => ({
        id: one.id,
        name: <CellText title={one.name}>24-hour token</CellText>,
        scopes: scopeWords(one.scopes),
        expires: <Time at={one.expires_at} mayBeAhead />,
        lastUsed: <LastUsed at={one.last_used_at} />,
        actions: <DeleteToken token={one} />,
      })),
    );
  return (
    <List list={list} more="Show older tokens" empty={shown([])}>
      {shown}
    </List>
  );
}

interface ClientsProps {
  readonly path: ClientsPath;
  readonly isCreating: boolean;
  readonly onClose: () => void;
  /** Lines of the tokens. The table shows them above the lines of the OAuth clients. */
  readonly before: readonly Key[];
}

function Clients({ path, isCreating, onClose, before }: ClientsProps) {
  const [editing, setEditing] = useState<OAuthClient>();
  const [secret, setSecret] = useState<NewClientSecret>();
  const list = useList(oauthClientsOptions(useApi(), path));
  const keys = rowsOf(list).map((one) => ({
    id: one.client_id,
    name: <ClientName client={one} path={path} />,
    scopes: scopeWords(one.scopes),
    expires: "Never",
    lastUsed: "–",
    actions: (
      <ClientActions client={one} path={path} onEdit={() => setEditing(one)} onSecret={setSecret} />
    ),
  }));
  const table = <KeyTable keys={[...before, ...keys]} />;
  return (
    <>
      <List list={list} more="Show older clients" empty={table}>
        {() => table}
      </List>
      <ClientForm
        path={path}
        editing={isCreating ? "new" : editing}
        onClose={() => (isCreating ? onClose() : setEditing(undefined))}
        onSecret={setSecret}
      />
      <SecretDialog
        title="Client secret"
        label="client_secret"
        secret={secret?.client_secret ?? undefined}
        onClose={() => setSecret(undefined)}
      >
        <Text size="sm">
          Use it on your server only, with the client ID <code>{secret?.client_id}</code>. Never put
          it in a browser or a mobile app.
        </Text>
      </SecretDialog>
    </>
  );
}

function ClientName({
  client,
  path,
}: {
  readonly client: OAuthClient;
  readonly path: ClientsPath;
}) {
  return (
    <Stack gap={2}>
      <Group gap="xs">
        <CellText title={client.name} />
        <Tag>{client.confidential ? "Confidential" : "Public"}</Tag>
        {client.first_party && <Tag>First-party</Tag>}
        {isPlatformPath(path) && (
          <Tag>{client.company_id === null ? "Platform" : `Company ${client.company_id}`}</Tag>
        )}
      </Group>
      <Group gap={4} wrap="nowrap">
        <Dimmed className="shrinks">
          OAuth client <code>{client.client_id}</code>
        </Dimmed>
        <Copy value={client.client_id} label={`Copy the client ID of ${client.name}`} />
      </Group>
    </Stack>
  );
}

interface TokenProps {
  readonly token: ApiToken;
}

function DeleteToken({ token: { id, name } }: TokenProps) {
  const { remove } = useApiTokenActions();
  return (
    <ConfirmedAction
      label="Delete"
      button={{ size: "xs", "aria-label": `Delete the token ${name}` }}
      title="Delete the token?"
      action="Delete"
      danger
      onConfirm={() => remove(id)}
      done="Token deleted."
    >
      Everything that uses <strong>{name}</strong> stops working immediately.
    </ConfirmedAction>
  );
}

interface NewTokenProps {
  readonly onClose: () => void;
  readonly onSecret: (token: string) => void;
}

const EMPTY_TOKEN: TokenDraft = { name: "", scopes: [] };

function NewToken({ onClose, onSecret }: NewTokenProps) {
  const { create } = useApiTokenActions();
  const form = useForm({
    name: "new token",
    initial: EMPTY_TOKEN,
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
      action="Create token"
      onCancel={onClose}
      isReady={scopes.length > 0}
    >
      <TextInput
        label="Name"
        description="For example, the job that uses it."
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
