import { Button, Group, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useSession } from "../../session/session.tsx";
import { ActiveSwitch } from "../../ui/dialog.tsx";
import { notify } from "../../ui/notify.ts";
import { StateBadge } from "../../ui/badges.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { useNow } from "../../ui/use-time.ts";
import { useUserActions, type User } from "./data.ts";
import { Dimmed } from "../../ui/layout.tsx";

const TICK_MS = 1_000;

interface UserProps {
  readonly user: User;
}

interface WhileLockedProps {
  readonly until: string;
  readonly children: ReactNode;
}

/** Renders its children until the sign-in lock of the user expires. */
function WhileLocked({ until, children }: WhileLockedProps) {
  const now = useNow(TICK_MS);
  return Date.parse(until) > now && children;
}

export function UserState({ user }: UserProps) {
  const { locked_until: until } = user;
  return (
    <>
      <Group gap={6}>
        <StateBadge state={user.is_active ? "active" : "inactive"} />
        {until !== null && (
          <WhileLocked until={until}>
            <StateBadge state="locked" />
            <Dimmed>
              until <ExactTime at={until} />
            </Dimmed>
          </WhileLocked>
        )}
      </Group>
      {!user.has_password && <Dimmed>No password</Dimmed>}
    </>
  );
}

export function UserActions({ user }: UserProps) {
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      {user.locked_until !== null && (
        <WhileLocked until={user.locked_until}>
          <Unlock user={user} />
        </WhileLocked>
      )}
      <UserSwitch user={user} />
    </Group>
  );
}

function Unlock({ user: { id, name } }: UserProps) {
  const { unlock } = useUserActions();
  const { mutate, isPending } = useMutation({
    mutationFn: () => unlock(id),
    onSuccess: () => notify.done(`${name} can sign in again.`),
    onError: (error) => notify.failed(error),
  });
  return (
    <Button
      size="xs"
      variant="default"
      loading={isPending}
      onClick={() => mutate()}
      aria-label={`Unlock ${name}`}
    >
      Unlock
    </Button>
  );
}

function UserSwitch({ user: { id, name, email, is_active: isActive } }: UserProps) {
  const { setActive } = useUserActions();
  const { user: me } = useSession();
  return (
    <ActiveSwitch
      button={{ variant: "subtle", color: "gray" }}
      isActive={isActive}
      name={name}
      onSwitch={(next) => setActive(id, next)}
      done={`${name} is ${isActive ? "inactive and signed out" : "active"}.`}
    >
      {isActive ? (
        <>
          {me.id === id && (
            <Text size="sm" fw={600} mb="xs">
              This is you: you are signed out at once and cannot undo it yourself.
            </Text>
          )}
          {email} is signed out everywhere at once and cannot sign in. Tokens and API keys end for
          good. What the user wrote stays.
        </>
      ) : (
        `${email} can sign in again. Tokens and API keys of before stay ended.`
      )}
    </ActiveSwitch>
  );
}
