import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { AuthorizationCode } from "../model.ts";

/** False if the client is gone, or may not use the flow any more; its deletion waits for the commit. */
export async function insertAuthorizationCode(
  tx: Tx,
  code: Omit<AuthorizationCode, "familyId">,
): Promise<boolean> {
  const result = await tx.sql`
    insert into authorization_codes
      (secret_hash, state, client_id, user_id, redirect_uri, code_challenge, scope, issued_at, expires_at)
    select ${code.secretHash}, ${code.state}, client_id, ${code.userId}, ${code.redirectUri},
      ${code.codeChallenge}, ${code.scope}, ${code.issuedAt}, ${code.expiresAt}
    from oauth_clients where client_id = ${code.clientId} and 'authorization_code' = any(grant_types)
    for key share`;
  return result.count > 0;
}

const columns = (db: DbOrTx) => db.sql`
  secret_hash as "secretHash", state, client_id as "clientId", user_id as "userId", redirect_uri as "redirectUri",
  code_challenge as "codeChallenge", scope, issued_at as "issuedAt", expires_at as "expiresAt", family_id as "familyId"`;

export async function findAuthorizationCode(
  db: DbOrTx,
  secretHash: string,
): Promise<AuthorizationCode | undefined> {
  const [row] = await db.sql<AuthorizationCode[]>`
    select ${columns(db)} from authorization_codes where secret_hash = ${secretHash}`;
  return row;
}

/** Of several redemptions at once each sees what the one before it did. */
export async function holdAuthorizationCode(
  tx: Tx,
  secretHash: string,
): Promise<AuthorizationCode | undefined> {
  const [row] = await tx.sql<AuthorizationCode[]>`
    select ${columns(tx)} from authorization_codes where secret_hash = ${secretHash} for update`;
  return row;
}

export async function redeemAuthorizationCode(
  tx: Tx,
  { secretHash, familyId, now }: { secretHash: string; familyId: string; now: Date },
): Promise<void> {
  await tx.sql`
    update authorization_codes set state = 'redeemed', redeemed_at = ${now}, family_id = ${familyId}
    where secret_hash = ${secretHash}`;
}

/** False if it was gone already. */
export async function deleteAuthorizationCode(tx: Tx, secretHash: string): Promise<boolean> {
  const result = await tx.sql`delete from authorization_codes where secret_hash = ${secretHash}`;
  return result.count > 0;
}
