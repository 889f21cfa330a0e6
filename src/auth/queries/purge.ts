import { and, eq, inArray, isNull, lte, ne, notExists, or, sql, type SQL } from "drizzle-orm";
import { alias, type PgColumn, type PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { signingKeys } from "../../../db/schema/keys.ts";
import { portalLinks } from "../../../db/schema/portal.ts";
import {
  emailCodeLimits,
  emailCodes,
  emailCodeTries,
  signInLocks,
} from "../../../db/schema/sign-in.ts";
import { ssoCodes, ssoStates } from "../../../db/schema/sso.ts";
import { authorizationCodes, tokens } from "../../../db/schema/tokens.ts";
import { serverTime } from "../../../db/server-time.ts";

/** By when a row must have ended to be removed: Postgres' time, not that of the machine that asks. */
export function purgeTime(db: DbOrTx): Promise<Date> {
  return serverTime(db);
}

interface Oldest {
  readonly where: SQL | undefined;
  readonly orderBy: PgColumn;
  readonly limit: number;
}

/** Holds the oldest rows but those that somebody works on, which are left for the next time; to be deleted by their key. */
function holdOldest(
  tx: DbOrTx,
  table: PgTable,
  key: Readonly<Record<string, PgColumn>>,
  { where, orderBy, limit }: Oldest,
) {
  return tx
    .select(key)
    .from(table)
    .where(where)
    .orderBy(orderBy)
    .limit(limit)
    .for("update", { skipLocked: true });
}

async function deleteOldest(
  tx: DbOrTx,
  table: PgTable,
  key: PgColumn,
  oldest: Oldest,
): Promise<number> {
  const { count } = await tx
    .delete(table)
    .where(inArray(key, holdOldest(tx, table, { key }, oldest)));
  return count;
}

/** A token that has made others stays for as long as these, which would end with it. */
export function deleteExpiredTokens(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const { jti, expiresAt } = tokens;
  const made = alias(tokens, "made");
  const madeByIt = tx.select({ jti: made.jti }).from(made).where(eq(made.parentJti, jti));
  return deleteOldest(tx, tokens, jti, {
    where: and(lte(expiresAt, before), notExists(madeByIt)),
    orderBy: expiresAt,
    limit,
  });
}

/** Codes that are over, used or not, and hold back no other one any more. */
export async function deleteDeadCodes(
  tx: DbOrTx,
  { expiredBefore, issuedBefore }: { expiredBefore: Date; issuedBefore: Date },
  limit: number,
): Promise<number> {
  const { emailDigest, type, expiresAt, issuedAt } = emailCodes;
  const where = and(lte(expiresAt, expiredBefore), lte(issuedAt, issuedBefore));
  const key = { emailDigest, type };
  const dead = holdOldest(tx, emailCodes, key, { where, orderBy: expiresAt, limit });
  const { count } = await tx.delete(emailCodes).where(sql`(${emailDigest}, ${type}) in ${dead}`);
  return count;
}

/** What is left of sign-ins at the authorize page; used codes stay longer, so that a replay is recognised. */
export function deleteDeadAuthorizationCodes(
  tx: DbOrTx,
  { expiredBefore, redeemedBefore }: { expiredBefore: Date; redeemedBefore: Date },
  limit: number,
): Promise<number> {
  const { secretHash, state, expiresAt, redeemedAt } = authorizationCodes;
  const isForgotten = or(ne(state, "redeemed"), lte(redeemedAt, redeemedBefore));
  return deleteOldest(tx, authorizationCodes, secretHash, {
    where: and(lte(expiresAt, expiredBefore), isForgotten),
    orderBy: expiresAt,
    limit,
  });
}

export function deleteOldCodeLimits(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const { emailDigest, touchedAt } = emailCodeLimits;
  return deleteOldest(tx, emailCodeLimits, emailDigest, {
    where: lte(touchedAt, before),
    orderBy: touchedAt,
    limit,
  });
}

export async function deleteOldCodeTries(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const { emailDigest, network, touchedAt } = emailCodeTries;
  const oldest = { where: lte(touchedAt, before), orderBy: touchedAt, limit };
  const old = holdOldest(tx, emailCodeTries, { emailDigest, network }, oldest);
  const { count } = await tx
    .delete(emailCodeTries)
    .where(sql`(${emailDigest}, ${network}) in ${old}`);
  return count;
}

/** What `decideWrongAttempt` would forget. */
export function deleteForgottenLocks(
  tx: DbOrTx,
  { failedBefore, now }: { failedBefore: Date; now: Date },
  limit: number,
): Promise<number> {
  const { emailDigest, lastFailureAt, lockedUntil } = signInLocks;
  const isOpen = or(isNull(lockedUntil), lte(lockedUntil, now));
  return deleteOldest(tx, signInLocks, emailDigest, {
    where: and(lte(lastFailureAt, failedBefore), isOpen),
    orderBy: lastFailureAt,
    limit,
  });
}

/** Retired keys that no token needs; a token that is being written holds its key. */
export async function deleteIdleKeys(
  tx: DbOrTx,
  retiredBefore: Date,
  limit: number,
): Promise<string[]> {
  const { kid, state, retiredAt } = signingKeys;
  const uses = tx.select({ jti: tokens.jti }).from(tokens).where(eq(tokens.kid, kid));
  const idle = holdOldest(
    tx,
    signingKeys,
    { kid },
    {
      where: and(eq(state, "retired"), lte(retiredAt, retiredBefore), notExists(uses)),
      orderBy: retiredAt,
      limit,
    },
  );
  const rows = await tx.delete(signingKeys).where(inArray(kid, idle)).returning({ kid });
  return rows.map((row) => row.kid);
}

/** Trips to identity providers that are over, ended or not (`src/sso`). */
export function deleteDeadSsoStates(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const { stateHash, expiresAt } = ssoStates;
  return deleteOldest(tx, ssoStates, stateHash, {
    where: lte(expiresAt, before),
    orderBy: expiresAt,
    limit,
  });
}

export function deleteDeadSsoCodes(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const { codeHash, expiresAt } = ssoCodes;
  return deleteOldest(tx, ssoCodes, codeHash, {
    where: lte(expiresAt, before),
    orderBy: expiresAt,
    limit,
  });
}

/** Links to the portal that nobody has followed in time. */
export function deleteDeadPortalLinks(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const { codeHash, expiresAt } = portalLinks;
  return deleteOldest(tx, portalLinks, codeHash, {
    where: lte(expiresAt, before),
    orderBy: expiresAt,
    limit,
  });
}
