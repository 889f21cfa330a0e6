import { and, asc, count, eq, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies, users } from "../../../db/schema/companies.ts";
import {
  recoveryCodes,
  secondFactorChallenges,
  secondFactors,
} from "../../../db/schema/second-factors.ts";
import { authenticationEvents } from "../../../db/schema/tokens.ts";

export type FactorRow = typeof secondFactors.$inferSelect;
export type ChallengeRow = typeof secondFactorChallenges.$inferSelect;

const { id, userId, kind } = secondFactors;

/** Lists the factors of a user, oldest first. */
export function factorsOf(db: DbOrTx, ownerId: number): Promise<FactorRow[]> {
  return db.select().from(secondFactors).where(eq(userId, ownerId)).orderBy(asc(id));
}

export async function findFactor(db: DbOrTx, wanted: string): Promise<FactorRow | undefined> {
  const [row] = await db.select().from(secondFactors).where(eq(id, wanted));
  return row;
}

/** The data that decides whether a user needs a second factor, and the methods that the user has. */
export type FactorState = Awaited<ReturnType<typeof factorStateOf>>;

export async function factorStateOf(db: DbOrTx, ownerId: number) {
  const own = sql`from ${secondFactors} where ${userId} = ${users.id}`;
  const [row] = await db
    .select({
      companyType: companies.type,
      role: users.role,
      requiresFactor: companies.requireSecondFactor,
      hasTotp: sql`exists (select ${own} and ${kind} = 'totp')`.mapWith(Boolean),
      hasPasskey: sql`exists (select ${own} and ${kind} = 'passkey')`.mapWith(Boolean),
      codesLeft: sql`(select count(*) from ${recoveryCodes}
        where ${recoveryCodes.userId} = ${users.id})`.mapWith(Number),
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .where(eq(users.id, ownerId));
  if (row === undefined) throw new Error(`User ${ownerId} does not exist.`);
  return row;
}

export async function insertFactor(
  tx: Tx,
  row: typeof secondFactors.$inferInsert,
): Promise<FactorRow | undefined> {
  const [inserted] = await tx
    .insert(secondFactors)
    .values(row)
    .onConflictDoNothing({ target: secondFactors.credentialId })
    .returning();
  return inserted;
}

/** Records the use of a factor, with the new time step of an app or the new counter of a passkey. */
export async function stampFactor(
  tx: Tx,
  wanted: string,
  use: Partial<Pick<FactorRow, "lastStep" | "signCount">> & { readonly lastUsedAt: Date },
): Promise<void> {
  await tx.update(secondFactors).set(use).where(eq(id, wanted));
}

/** Deletes a factor of a user. Returns false if it does not exist. */
export async function deleteFactor(tx: Tx, ownerId: number, wanted: string): Promise<boolean> {
  const where = and(eq(id, wanted), eq(userId, ownerId));
  return (await tx.delete(secondFactors).where(where)).count > 0;
}

/** Deletes the factors and recovery codes of a user. Returns the number of deleted factors. */
export async function deleteFactorsOf(tx: Tx, ownerId: number): Promise<number> {
  await deleteRecoveryCodes(tx, ownerId);
  return (await tx.delete(secondFactors).where(eq(userId, ownerId))).count;
}

export async function deleteRecoveryCodes(tx: Tx, ownerId: number): Promise<void> {
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.userId, ownerId));
}

export async function insertRecoveryCodes(
  tx: Tx,
  ownerId: number,
  hashes: readonly string[],
): Promise<void> {
  await tx.insert(recoveryCodes).values(hashes.map((codeHash) => ({ userId: ownerId, codeHash })));
}

/** Deletes a recovery code, because each code is valid once. Returns false if the user has no such code. */
export async function useRecoveryCode(tx: Tx, ownerId: number, hash: string): Promise<boolean> {
  const where = and(eq(recoveryCodes.userId, ownerId), eq(recoveryCodes.codeHash, hash));
  return (await tx.delete(recoveryCodes).where(where)).count > 0;
}

export async function countRecoveryCodes(db: DbOrTx, ownerId: number): Promise<number> {
  const [row] = await db
    .select({ left: count() })
    .from(recoveryCodes)
    .where(eq(recoveryCodes.userId, ownerId));
  return row?.left ?? 0;
}

const { jti } = secondFactorChallenges;

/**
 * Reads the row with the unfinished second-factor steps of a token: its wrong proofs, and the passkey challenge and app
 * secret that wait for an answer. The caller must have locked the user and the token.
 */
export async function findChallenge(tx: Tx, token: string): Promise<ChallengeRow | undefined> {
  const [row] = await tx.select().from(secondFactorChallenges).where(eq(jti, token));
  return row;
}

/** Inserts or updates the row that `findChallenge` reads. Columns that `row` does not contain keep their values. */
export async function saveChallenge(
  tx: DbOrTx,
  row: typeof secondFactorChallenges.$inferInsert,
): Promise<void> {
  const { jti: _, ...set } = row;
  await tx.insert(secondFactorChallenges).values(row).onConflictDoUpdate({ target: jti, set });
}

/** Records the time of a proof for a session, which makes the session fresh. */
export async function stampProof(tx: Tx, familyId: string, now: Date): Promise<void> {
  await tx
    .update(authenticationEvents)
    .set({ factorAt: now })
    .where(eq(authenticationEvents.id, familyId));
}
