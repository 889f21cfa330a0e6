import { Anchor, Button, Group, Stack, Text, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useFilters } from "../../ui/filters.tsx";
import { CellText, PageHeader, Dimmed } from "../../ui/layout.tsx";
import { List, rowsOf } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { SecretDialog } from "../../ui/secret.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { CompanyName } from "../companies/company-select.tsx";
import { ClientForm } from "./client-form.tsx";
import { type ClientsPath, clientsPathOf, isPlatformPath } from "./client-model.ts";
import {
  type ApiToken,
  apiTokensOptions,
  integrationsOptions,
  integrationTokensOptions,
  type NewClientSecret,
  type OAuthClient,
  oauthClientsOptions,
} from "./data.ts";
import { type CreatedKind, CreateMenu } from "./create-menu.tsx";
import { DeleteToken, NewToken } from "./day-tokens.tsx";
import { IntegrationDialogs, IntegrationMenu, type IntegrationTask } from "./integrations.tsx";
import { ClientActions } from "./oauth-clients.tsx";
import { PersonalToken, usePersonalToken } from "./personal-token.tsx";
import { scopeWords } from "./client-model.ts";

/** One line of the table: the personal access token, an integration, an API token, or an OAuth client. */
interface Key {
  readonly id: string;
  readonly name: ReactNode;
  readonly scopes: string;
  readonly expires: ReactNode;
  readonly lastUsed: ReactNode;
  readonly actions: ReactNode;
}

export function Page() {
  const { role } = useSession().user;
  const clientsPath = clientsPathOf(role);
  const own = usePersonalToken();
  const [creating, setCreating] = useState<CreatedKind>();
  const [task, setTask] = useState<IntegrationTask>();
  const integrations = useIntegrationKeys(setTask);
  const [token, setToken] = useState<string>();
  const kinds: readonly CreatedKind[] = [
    "token",
    ...(role === "partner_owner" ? (["integration"] as const) : []),
    ...(clientsPath === undefined ? [] : (["client"] as const)),
  ];
  const create = (kind: CreatedKind) =>
    kind === "integration" ? setTask({ kind: "create" }) : setCreating(kind);
  const { get, set } = useFilters(["new"]);
  const linked = kinds.find((kind) => kind === get("new"));
  const shown = linked ?? creating;
  const forgetLink = () => {
    if (linked !== undefined) set({ new: undefined });
  };
  const close = () => {
    setCreating(undefined);
    forgetLink();
  };
  const personal: readonly Key[] =
    own.use === undefined || own.use === null
      ? []
      : [
          {
            id: "personal",
            name: <CellText title="Personal access token">One per person</CellText>,
            scopes: "Full access",
            expires: "Never",
            lastUsed: <LastUsed at={own.use.last_used_at} />,
            actions: !own.isOpen && (
              <Button variant="default" size="xs" onClick={own.open}>
                Manage token
              </Button>
            ),
          },
        ];
  const before = [...personal, ...integrations];
  return (
    <>
      <PageHeader
        title="API Keys"
        description={
          <>
            Credentials for your own programs. Store them like passwords.{" "}
            <Anchor href="/docs/sign-in" target="_blank" inherit underline="always">
              Which one do I need?
            </Anchor>
          </>
        }
        actions={<CreateMenu kinds={kinds} onCreate={create} />}
      />
      <Stack gap="lg">
        <PersonalToken own={own} others={kinds} onCreate={create} />
        <DayTokens>
          {(tokens) =>
            clientsPath === undefined ? (
              <KeyTable keys={[...before, ...tokens]} />
            ) : (
              <Clients
                path={clientsPath}
                isCreating={shown === "client"}
                onClose={close}
                before={[...before, ...tokens]}
              />
            )
          }
        </DayTokens>
      </Stack>
      <Dialog opened={shown === "token"} onClose={close} title="Create a 24-hour token" centered>
        <NewToken onClose={close} onSecret={setToken} />
      </Dialog>
      <IntegrationDialogs
        task={shown === "integration" ? { kind: "create" } : task}
        onTask={(next) => {
          setTask(next);
          forgetLink();
        }}
      />
      <SecretDialog
        title="Your new token"
        label="API token"
        secret={token}
        onClose={() => setToken(undefined)}
      />
    </>
  );
}

/** Returns the lines of the partner's integrations. Admins see them without actions; other users have none. */
function useIntegrationKeys(onTask: (task: IntegrationTask) => void): readonly Key[] {
  const api = useApi();
  const { role } = useSession().user;
  const isOwner = role === "partner_owner";
  const enabled = isOwner || role === "partner_admin";
  const { data: integrations = [] } = useQuery({ ...integrationsOptions(api), enabled });
  const { data: tokens } = useQuery({
    ...integrationTokensOptions(api),
    enabled: integrations.length > 0,
  });
  return integrations.map((one) => ({
    id: `integration ${one.id}`,
    name: (
      <CellText title={one.name}>
        Integration{tokens?.has(one.id) === false && ". No token yet"}
      </CellText>
    ),
    scopes: scopeWords(one.scopes),
    expires: "Never",
    lastUsed: tokens && <LastUsed at={tokens.get(one.id)?.last_used_at ?? null} />,
    actions: isOwner && <IntegrationMenu integration={one} onTask={onTask} />,
  }));
}

/** Shows the keys as a table. Without a key, the section of the personal access token is the empty state. */
function KeyTable({ keys }: { readonly keys: readonly Key[] }) {
  if (keys.length === 0) return null;
  return (
    <DataTable
      caption="API Keys"
      rows={keys}
      rowKey={({ id }) => id}
      end="Actions"
      columns={({ name, scopes, expires, lastUsed, actions }) => ({
        Name: name,
        Access: scopes,
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

interface ExplainedTagProps {
  readonly hint: string;
  readonly children: ReactNode;
}

/** Tag that a hint explains on hover and touch. */
function ExplainedTag({ hint, children }: ExplainedTagProps) {
  return (
    <Tooltip label={hint} events={{ hover: true, focus: true, touch: true }}>
      <span>
        <Tag>{children}</Tag>
      </span>
    </Tooltip>
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
      <CellText title={client.name} />
      <Group gap="xs" className="name-tags">
        {client.confidential ? (
          <ExplainedTag hint="Runs on a server, which keeps its secret">Confidential</ExplainedTag>
        ) : (
          <ExplainedTag hint="Runs in a browser or on a phone, without a secret">
            Public
          </ExplainedTag>
        )}
        {client.first_party && (
          <ExplainedTag hint="An app of our own, which skips the consent page">
            First-party
          </ExplainedTag>
        )}
        {isPlatformPath(path) && (
          <ExplainedTag
            hint={
              client.company_id === null
                ? "For users of every company"
                : "For users of this company"
            }
          >
            {client.company_id === null ? "Platform" : <CompanyName id={client.company_id} />}
          </ExplainedTag>
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
