import type { Tx } from "../../../db/client.ts";
import type { Principal } from "../../http/principal.ts";
import { Problem } from "../../lib/problem.ts";
import { isErased } from "../erasure-rules.ts";
import type { User } from "../model.ts";
import * as queries from "../queries/users.ts";

/**
 * Throws the error of `lastError` if the user is the last super-admin or owner. Every change that ends a user's role or
 * access calls this function first.
 */
export async function refuseLast(tx: Tx, principal: Principal, user: User): Promise<void> {
  const last = await lastError(tx, principal, user);
  if (last !== undefined) throw new Problem(last);
}

/**
 * Returns `last_super_admin` or `last_owner` if the user is active and no other active super-admin, or no other active
 * owner of the partner, can sign in; undefined otherwise. If the caller is an operator, the last owner is no error,
 * because an operator can appoint another owner. The users with that role are locked until the commit.
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
 * Locks a user until the commit. Throws `not_found` if the user does not exist any more, and `user_erased` for an erased
 * user, who never changes again (contract 10.8). Every change of a user calls this function, after `refuseLast`.
 */
export async function holdChangeable(tx: Tx, id: number): Promise<Pick<User, "id" | "email">> {
  const held = await queries.holdUser(tx, id);
  if (held === undefined) throw new Problem("not_found");
  if (isErased(held)) throw new Problem("user_erased");
  return held;
}

/**
 * Locks a user until the commit, so that nobody signs in as the user during the transaction. Returns the error of
 * `lastError` for a change after which the user cannot sign in by single sign-on. Returns undefined if the user has a
 * password, because the user can then still sign in. Throws `not_found` if the user does not exist any more.
 */
export async function holdSignIns(tx: Tx, principal: Principal, user: User) {
  // `lastError` comes first, because it locks all users with the role in the order of their ids. A lock on this user
  // before that could cause a deadlock.
  const last = await lastError(tx, principal, user);
  if ((await queries.holdUser(tx, user.id)) === undefined) throw new Problem("not_found");
  const held = await queries.userById(tx, user.id);
  return held?.hasPassword === true ? undefined : last;
}
