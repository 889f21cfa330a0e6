import type { DbOrTx, Tx } from "../../../db/client.ts";

export interface SigningKeyRow {
  readonly kid: string;
  readonly state: "next" | "current" | "retired";
  readonly publicJwk: Record<string, unknown>;
  readonly sealedPrivateKey: string;
}
export type NewSigningKey = Omit<SigningKeyRow, "state">;

export async function listSigningKeys(db: DbOrTx): Promise<SigningKeyRow[]> {
  return db.sql<SigningKeyRow[]>`
    select kid, state, public_jwk as "publicJwk", sealed_private_key as "sealedPrivateKey"
    from signing_keys order by created_at`;
}

/** At most one key is `current` and one is `next`; false if another process was first. */
export async function insertSigningKey(
  db: DbOrTx,
  key: NewSigningKey & { state: "next" | "current"; now: Date },
): Promise<boolean> {
  const activatedAt = key.state === "current" ? key.now : null;
  const result = await db.sql`
    insert into signing_keys (kid, state, public_jwk, sealed_private_key, created_at, activated_at)
    values (${key.kid}, ${key.state}, ${JSON.stringify(key.publicJwk)}::text::jsonb, ${key.sealedPrivateKey},
      ${key.now}, ${activatedAt})
    on conflict do nothing`;
  return result.count > 0;
}

export async function retireCurrentKey(tx: Tx, now: Date): Promise<string | undefined> {
  const [row] = await tx.sql<{ kid: string }[]>`
    update signing_keys set state = 'retired', retired_at = ${now} where state = 'current' returning kid`;
  return row?.kid;
}

export async function activateNextKey(tx: Tx, now: Date): Promise<string | undefined> {
  const [row] = await tx.sql<{ kid: string }[]>`
    update signing_keys set state = 'current', activated_at = ${now} where state = 'next' returning kid`;
  return row?.kid;
}

/** A key as an operator sees it: nothing that signs. */
export interface KeyUse {
  readonly kid: string;
  readonly state: SigningKeyRow["state"];
  readonly createdAt: Date;
  readonly activatedAt: Date | null;
  readonly retiredAt: Date | null;
  /** How many tokens that have not ended carry it. */
  readonly tokens: number;
}

export async function listKeyUse(db: DbOrTx, now: Date): Promise<KeyUse[]> {
  return db.sql<KeyUse[]>`
    select kid, state, created_at as "createdAt", activated_at as "activatedAt", retired_at as "retiredAt",
      (select count(*) from tokens t where t.kid = k.kid and (t.expires_at is null or t.expires_at > ${now})) as tokens
    from signing_keys k order by created_at`;
}
