import { ulid } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { digestsOfEmail } from "../../auth/passwords/codes.ts";
import { endAccess } from "../../auth/sign-in/sessions.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { ValidParts } from "../../http/fields.ts";
import { isUlid } from "../../http/ids.ts";
import type { Caller } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { Problem } from "../../lib/problem.ts";
import { type Erasure, type NewErasure, type Selector, selectorErrors } from "../erasure-model.ts";
import { companyById } from "../queries/companies.ts";
import { eraseUser } from "../queries/erase.ts";
import * as queries from "../queries/erasures.ts";
import { isLastOfRole, userById } from "../queries/users.ts";
import { existing, type AdminDeps, orNotFound } from "./deps.ts";
import { holdChangeable } from "./last-owner.ts";

type ErasingDeps = Pick<AdminDeps, "db" | "clock" | "box">;

export async function findErasure(
  { db }: { readonly db: Db },
  id: string | undefined,
): Promise<Erasure> {
  const found = id !== undefined && isUlid(id) ? await queries.erasureById(db, id) : undefined;
  return orNotFound(found);
}

/**
 * Validates that the body of an erasure identifies one person, and that the user, the companies and the reviews exist.
 */
export async function erasureErrors(
  { db }: { readonly db: Db },
  body: ValidParts<NewErasure>,
): Promise<RuleErrors> {
  const { user_id: userId, review_ids: given, partner_id: partnerId, account_id: accountId } = body;
  const reviewIds = given?.flatMap((one) => one ?? []) ?? [];
  const [user, partner, account, unknown] = await Promise.all([
    userId === undefined ? undefined : userById(db, userId),
    partnerId === undefined ? undefined : companyById(db, "partner", partnerId),
    accountId === undefined ? undefined : companyById(db, "account", accountId),
    reviewIds.length === 0 ? [] : queries.unknownReviews(db, reviewIds, { partnerId, accountId }),
  ]);
  const isForeign = partnerId !== undefined && account?.partnerId !== partnerId;
  return {
    partner_id: partnerId !== undefined && partner === undefined ? "is not a partner" : undefined,
    account_id:
      accountId !== undefined && (account === undefined || isForeign)
        ? "is not an account, or belongs to another partner"
        : undefined,
    review_ids:
      unknown.length === 0
        ? undefined
        : `must be ids of reviews of the partner or account; these are not: ${unknown.slice(0, 20).join(", ")}`,
    // The errors of `selectorErrors` come last, so that they replace the errors above for the same field.
    ...(userId !== undefined && user === undefined && { user_id: "is not a user" }),
    ...presentErrors(selectorErrors(body)),
  };
}

const presentErrors = (errors: RuleErrors): RuleErrors =>
  Object.fromEntries(Object.entries(errors).filter(([, text]) => text !== undefined));

/**
 * Stores the request to erase the person whom a body names that has passed `erasureErrors`. If the person is a user,
 * all access ends immediately, and name and email are replaced. The maintenance job erases all other data. `caller` is null for the command line tool.
 */
export async function requestErasure(
  { db, clock, box }: ErasingDeps,
  caller: Caller | null,
  body: NewErasure,
): Promise<Erasure> {
  const now = clock.now();
  const id = ulid(now.getTime());
  const actor = caller?.principal ?? null;
  return db.transaction(async (tx) => {
    const selector =
      body.user_id === undefined
        ? reviewerOf(body)
        : await endUser(tx, { userId: body.user_id, actorId: actor?.userId, now });
    const { kind } = selector;
    const sealedSelector = box.seal(JSON.stringify(selector), erasureAssociatedData(id));
    const one = { id, kind, sealedSelector, requestedBy: actor?.userId ?? null, requestedAt: now };
    await queries.insertErasure(tx, one);
    await recordAudit(tx, {
      at: now,
      action: "ERASURE_REQUESTED",
      actor,
      requestContext: caller?.requestContext ?? null,
      details: { erasure_id: id, kind },
    });
    return existing(await queries.erasureById(tx, id));
  });
}

/** Returns the associated data with which the `Selector` in the row of an erasure is sealed. */
export const erasureAssociatedData = (id: string): string => `erasure:${id}`;

function reviewerOf(body: NewErasure): Selector {
  return {
    kind: "reviewer",
    email: body.reviewer_email?.toLowerCase() ?? null,
    reviewIds: body.review_ids ?? [],
    partnerId: body.partner_id ?? null,
    accountId: body.account_id ?? null,
  };
}

/**
 * Ends the access of a user who is to be erased, and replaces name and email, so that nobody changes the user before the
 * maintenance job erases the rest. Throws `own_user` if the user is the caller, `user_erased` for an erased user, and
 * `last_super_admin` or `last_owner` if the user is the last super-admin or owner of the company who can sign in.
 */
async function endUser(
  tx: Tx,
  { userId, actorId, now }: { userId: number; actorId: number | undefined; now: Date },
): Promise<Selector> {
  if (userId === actorId) throw new Problem("own_user");
  const user = orNotFound(await queries.personOf(tx, userId));
  const { role, companyId, companyType, partnerId } = user;
  if (role === "super_admin" || role === "partner_owner" || role === "account_owner") {
    if (await isLastOfRole(tx, { id: userId, role, companyId }))
      throw new Problem(role === "super_admin" ? "last_super_admin" : "last_owner");
  }
  const { email } = await holdChangeable(tx, userId);
  await eraseUser(tx, userId, { digests: digestsOfEmail(email) });
  await endAccess(tx, [userId], now);
  const isOfAccount = companyType === "account" && partnerId !== null;
  return {
    kind: "user",
    userId,
    email,
    account: isOfAccount ? { id: companyId, partnerId } : null,
  };
}
