import type { Tx } from "../../../db/client.ts";
import type { Call } from "../../http/call.ts";
import { lockedUntil } from "../decide.ts";
import { emailDigest } from "../email.ts";
import type { LoginAnswer } from "../model.ts";
import { findLockTime } from "../queries/locks.ts";
import { holdUser } from "../queries/users.ts";
import { openOwnSession, type SessionDeps } from "./open-session.ts";

/** Somebody whom an identity provider vouches for. */
interface LinkedUser {
  readonly id: number;
  readonly companyId: number;
  readonly email: string;
}

/**
 * Call it first in a transaction that signs a linked user in, or prepares to: afterwards a password reset waits. The
 * lock of wrong passwords holds for these sign-ins too (contract 4.8).
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

/** Opens the session of a user who is held; answers the same as a login. */
export function openLinkedSession(
  tx: Tx,
  deps: SessionDeps,
  { user, call, now }: { user: LinkedUser; call: Call; now: Date },
): Promise<LoginAnswer> {
  return openOwnSession(tx, deps, { user, method: "sso", call, now });
}
