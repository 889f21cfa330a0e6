import { Button, Menu } from "@mantine/core";
import { useState } from "react";

import { Confirm } from "../../ui/confirm.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import type { ClientsPath } from "./client-model.ts";
import { useOAuthClientActions, type NewClientSecret, type OAuthClient } from "./data.ts";

export interface ClientActionsProps {
  readonly client: OAuthClient;
  readonly path: ClientsPath;
  readonly onEdit: () => void;
  readonly onSecret: (client: NewClientSecret) => void;
}

/** The menu of a client. It asks before it stops something that may be in use. */
export function ClientActions({ client, path, onEdit, onSecret }: ClientActionsProps) {
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
