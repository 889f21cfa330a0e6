import { Group, Text } from "@mantine/core";

import { Copy } from "../../ui/copy.tsx";
import { sentence } from "../../ui/format.ts";
import { Row } from "../../ui/rows.tsx";
import { Tag } from "../../ui/tag.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { ClientActions, type ClientActionsProps } from "./client-actions.tsx";
import { isPlatformPath } from "./client-model.ts";
import { scopeWords } from "./scopes.ts";

export function ClientRow(props: ClientActionsProps) {
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
