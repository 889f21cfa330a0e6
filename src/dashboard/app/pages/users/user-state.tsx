import { Group } from "@mantine/core";
import type { ReactNode } from "react";

import { isErased } from "../../api/erased.ts";
import { StateBadge } from "../../ui/badges.tsx";
import { Dimmed } from "../../ui/layout.tsx";
import { ExactTime, useNow } from "../../ui/time.tsx";

const TICK_MS = 1_000;

interface WhileLockedProps {
  readonly until: string | null;
  readonly children: ReactNode;
}

/** Renders its children until the sign-in lock of a user expires. */
export function WhileLocked({ until, children }: WhileLockedProps) {
  return until !== null && <UntilExpired until={until}>{children}</UntilExpired>;
}

function UntilExpired({
  until,
  children,
}: {
  readonly until: string;
  readonly children: ReactNode;
}) {
  const now = useNow(TICK_MS);
  return Date.parse(until) > now && children;
}

interface SignInUser {
  readonly is_active: boolean;
  readonly is_invited: boolean;
}

/** Returns the state of a user, the same on every page. An invited user has not accepted the invitation yet. */
export function userState(user: SignInUser): "active" | "inactive" | "invited" {
  if (!user.is_active) return "inactive";
  return user.is_invited ? "invited" : "active";
}

interface UserStateProps {
  readonly user: SignInUser & {
    readonly id: number;
    readonly email: string;
    readonly has_password: boolean;
    readonly locked_until: string | null;
  };
  /** True if the user's company is inactive, so that nobody there can sign in. */
  readonly isSuspended?: boolean;
}

/** Shows whether a user can sign in: the state, a sign-in lock, and whether the user has a password. */
export function UserState({ user, isSuspended = false }: UserStateProps) {
  const { is_active: isActive, has_password: hasPassword, locked_until: until } = user;
  if (isErased(user)) return <StateBadge state="erased" />;
  const state = isSuspended ? "inactive" : userState(user);
  return (
    <>
      <Group gap={6}>
        <StateBadge state={state} />
        <WhileLocked until={until}>
          <StateBadge state="locked" />
          <Dimmed>
            until <ExactTime at={until} />
          </Dimmed>
        </WhileLocked>
      </Group>
      {isActive && isSuspended && <Dimmed>because the company is inactive</Dimmed>}
      {state === "active" && !hasPassword && <Dimmed>No password set</Dimmed>}
    </>
  );
}
