import { and, eq, isNull, lte, ne, notExists, or, sql, type SQL } from "drizzle-orm";
import { alias, type PgColumn, type PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOfQuery } from "../../../db/conditions.ts";
import { authorizationCodes, portalLinks, signingKeys, tokens } from "../../../db/schema/tokens.ts";
import {
  emailCodeLimits,
  emailCodes,
  emailCodeTries,
  keyedRequests,
  signInLocks,
  ssoCodes,
  ssoStates,
} from "../../../db/schema/sign-in.ts";
import { serverTime } from "../../../db/server.ts";

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
interface Ended {
  readonly from: PgTable;
  readonly at: PgColumn;
  readonly by: Date;
  readonly only?: SQL | undefined;
}

interface Moments {
  readonly now: Date;
  readonly expiredBefore: Date;
  readonly issuedBefore: Date;
  readonly redeemedBefore: Date;
  readonly touchedBefore: Date;
  readonly failedBefore: Date;
  readonly retiredBefore: Date;
  readonly keyedBefore: Date;
}

const made = alias(tokens, "made");

/** Defines which rows the purge may delete, for each kind of rows that end by time alone, such as expired tokens. */
function kinds(db: DbOrTx, moments: Moments): Record<string, Ended> {
  const { now, expiredBefore: by } = moments;
  const { state, redeemedAt } = authorizationCodes;
  const madeByIt = db.select({ jti: made.jti }).from(made).where(eq(made.parentJti, tokens.jti));
  return {
    // A token that has created other tokens stays as long as they do, because deleting it would end them.
    tokens: { from: tokens, at: tokens.expiresAt, by, only: notExists(madeByIt) },
    // Mailed codes that have expired, used or not, and no longer cause a cooldown.
    codes: {
      from: emailCodes,
      at: emailCodes.expiresAt,
      by,
      only: lte(emailCodes.issuedAt, moments.issuedBefore),
    },
    // Abandoned sign-ins at the page `/oauth/authorize`. Redeemed codes stay longer, so that a replay is recognised.
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
    // Keys of creating requests, whose responses are not repeated any more.
    keyedRequests: { from: keyedRequests, at: keyedRequests.createdAt, by: moments.keyedBefore },
    // Portal links that were not used in time.
    portalLinks: { from: portalLinks, at: portalLinks.expiresAt, by },
    // Sign-in locks that `decideWrongAttempt` would treat as forgotten.
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
  moments: Moments,
  limit: number,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [kind, { from, at, by, only }] of Object.entries(kinds(db, moments))) {
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
 * Deletes retired signing keys that no token uses any more. A transaction that inserts a token locks its key, and
 * locked keys are skipped.
 */
export async function deleteIdleKeys(
  tx: DbOrTx,
  { retiredBefore }: Pick<Moments, "retiredBefore">,
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
