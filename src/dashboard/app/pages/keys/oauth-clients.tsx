import { Button, Group, Menu, Text } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { sentence } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Section } from "../../ui/layout.tsx";
import { List } from "../../ui/list.tsx";
import { notify } from "../../ui/notify.ts";
import { useList } from "../../ui/pages.ts";
import { Row, Rows } from "../../ui/rows.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { ClientForm } from "./client-form.tsx";
import { type ClientsPath, isPlatformPath } from "./client-model.ts";
import {
  type NewClientSecret,
  type OAuthClient,
  oauthClientsOptions,
  useOAuthClientActions,
} from "./data.ts";
import { scopeWords } from "./scopes.ts";
import { ShownOnce } from "./shown-once.tsx";

export function OAuthClientsSection({ path }: { readonly path: ClientsPath }) {
  const [editing, setEditing] = useState<OAuthClient | "new">();
  const [secret, setSecret] = useState<NewClientSecret>();
  return (
    <Section
      title="OAuth clients"
      description={
        isPlatformPath(path)
          ? "Apps of all tenants. First-party apps are trusted: they ask nobody for consent, and may be given the password grant."
          : "Apps that sign in your customers on our own page and then act for them, as far as their scopes go."
      }
      actions={
        <Button variant="default" onClick={() => setEditing("new")}>
          Create client
        </Button>
      }
    >
      <List
        list={useList(oauthClientsOptions(useApi(), path))}
        more="Show older ones"
        empty={<NoClient />}
      >
        {(rows) => (
          <Rows label="OAuth clients">
            {rows.map((one) => (
              <ClientRow
                key={one.client_id}
                client={one}
                path={path}
                onEdit={() => setEditing(one)}
                onSecret={setSecret}
              />
            ))}
          </Rows>
        )}
      </List>
      <ClientForm
        path={path}
        editing={editing}
        onClose={() => setEditing(undefined)}
        onSecret={setSecret}
      />
      <ClientSecret client={secret} onClose={() => setSecret(undefined)} />
    </Section>
  );
}

function NoClient() {
  return (
    <EmptyState icon="plug" title="No OAuth clients">
      Create one for each app, put its client_id and secret into the app&apos;s configuration, and
      send people to <code>/oauth/authorize</code>.
    </EmptyState>
  );
}

function ClientRow(props: ClientActionsProps) {
  const { client, path } = props;
  return (
    <Row gap={4} actions={<ClientActions {...props} />}>
      <Group gap="xs">
        <Text fw={600}>{client.name}</Text>
        <Kind>{client.confidential ? "Confidential" : "Public"}</Kind>
        {client.first_party && <Kind>First-party</Kind>}
        {isPlatformPath(path) && (
          <Kind>{client.company_id === null ? "Platform" : `Company ${client.company_id}`}</Kind>
        )}
      </Group>
      <Group gap={4} wrap="nowrap">
        <Text size="sm" c="dimmed" className="shrinks">
          client_id <code>{client.client_id}</code>
        </Text>
        <Copy value={client.client_id} label={`Copy the client_id of ${client.name}`} />
      </Group>
      <Text size="sm" c="dimmed">
        {client.grant_types.map(sentence).join(", ")}. Scopes: {scopeWords(client.scopes)}
      </Text>
      {client.redirect_uris.map((uri) => (
        <Text size="sm" c="dimmed" key={uri}>
          Returns to <code>{uri}</code>
        </Text>
      ))}
      <Text size="sm" c="dimmed">
        Changed <ExactTime at={client.updated_at} />
      </Text>
    </Row>
  );
}

function Kind({ children }: { readonly children: string }) {
  return <Tag>{children}</Tag>;
}

interface ClientActionsProps {
  readonly client: OAuthClient;
  readonly path: ClientsPath;
  readonly onEdit: () => void;
  readonly onSecret: (client: NewClientSecret) => void;
}

/**
 * Menu of actions for an OAuth client. Secret rotation and deletion ask for confirmation, because an
 * application may be using the client.
 */
function ClientActions({ client, path, onEdit, onSecret }: ClientActionsProps) {
  const { rotateSecret, remove } = useOAuthClientActions(path);
  const [question, setQuestion] = useState<"rotate" | "delete">();
  const close = () => setQuestion(undefined);
  const { client_id: id, name } = client;
  return (
    <>
      <ClientMenu client={client} onEdit={onEdit} onAsk={setQuestion} />
      <Confirm
        opened={question === "rotate"}
        onClose={close}
        title="Rotate the secret?"
        action="Rotate the secret"
        danger
        onConfirm={async () => onSecret(await rotateSecret(id))}
      >
        The present secret of <strong>{name}</strong> stops working at once: the app gets no tokens
        until it has the new one. Tokens that it has already stay good.
      </Confirm>
      <Confirm
        opened={question === "delete"}
        onClose={close}
        title="Delete the client?"
        action="Delete the client"
        danger
        onConfirm={async () => {
          await remove(id);
          notify.done("The client is deleted, and its tokens are ended.");
        }}
      >
        <strong>{name}</strong> can sign in nobody any more, and all tokens that it holds end at
        once, for every person who uses it. This cannot be taken back.
      </Confirm>
    </>
  );
}

interface ClientMenuProps {
  readonly client: OAuthClient;
  readonly onEdit: () => void;
  readonly onAsk: (question: "rotate" | "delete") => void;
}

function ClientMenu({ client, onEdit, onAsk }: ClientMenuProps) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          size="xs"
          rightSection={<Icon name="chevronDown" size={14} />}
          aria-label={`Actions for ${client.name}`}
        >
          Actions
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Icon name="edit" size={16} />} onClick={onEdit}>
          Edit
        </Menu.Item>
        {client.confidential && (
          <Menu.Item
            leftSection={<Icon name="refresh" size={16} />}
            onClick={() => onAsk("rotate")}
          >
            Rotate the secret
          </Menu.Item>
        )}
        <Menu.Item
          c="var(--mantine-color-error)"
          leftSection={<Icon name="trash" size={16} />}
          onClick={() => onAsk("delete")}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

interface ClientSecretProps {
  readonly client: NewClientSecret | undefined;
  readonly onClose: () => void;
}

/**
 * Shows the secret of an OAuth client once, after its creation or a rotation. The dialog stays closed for a
 * public client, which has no secret.
 */
function ClientSecret({ client, onClose }: ClientSecretProps) {
  return (
    <ShownOnce
      title="The client's secret"
      label="client_secret"
      secret={client?.client_secret ?? undefined}
      onClose={onClose}
    >
      <Text size="sm">
        For your server only, with the client_id <code>{client?.client_id}</code>. Never put it into
        a browser or a mobile app.
      </Text>
    </ShownOnce>
  );
}
