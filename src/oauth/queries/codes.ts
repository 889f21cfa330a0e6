import { and, arrayContains, eq } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { authorizationCodes, oauthClients } from "../../../db/schema/tokens.ts";
import type { AuthorizationCode } from "../model.ts";

const { secretHash } = authorizationCodes;

/**
 * Inserts an authorization code and locks the client with a shared lock, so that its deletion waits for the commit.
 * Returns false if the client was deleted or may not use the code flow any more.
 */
export async function insertAuthorizationCode(
  tx: Tx,
  code: Omit<AuthorizationCode, "familyId">,
): Promise<boolean> {
  const { clientId, grantTypes } = oauthClients;
  const held = await tx
    .select({ clientId })
    .from(oauthClients)
    .where(and(eq(clientId, code.clientId), arrayContains(grantTypes, ["authorization_code"])))
    .for("key share");
  if (held.length === 0) return false;
  await tx.insert(authorizationCodes).values(code);
  return true;
}

export async function findAuthorizationCode(
  db: DbOrTx,
  hash: string,
): Promise<AuthorizationCode | undefined> {
  const [row] = await db.select().from(authorizationCodes).where(eq(secretHash, hash));
  return row;
}

/** Locks an authorization code, so that a concurrent redemption waits and then sees the result of this redemption. */
export async function holdAuthorizationCode(
  tx: Tx,
  hash: string,
): Promise<AuthorizationCode | undefined> {
  const [row] = await tx
    .select()
    .from(authorizationCodes)
    .where(eq(secretHash, hash))
    .for("update");
  return row;
}

export async function redeemAuthorizationCode(
  tx: Tx,
  code: { secretHash: string; familyId: string; now: Date },
): Promise<void> {
  await tx
    .update(authorizationCodes)
    .set({ state: "redeemed", redeemedAt: code.now, familyId: code.familyId })
    .where(eq(secretHash, code.secretHash));
}

/** Deletes an authorization code. Returns false if the code no longer existed. */
export async function deleteAuthorizationCode(tx: Tx, hash: string): Promise<boolean> {
  const { count } = await tx.delete(authorizationCodes).where(eq(secretHash, hash));
  return count > 0;
}
