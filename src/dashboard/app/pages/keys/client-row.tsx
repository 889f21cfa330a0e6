import { Badge, Button, Group, Menu, Stack, Text } from "@mantine/core";

import { Copy } from "../../ui/copy.tsx";
import { Icon } from "../../ui/icon.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { sentence } from "../../ui/words.ts";
import { scopeWords } from "./scopes.ts";
import type { OAuthClient } from "./use-clients.ts";

export type ClientAction = "edit" | "rotate" | "delete";

export function ClientRow({
  client,
  isPlatform,
  onAction,
}: {
  readonly client: OAuthClient;
  readonly isPlatform: boolean;
  readonly onAction: (action: ClientAction) => void;
}) {
  return (
    <li className="row">
      <Stack gap={4} className="grows">
        <Group gap="xs">
          <Text fw={600}>{client.name}</Text>
          <Kind>{client.confidential ? "Confidential" : "Public"}</Kind>
          {client.first_party && <Kind>First-party</Kind>}
          {isPlatform && (
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
      </Stack>
      <Actions client={client} onAction={onAction} />
    </li>
  );
}

function Kind({ children }: { readonly children: string }) {
  return (
    <Badge variant="light" color="gray" tt="none" radius="sm">
      {children}
    </Badge>
  );
}

function Actions({
  client,
  onAction,
}: {
  readonly client: OAuthClient;
  readonly onAction: (action: ClientAction) => void;
}) {
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
        <Menu.Item leftSection={<Icon name="edit" size={16} />} onClick={() => onAction("edit")}>
          Edit
        </Menu.Item>
        {client.confidential && (
          <Menu.Item
            leftSection={<Icon name="refresh" size={16} />}
            onClick={() => onAction("rotate")}
          >
            Rotate the secret
          </Menu.Item>
        )}
        <Menu.Item
          color="red"
          leftSection={<Icon name="trash" size={16} />}
          onClick={() => onAction("delete")}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
