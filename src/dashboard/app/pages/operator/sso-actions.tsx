import { Button, Group } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { notify } from "../../ui/notify.ts";
import type { SsoConnection } from "./sso-form.tsx";

interface Props {
  readonly connection: SsoConnection;
  readonly onEdit: () => void;
}

export function SsoActions({ connection, onEdit }: Props) {
  const api = useApi();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"switch" | "delete">();
  const { id, issuer, is_active: isActive } = connection;
  const refresh = () => queries.invalidateQueries({ queryKey: ["sso-connections"] });
  const toggle = async () => {
    await api.call("PATCH", "/admin/sso-connections/:id", {
      params: { id },
      body: { is_active: !isActive },
    });
    await refresh();
    notify.done(`The connection is ${isActive ? "inactive" : "active"}.`);
  };
  const remove = async () => {
    await api.call("DELETE", "/admin/sso-connections/:id", { params: { id } });
    await refresh();
    notify.done("The connection is deleted.");
  };
  const action = isActive ? "Deactivate" : "Activate";
  return (
    <Group gap="xs">
      <Button size="xs" variant="default" onClick={onEdit} aria-label={`Change ${issuer}`}>
        Change
      </Button>
      <Button
        size="xs"
        variant="default"
        onClick={() => setAsking("switch")}
        aria-label={`${action} ${issuer}`}
      >
        {action}
      </Button>
      <Button
        size="xs"
        variant="subtle"
        color="red"
        onClick={() => setAsking("delete")}
        aria-label={`Delete ${issuer}`}
      >
        Delete
      </Button>
      <Confirm
        opened={asking === "switch"}
        onClose={() => setAsking(undefined)}
        title={`${action} the connection?`}
        action={action}
        danger={isActive}
        onConfirm={toggle}
      >
        {isActive
          ? "Nobody signs in through it until it is active again. Passwords work for its domains, where people have one. Whoever is signed in stays so."
          : "People of its domains sign in through it again, as its settings say."}
      </Confirm>
      <Confirm
        opened={asking === "delete"}
        onClose={() => setAsking(undefined)}
        title="Delete the connection?"
        action="Delete"
        danger
        onConfirm={remove}
      >
        Its settings, its client secret and the links between its people and the identity provider
        are gone. Whoever is signed in stays so.
      </Confirm>
    </Group>
  );
}
