import type { Tx } from "../../../db/client.ts";
import type { Principal } from "../../http/principal.ts";
import { Problem } from "../../lib/problem.ts";
import type { User } from "../model.ts";
import * as queries from "../queries/users.ts";

/** Prevents a change that would leave no administrator or owner. */
export async function refuseLast(tx: Tx, principal: Principal, user: User): Promise<void> {
  const last = await lastError(tx, principal, user);
  if (last !== undefined) throw new Problem(last);
}

/**
 * Returns `last_super_admin` for the last active super-admin who can sign in, and `last_owner` for the last such owner of
 * a partner; undefined for others. An operator may remove the last owner, because an operator can appoint another. The
 * users with that role are locked until the commit.
 */
async function lastError(
  tx: Tx,
  { companyType }: Principal,
  user: User,
): Promise<"last_super_admin" | "last_owner" | undefined> {
  const { role } = user;
  if (role === "super_admin" && (await queries.isLastOfRole(tx, user))) return "last_super_admin";
  const isOwnOwner = role === "partner_owner" && companyType === "partner";
  return isOwnOwner && (await queries.isLastOfRole(tx, user)) ? "last_owner" : undefined;
}

/**
 * Locks a user until the commit, so that nobody signs in as the user meanwhile. Returns the error of `refuseLast` that
 * applies if the user could not sign in any more: undefined with a password. Throws `not_found` if the user is gone.
 */
export async function holdSignIns(tx: Tx, principal: Principal, user: User) {
  // The users with the role are locked first, in the order of their ids.
  const last = await lastError(tx, principal, user);
  if (!(await queries.holdUser(tx, user.id))) throw new Problem("not_found");
  const held = await queries.userById(tx, user.id);
  return held?.hasPassword === true ? undefined : last;
}
