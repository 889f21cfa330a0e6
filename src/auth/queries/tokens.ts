import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import type { Role, SignInMethod, TokenKind } from "../../http/principal.ts";

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

/** What only the two kinds of personal access token have. */
interface PersonalPart {
  readonly name: string | null;
  readonly sealedToken: string | null;
}

export async function insertToken(tx: DbOrTx, row: TokenRow & PersonalPart): Promise<void> {
  await tx.sql`
    insert into tokens
      (jti, kind, user_id, client_id, family_id, impersonator_id, scope, kid, name, sealed_token, issued_at,
       expires_at)
    values
      (${row.jti}, ${row.kind}, ${row.userId}, ${row.clientId}, ${row.familyId}, ${row.impersonatorId},
       ${row.scope}, ${row.kid}, ${row.name}, ${row.sealedToken}, ${row.issuedAt}, ${row.expiresAt})`;
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

/** False if it was stamped since it was `seen`: of several requests at once one stamps. */
export async function stampLastUse(
  db: DbOrTx,
  jti: string,
  stamp: { seen: Date | null; at: Date },
): Promise<boolean> {
  const result = await db.sql`
    update tokens set last_used_at = ${stamp.at}
    where jti = ${jti} and last_used_at is not distinct from ${stamp.seen}`;
  return result.count > 0;
}

export async function isTokenAlive(db: DbOrTx, jti: string): Promise<boolean> {
  const rows = await db.sql`select 1 from tokens where jti = ${jti}`;
  return rows.length > 0;
}

/** All that the user has or is behind. In one order, so that two such deletions do not wait for each other. */
export async function deleteTokensOf(tx: Tx, userId: number): Promise<number> {
  const result = await tx.sql`
    delete from tokens where jti in (
      select jti from tokens where user_id = ${userId} or impersonator_id = ${userId} order by jti for update)`;
  return result.count;
}

export interface DashboardToken {
  readonly jti: string;
  readonly sealedToken: string;
  readonly issuedAt: Date;
  readonly lastUsedAt: Date | null;
}

export async function findDashboardToken(
  db: DbOrTx,
  userId: number,
): Promise<DashboardToken | undefined> {
  const [row] = await db.sql<DashboardToken[]>`
    select jti, sealed_token as "sealedToken", issued_at as "issuedAt", last_used_at as "lastUsedAt"
    from tokens where user_id = ${userId} and kind = 'dashboard_pat'`;
  return row;
}

/** A personal access token that was issued through the API. */
export interface ApiTokenRow {
  readonly jti: string;
  readonly userId: number;
  readonly name: string;
  readonly scope: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  readonly lastUsedAt: Date | null;
}

const apiTokenColumns = (db: DbOrTx) => db.sql`
  jti, user_id as "userId", name, scope, issued_at as "issuedAt", expires_at as "expiresAt",
  last_used_at as "lastUsedAt"`;

/** Newest first. `after` is an instant in ms and a jti, with a dot between. */
export async function apiTokensOf(
  db: DbOrTx,
  userId: number,
  { now, page }: { now: Date; page: Page },
): Promise<ApiTokenRow[]> {
  const { sql } = db;
  const [issuedMs = "", jti = ""] = page.after?.split(".") ?? [];
  const before =
    page.after === undefined
      ? sql``
      : sql`and (issued_at, jti) < (to_timestamp(${issuedMs}::text::bigint / 1000.0)::timestamptz(3), ${jti})`;
  return sql<ApiTokenRow[]>`
    select ${apiTokenColumns(db)} from tokens
    where user_id = ${userId} and kind = 'api_pat' and expires_at > ${now} ${before}
    order by issued_at desc, jti desc limit ${page.limit + 1}`;
}

export async function findApiToken(
  db: DbOrTx,
  jti: string,
  now: Date,
): Promise<ApiTokenRow | undefined> {
  const [row] = await db.sql<ApiTokenRow[]>`
    select ${apiTokenColumns(db)} from tokens
    where jti = ${jti} and kind = 'api_pat' and expires_at > ${now}`;
  return row;
}

/** A refresh token with the state of whom it would sign in. */
export interface RefreshRow extends TokenRow {
  readonly redeemedAt: Date | null;
  readonly companyId: number;
  readonly isActive: boolean;
}

export async function findRefreshToken(db: DbOrTx, jti: string): Promise<RefreshRow | undefined> {
  const [row] = await db.sql<RefreshRow[]>`
    select t.jti, t.kind, t.user_id as "userId", t.client_id as "clientId", t.family_id as "familyId",
      t.impersonator_id as "impersonatorId", t.scope, t.kid, t.issued_at as "issuedAt",
      t.expires_at as "expiresAt", t.redeemed_at as "redeemedAt", u.company_id as "companyId",
      u.is_active and c.is_active and coalesce(p.is_active, true) as "isActive"
    from tokens t
    join users u on u.id = t.user_id
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    where t.jti = ${jti} and t.kind = 'refresh'`;
  return row;
}

export async function redeemToken(tx: Tx, jti: string, now: Date): Promise<void> {
  await tx.sql`update tokens set redeemed_at = ${now} where jti = ${jti} and redeemed_at is null`;
}

/**
 * Makes the deletion of a client wait for what is issued to it. False if there is no such client any more, or it lacks
 * the grant: a deletion that takes the grants away first is not kept waiting by refreshes that go on and on.
 */
export async function shareClient(
  tx: Tx,
  clientId: string,
  grant = "refresh_token",
): Promise<boolean> {
  const rows = await tx.sql`
    select 1 from oauth_clients where client_id = ${clientId} and ${grant}::text = any(grant_types)
    for key share`;
  return rows.length > 0;
}
