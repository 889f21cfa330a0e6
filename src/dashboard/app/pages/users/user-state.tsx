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
  readonly has_password: boolean;
}

/**
 * Returns the state of a user. `hasSso` says whether users of the domain can sign in without a password. Whoever can
 * do neither is invited, and has not accepted yet.
 */
export function userState(user: SignInUser, hasSso: boolean): "active" | "inactive" | "invited" {
  if (!user.is_active) return "inactive";
  return user.has_password || hasSso ? "active" : "invited";
}

interface UserStateProps {
  readonly user: SignInUser & {
    readonly id: number;
    readonly email: string;
    readonly locked_until: string | null;
  };
  /** Whether the user can sign in without a password. If absent, nobody is shown as invited. */
  readonly hasSso?: boolean;
  /** True if the user's company is inactive, so that nobody there can sign in. */
  readonly isSuspended?: boolean;
}

/** Shows whether a user can sign in: the state, a sign-in lock, and whether the user has a password. */
export function UserState({ user, hasSso = true, isSuspended = false }: UserStateProps) {
  const { is_active: isActive, has_password: hasPassword, locked_until: until } = user;
  if (isErased(user)) return <StateBadge state="erased" />;
  const state = isSuspended ? "inactive" : userState(user, hasSso);
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
