import { and, eq, inArray, isNull, lte, ne, notExists, or, sql, type SQL } from "drizzle-orm";
import { alias, type PgColumn, type PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { authorizationCodes, portalLinks, signingKeys, tokens } from "../../../db/schema/tokens.ts";
import {
  emailCodeLimits,
  emailCodes,
  emailCodeTries,
  signInLocks,
  ssoCodes,
  ssoStates,
} from "../../../db/schema/sign-in.ts";
import { serverTime } from "../../../db/server.ts";

/** By when a row must have ended to be removed: Postgres' time, not that of the machine that asks. */
export function purgeTime(db: DbOrTx): Promise<Date> {
  return serverTime(db);
}

/** Rows of a table that have ended by a moment. */
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
}

const made = alias(tokens, "made");

/** What ends by itself, by its kind. */
function kinds(db: DbOrTx, moments: Moments): Record<string, Ended> {
  const { now, expiredBefore: by } = moments;
  const { state, redeemedAt } = authorizationCodes;
  const madeByIt = db.select({ jti: made.jti }).from(made).where(eq(made.parentJti, tokens.jti));
  return {
    // A token that has made others stays for as long as these, which would end with it.
    tokens: { from: tokens, at: tokens.expiresAt, by, only: notExists(madeByIt) },
    // Codes that are over, used or not, and hold back no other one any more.
    codes: {
      from: emailCodes,
      at: emailCodes.expiresAt,
      by,
      only: lte(emailCodes.issuedAt, moments.issuedBefore),
    },
    // What is left of sign-ins at the authorize page; used codes stay longer, so that a replay is recognised.
    authorizationCodes: {
      from: authorizationCodes,
      at: authorizationCodes.expiresAt,
      by,
      only: or(ne(state, "redeemed"), lte(redeemedAt, moments.redeemedBefore)),
    },
    codeLimits: { from: emailCodeLimits, at: emailCodeLimits.touchedAt, by: moments.touchedBefore },
    codeTries: { from: emailCodeTries, at: emailCodeTries.touchedAt, by: moments.touchedBefore },
    // Trips to identity providers that are over, ended or not (`src/sso`).
    ssoStates: { from: ssoStates, at: ssoStates.expiresAt, by },
    ssoCodes: { from: ssoCodes, at: ssoCodes.expiresAt, by },
    // Links to the portal that nobody has followed in time.
    portalLinks: { from: portalLinks, at: portalLinks.expiresAt, by },
    // What `decideWrongAttempt` would forget.
    locks: {
      from: signInLocks,
      at: signInLocks.lastFailureAt,
      by: moments.failedBefore,
      only: or(isNull(signInLocks.lockedUntil), lte(signInLocks.lockedUntil, now)),
    },
  };
}

/** Deletes the oldest rows of each kind but those that somebody works on, which are left for the next time. */
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

/** Deletes retired keys that no token needs; a token that is being written holds its key. */
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
  const rows = await tx.delete(signingKeys).where(inArray(kid, idle)).returning({ kid });
  return rows.map((row) => row.kid);
}
