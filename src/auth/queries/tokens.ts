import type { DbOrTx } from "../../../db/client.ts";
import type { Role, SignInMethod, TokenKind } from "../model.ts";

export interface TokenRow {
  readonly jti: string;
  readonly kind: TokenKind;
  readonly userId: number;
  readonly clientId: string | null;
  readonly familyId: string | null;
  readonly impersonatorId: number | null;
  readonly scope: string;
  readonly kid: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date | null;
}

export async function insertToken(tx: DbOrTx, row: TokenRow): Promise<void> {
  await tx.sql`
    insert into tokens
      (jti, kind, user_id, client_id, family_id, impersonator_id, scope, kid, issued_at, expires_at)
    values
      (${row.jti}, ${row.kind}, ${row.userId}, ${row.clientId}, ${row.familyId}, ${row.impersonatorId},
       ${row.scope}, ${row.kid}, ${row.issuedAt}, ${row.expiresAt})`;
}

/** A live token with all that its use depends on. */
export interface BearerRow extends Omit<TokenRow, "jti" | "kid" | "issuedAt"> {
  readonly lastUsedAt: Date | null;
  readonly signInMethod: SignInMethod | null;
  readonly clientIsFirstParty: boolean | null;
  readonly userName: string;
  readonly role: Role;
  readonly companyId: number;
  readonly companyType: "platform" | "partner" | "account";
  readonly companyPartnerId: number | null;
  readonly storeIds: number[] | null;
}

/**
 * The one look-up of a bearer check, every join by primary key. No row: the token was revoked, the user, the company
 * or its partner is inactive, or the impersonator is no active admin of the account's partner any more (decisions.md
 * 2, revocation).
 */
export async function findBearer(db: DbOrTx, jti: string): Promise<BearerRow | undefined> {
  const [row] = await db.sql<BearerRow[]>`
    select t.kind, t.user_id as "userId", t.client_id as "clientId", t.family_id as "familyId",
      t.impersonator_id as "impersonatorId", t.scope, t.expires_at as "expiresAt", t.last_used_at as "lastUsedAt",
      e.method as "signInMethod", o.first_party as "clientIsFirstParty",
      u.name as "userName", u.role, u.company_id as "companyId",
      c.type as "companyType", c.partner_id as "companyPartnerId",
      case when u.role = 'location_user'
        then array(select store_id from user_stores where user_id = u.id order by store_id) end as "storeIds"
    from tokens t
    join users u on u.id = t.user_id
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    left join users i on i.id = t.impersonator_id
    left join authentication_events e on e.id = t.family_id
    left join oauth_clients o on o.client_id = t.client_id
    where t.jti = ${jti} and u.is_active and c.is_active and coalesce(p.is_active, true)
      and (t.impersonator_id is null or
        (i.is_active and i.company_id = p.id and i.role in ('partner_owner', 'partner_admin')))`;
  return row;
}

/** False if the token was gone already. */
export async function deleteToken(tx: DbOrTx, jti: string): Promise<boolean> {
  const result = await tx.sql`delete from tokens where jti = ${jti}`;
  return result.count > 0;
}

/** Leaves a later stamp of another process alone. */
export async function stampLastUse(db: DbOrTx, jti: string, at: Date): Promise<void> {
  await db.sql`
    update tokens set last_used_at = ${at}
    where jti = ${jti} and (last_used_at is null or last_used_at < ${at})`;
}
