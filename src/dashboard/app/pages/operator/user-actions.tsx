import { Button, Group, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";

import { useApi, useSession } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { notify } from "../../ui/notify.ts";
import { StateBadge } from "../../ui/state-badge.tsx";
import { ExactTime, useNow } from "../../ui/time.tsx";
import type { User } from "./data.ts";

const TICK_MS = 1_000;

/** Its content, until the lock ends by itself. */
function WhileLocked({
  until,
  children,
}: {
  readonly until: string;
  readonly children: ReactNode;
}) {
  const now = useNow(TICK_MS);
  return Date.parse(until) > now && children;
}

export function UserState({ user }: { readonly user: User }) {
  const { locked_until: until } = user;
  return (
    <>
      <Group gap={6}>
        <StateBadge state={user.is_active ? "active" : "inactive"} />
        {until !== null && (
          <WhileLocked until={until}>
            <StateBadge state="locked" />
            <Text size="xs" c="dimmed">
              until <ExactTime at={until} />
            </Text>
          </WhileLocked>
        )}
      </Group>
      {!user.has_password && (
        <Text size="xs" c="dimmed">
          No password
        </Text>
      )}
    </>
  );
}

export function UserActions({ user }: { readonly user: User }) {
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      {user.locked_until !== null && (
        <WhileLocked until={user.locked_until}>
          <Unlock user={user} />
        </WhileLocked>
      )}
      <ActiveSwitch user={user} />
    </Group>
  );
}

function Unlock({ user }: { readonly user: User }) {
  const api = useApi();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const unlock = async () => {
    setBusy(true);
    try {
      await api.call("POST", "/admin/users/:id/unlock", { params: { id: String(user.id) } });
      await queries.invalidateQueries({ queryKey: ["users"] });
      notify.done(`${user.name} can sign in again.`);
    } catch (error) {
      notify.failed(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button
      size="xs"
      variant="default"
      loading={isBusy}
      onClick={() => void unlock()}
      aria-label={`Unlock ${user.name}`}
    >
      Unlock
    </Button>
  );
}

function ActiveSwitch({ user }: { readonly user: User }) {
  const api = useApi();
  const queries = useQueryClient();
  const { user: me } = useSession();
  const [isAsking, setAsking] = useState(false);
  const { id, name, is_active: isActive } = user;
  const action = isActive ? "Deactivate" : "Activate";
  const change = async () => {
    const path = `/admin/users/:id/${isActive ? "deactivate" : "activate"}` as const;
    await api.call("POST", path, { params: { id: String(id) } });
    await queries.invalidateQueries({ queryKey: ["users"] });
    notify.done(`${name} is ${isActive ? "inactive and signed out" : "active"}.`);
  };
  return (
    <>
      <Button
        size="xs"
        variant="default"
        onClick={() => setAsking(true)}
        aria-label={`${action} ${name}`}
      >
        {action}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={`${action} ${name}?`}
        action={action}
        danger={isActive}
        onConfirm={change}
      >
        {isActive ? (
          <>
            {me.id === id && (
              <Text size="sm" fw={600} mb="xs">
                This is you: you are signed out at once and cannot undo it yourself.
              </Text>
            )}
            {user.email} is signed out everywhere at once and cannot sign in. Tokens and API keys
            end for good. What the user wrote stays.
          </>
        ) : (
          `${user.email} can sign in again. Tokens and API keys of before stay ended.`
        )}
      </Confirm>
    </>
  );
}
