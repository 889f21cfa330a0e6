import { and, eq, gt, isNull, or } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { signingKeys, tokens } from "../../../db/schema/tokens.ts";

type SigningKey = typeof signingKeys.$inferSelect;
export type SigningKeyRow = Pick<SigningKey, "kid" | "state" | "publicJwk" | "sealedPrivateKey">;
export type NewSigningKey = Omit<SigningKeyRow, "state">;

export async function listSigningKeys(db: DbOrTx): Promise<SigningKeyRow[]> {
  return db.select().from(signingKeys).orderBy(signingKeys.createdAt);
}

/**
 * Inserts a signing key. At most one key is `current` and one is `next`. Returns false if there is already a key in the
 * state of the new one.
 */
export async function insertSigningKey(
  db: DbOrTx,
  { now, ...key }: NewSigningKey & { state: "next" | "current"; now: Date },
): Promise<boolean> {
  const activatedAt = key.state === "current" ? now : null;
  const { count } = await db
    .insert(signingKeys)
    .values({ ...key, createdAt: now, activatedAt })
    .onConflictDoNothing();
  return count > 0;
}

export async function retireCurrentKey(tx: Tx, now: Date): Promise<string | undefined> {
  const [row] = await tx
    .update(signingKeys)
    .set({ state: "retired", retiredAt: now })
    .where(eq(signingKeys.state, "current"))
    .returning({ kid: signingKeys.kid });
  return row?.kid;
}

export async function activateNextKey(
  tx: Tx,
  now: Date,
): Promise<Pick<SigningKey, "kid" | "createdAt"> | undefined> {
  const [row] = await tx
    .update(signingKeys)
    .set({ state: "current", activatedAt: now })
    .where(eq(signingKeys.state, "next"))
    .returning({ kid: signingKeys.kid, createdAt: signingKeys.createdAt });
  return row;
}

/** A signing key without its private half, as operators see it. */
interface KeyUse extends Omit<SigningKey, "publicJwk" | "sealedPrivateKey"> {
  /** Number of live tokens that were signed with this signing key. */
  readonly tokens: number;
}

export async function listKeyUse(db: DbOrTx, now: Date): Promise<KeyUse[]> {
  const { kid, state, createdAt, activatedAt, retiredAt } = signingKeys;
  const isLive = or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now));
  return db
    .select({
      kid,
      state,
      createdAt,
      activatedAt,
      retiredAt,
      tokens: db.$count(tokens, and(eq(tokens.kid, signingKeys.kid), isLive)),
    })
    .from(signingKeys)
    .orderBy(createdAt);
}
