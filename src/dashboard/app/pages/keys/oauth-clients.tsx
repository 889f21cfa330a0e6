import { Button, Menu } from "@mantine/core";
import { useState } from "react";

import { Confirm } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { notify } from "../../ui/notify.ts";
import type { ClientsPath } from "./client-model.ts";
import { type NewClientSecret, type OAuthClient, useOAuthClientActions } from "./data.ts";

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
        action="Rotate secret"
        danger
        onConfirm={async () => onSecret(await rotateSecret(id))}
      >
        The current secret of <strong>{name}</strong> stops working immediately, and the app gets no
        new tokens until you configure the new secret. Existing tokens stay valid.
      </Confirm>
      <Confirm
        opened={question === "delete"}
        onClose={close}
        title="Delete the client?"
        action="Delete client"
        danger
        onConfirm={async () => {
          await remove(id);
          notify.done("Client deleted and its tokens revoked.");
        }}
      >
        <strong>{name}</strong> can no longer sign users in, and all its tokens are revoked
        immediately, for every user. This cannot be undone.
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
            Rotate secret
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
