import { Button, Group } from "@mantine/core";

import { ConfirmedAction } from "../../ui/confirm.tsx";
import { notify } from "../../ui/notify.ts";
import { useSsoActions, type SsoConnection } from "./data.ts";

interface ConnectionProps {
  readonly connection: SsoConnection;
}

export function SsoActions({
  connection,
  onEdit,
}: ConnectionProps & { readonly onEdit: () => void }) {
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        onClick={onEdit}
        aria-label={`Change ${connection.issuer}`}
      >
        Change
      </Button>
      <ConnectionSwitch connection={connection} />
      <DeleteConnection connection={connection} />
    </Group>
  );
}

/** Stops a connection, or starts it again. */
function ConnectionSwitch({ connection: { id, issuer, is_active: isActive } }: ConnectionProps) {
  const { setActive } = useSsoActions();
  const action = isActive ? "Deactivate" : "Activate";
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button size="xs" variant="default" onClick={ask} aria-label={`${action} ${issuer}`}>
          {action}
        </Button>
      )}
      title={`${action} the connection?`}
      action={action}
      danger={isActive}
      onConfirm={async () => {
        await setActive(id, !isActive);
        notify.done(`The connection is ${isActive ? "inactive" : "active"}.`);
      }}
    >
      {isActive
        ? "Nobody signs in through it until it is active again. Passwords work for its domains, where people have one. Whoever is signed in stays so."
        : "People of its domains sign in through it again, as its settings say."}
    </ConfirmedAction>
  );
}

function DeleteConnection({ connection: { id, issuer } }: ConnectionProps) {
  const { remove } = useSsoActions();
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button
          size="xs"
          variant="subtle"
          color="red"
          onClick={ask}
          aria-label={`Delete ${issuer}`}
        >
          Delete
        </Button>
      )}
      title="Delete the connection?"
      action="Delete"
      danger
      onConfirm={async () => {
        await remove(id);
        notify.done("The connection is deleted.");
      }}
    >
      Its settings, its client secret and the links between its people and the identity provider are
      gone. Whoever is signed in stays so.
    </ConfirmedAction>
  );
}
