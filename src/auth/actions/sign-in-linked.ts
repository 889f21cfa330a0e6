import type { Tx } from "../../../db/client.ts";
import type { Call } from "../../http/route.ts";
import { lockedUntil } from "../decide.ts";
import { emailDigest } from "../email.ts";
import type { LoginAnswer } from "../model.ts";
import { findLockTime } from "../queries/locks.ts";
import { holdUser } from "../queries/users.ts";
import type { LogInDeps } from "./log-in.ts";
import { openSession } from "./open-session.ts";
import { readContext } from "./session-context.ts";

/** Somebody whom an identity provider vouches for. */
interface LinkedUser {
  readonly id: number;
  readonly companyId: number;
  readonly email: string;
}

/**
 * The first thing in a transaction that signs a linked user in, or gets ready to: after it a password reset waits.
 * The lock on sign-in counts here too (decisions.md 2, lock).
 */
export async function holdLinkedUser(
  tx: Tx,
  { id, email }: LinkedUser,
  now: Date,
): Promise<"held" | "inactive_user" | "locked"> {
  if (!(await holdUser(tx, id))) return "inactive_user";
  const lock = await findLockTime(tx, emailDigest(email));
  return lockedUntil(lock, now) === undefined ? "held" : "locked";
}

/** The session of a user who is held, with the same answer as a login. */
export async function openLinkedSession(
  tx: Tx,
  deps: Pick<LogInDeps, "keys"> & { config: Pick<LogInDeps["config"], "accessTokenTtlS"> },
  { user, call, now }: { user: LinkedUser; call: Call; now: Date },
): Promise<LoginAnswer> {
  const signIn = { user, method: "sso", clientId: null, scope: "*", call, now } as const;
  const { token } = await openSession(tx, deps, signIn);
  const { context, locationCount } = await readContext(tx, user.id);
  return {
    token,
    token_type: "Bearer",
    expires_in: deps.config.accessTokenTtlS,
    ...context,
    location_count: locationCount,
  };
}
