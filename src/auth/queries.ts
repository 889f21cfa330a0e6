import { and, eq, isNull, lte, ne, notExists, or, sql, type SQL, gt } from "drizzle-orm";
import { alias, type PgColumn, type PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx, Db, Tx } from "../../db/client.ts";
import { anyOfQuery } from "../../db/conditions.ts";
import {
  emailCodeLimits,
  emailCodes,
  emailCodeTries,
  keyedRequests,
  signInLocks,
  ssoCodes,
  ssoStates,
} from "../../db/schema/sign-in.ts";
import { authorizationCodes, portalLinks, signingKeys, tokens } from "../../db/schema/tokens.ts";
import { serverTime } from "../../db/server.ts";
import type { KeyedRequest, KeyedResponse } from "../http/creation.ts";

/**
 * Returns the current time, by which the purge decides which rows have ended. The clock of PostgreSQL is used,
 * because the clock of one machine may be wrong.
 */
export function purgeTime(db: DbOrTx): Promise<Date> {
  return serverTime(db);
}

/**
 * Describes the rows of a table that the purge may delete: those whose column `at` is not after `by`, and for which
 * the condition `only` holds.
 */
interface EndedRows {
  readonly from: PgTable;
  readonly at: PgColumn;
  readonly by: Date;
  readonly only?: SQL | undefined;
}

interface PurgeMoments {
  readonly now: Date;
  readonly expiredBefore: Date;
  readonly issuedBefore: Date;
  readonly redeemedBefore: Date;
  readonly touchedBefore: Date;
  readonly failedBefore: Date;
  readonly retiredBefore: Date;
  readonly keyedBefore: Date;
}

const madeTokens = alias(tokens, "made");

/** Returns the condition for each kind of rows that end by time alone, such as expired tokens. */
function endedKinds(db: DbOrTx, moments: PurgeMoments): Record<string, EndedRows> {
  const { now, expiredBefore: by } = moments;
  const { state, redeemedAt } = authorizationCodes;
  const madeByIt = db
    .select({ jti: madeTokens.jti })
    .from(madeTokens)
    .where(eq(madeTokens.parentJti, tokens.jti));
  return {
    // A token that has created other tokens stays as long as they do, because deleting it would end them.
    tokens: { from: tokens, at: tokens.expiresAt, by, only: notExists(madeByIt) },
    // A mailed code, used or not, is deleted when it has expired and no longer causes a cooldown.
    codes: {
      from: emailCodes,
      at: emailCodes.expiresAt,
      by,
      only: lte(emailCodes.issuedAt, moments.issuedBefore),
    },
    // Sign-ins that were abandoned at the page `/oauth/authorize` are deleted when they have expired. Redeemed codes
    // stay longer, so that a replay is recognised.
    authorizationCodes: {
      from: authorizationCodes,
      at: authorizationCodes.expiresAt,
      by,
      only: or(ne(state, "redeemed"), lte(redeemedAt, moments.redeemedBefore)),
    },
    codeLimits: { from: emailCodeLimits, at: emailCodeLimits.touchedAt, by: moments.touchedBefore },
    codeTries: { from: emailCodeTries, at: emailCodeTries.touchedAt, by: moments.touchedBefore },
    // Single sign-on flows that have expired, finished or not (`src/sso`).
    ssoStates: { from: ssoStates, at: ssoStates.expiresAt, by },
    ssoCodes: { from: ssoCodes, at: ssoCodes.expiresAt, by },
    // Requests with an `Idempotency-Key` whose stored responses have expired.
    keyedRequests: { from: keyedRequests, at: keyedRequests.createdAt, by: moments.keyedBefore },
    // Portal links that were not used in time.
    portalLinks: { from: portalLinks, at: portalLinks.expiresAt, by },
    // A sign-in lock is deleted when it has ended and `settleWrongAttempt` would not count its failures any more.
    locks: {
      from: signInLocks,
      at: signInLocks.lastFailureAt,
      by: moments.failedBefore,
      only: or(isNull(signInLocks.lockedUntil), lte(signInLocks.lockedUntil, now)),
    },
  };
}

/**
 * Deletes the oldest ended rows of each kind, up to `limit` rows of each. Rows that another transaction has locked
 * are skipped and left for the next run.
 */
export async function deleteEnded(
  db: DbOrTx,
  moments: PurgeMoments,
  limit: number,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [kind, { from, at, by, only }] of Object.entries(endedKinds(db, moments))) {
    const oldest = db
      .select({ ctid: sql`ctid` })
      .from(from)
      .where(and(lte(at, by), only))
      .orderBy(at)
      .limit(limit)
      .for("update", { skipLocked: true });
    counts[kind] = (await db.delete(from).where(sql`ctid = any (array(${oldest}))`)).count;
  }
  return counts;
}

/**
 * Deletes retired signing keys that no token uses any more. A transaction that inserts a token locks its signing key,
 * and this function skips locked keys.
 */
export async function deleteIdleKeys(
  tx: DbOrTx,
  { retiredBefore }: Pick<PurgeMoments, "retiredBefore">,
  limit: number,
): Promise<string[]> {
  const { kid, state, retiredAt } = signingKeys;
  const uses = tx.select({ jti: tokens.jti }).from(tokens).where(eq(tokens.kid, kid));
  const idle = tx
    .select({ kid })
    .from(signingKeys)
    .where(and(eq(state, "retired"), lte(retiredAt, retiredBefore), notExists(uses)))
    .orderBy(retiredAt)
    .limit(limit)
    .for("update", { skipLocked: true });
  const rows = await tx.delete(signingKeys).where(anyOfQuery(kid, idle)).returning({ kid });
  return rows.map((row) => row.kid);
}

/**
 * Returns the primary key for a request with an `Idempotency-Key`. It contains the user id, because two users may send
 * the same `Idempotency-Key`.
 */
export const rowKeyOf = ({ userId, key }: Pick<KeyedRequest, "userId" | "key">): string =>
  `${userId}:${key}`;

/**
 * Inserts an `Idempotency-Key` with its response, or replaces an expired row of the same key. Waits for a transaction
 * that inserts the same key. Returns false if the key has a row that has not expired.
 */
export async function insertResponse(tx: Tx, response: KeyedResponse): Promise<boolean> {
  const { digest, sealedResponse, createdAt, expired } = response;
  const values = { digest, sealedResponse, createdAt };
  const { count } = await tx
    .insert(keyedRequests)
    .values({ key: rowKeyOf(response), ...values })
    .onConflictDoUpdate({
      target: keyedRequests.key,
      set: values,
      setWhere: lte(keyedRequests.createdAt, expired),
    });
  return count > 0;
}

/** Returns the row of a request's `Idempotency-Key`, unless the row was created at or before `expired`. */
export async function keyedRequestOf(db: Db, request: KeyedRequest, expired: Date) {
  const { digest, sealedResponse, key, createdAt } = keyedRequests;
  const [row] = await db
    .select({ digest, sealedResponse })
    .from(keyedRequests)
    .where(and(eq(key, rowKeyOf(request)), gt(createdAt, expired)));
  return row;
}
