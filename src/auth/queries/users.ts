import type { DbOrTx, Tx } from "../../../db/client.ts";
import { emailDomain } from "../email.ts";
import type { Role } from "../../http/principal.ts";

/** Who might sign in with an email. */
export interface SignInUser {
  readonly id: number;
  readonly companyId: number;
  /** The tenant: the partner itself, or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /** Null for users who sign in only through an identity provider: they have none, or their domain takes none. */
  readonly passwordHash: string | null;
  /** The user, the company and the partner above it. */
  readonly isActive: boolean;
}

/** Whether the user `u` may sign in with a password, as far as the company's identity provider has a say. */
const takesPassword = (db: DbOrTx, email: string) => db.sql`
  not exists (select 1 from sso_domains d join sso_connections s on s.id = d.connection_id
    where d.domain = ${emailDomain(email)} and s.company_id = u.company_id and s.is_active and not s.password_login)`;

export async function findSignInUser(db: DbOrTx, email: string): Promise<SignInUser | undefined> {
  const [row] = await db.sql<SignInUser[]>`
    select u.id, u.company_id as "companyId",
      case when ${takesPassword(db, email)} then u.password_hash end as "passwordHash",
      case when c.type = 'partner' then c.id else c.partner_id end as "partnerId",
      u.is_active and c.is_active and coalesce(p.is_active, true) as "isActive"
    from users u
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    where u.email = ${email}`;
  return row;
}

/**
 * Whether the password that was just verified is still the user's. The lock on the row orders a sign-in against a
 * password reset, as `holdUser` does: either the reset sees the token that the sign-in issues, or the sign-in sees the
 * new hash.
 */
export async function holdPassword(
  tx: Tx,
  user: { id: number; passwordHash: string },
): Promise<boolean> {
  const rows = await tx.sql`
    select 1 from users where id = ${user.id} and password_hash = ${user.passwordHash} and is_active
    for no key update`;
  return rows.length > 0;
}

/** Changes the form of a hash, unless the password has changed meanwhile. */
export async function replaceHash(
  db: DbOrTx,
  change: { userId: number; from: string; to: string },
): Promise<void> {
  await db.sql`
    update users set password_hash = ${change.to}
    where id = ${change.userId} and password_hash = ${change.from}`;
}

/** Everything that the login object shows of a user. */
export interface ContextRow {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly companyId: number;
  readonly companyType: "platform" | "partner" | "account";
  readonly companyName: string;
  readonly partnerId: number | null;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
  readonly whiteLabelEnabled: boolean;
  readonly brandName: string | null;
  readonly whiteLabelDomain: string | null;
  readonly planId: number | null;
  readonly planName: string | null;
  readonly planFeatures: string[] | null;
  readonly storeIds: number[];
  readonly tenantStores: number;
}

export async function findContext(db: DbOrTx, userId: number): Promise<ContextRow | undefined> {
  const [row] = await db.sql<ContextRow[]>`
    select u.id, u.email, u.name, u.role, c.id as "companyId", c.type as "companyType", c.name as "companyName",
      c.partner_id as "partnerId", c.primary_color as "primaryColor", c.logo_url as "logoUrl",
      b.white_label_enabled as "whiteLabelEnabled", b.brand_name as "brandName",
      b.white_label_domain as "whiteLabelDomain",
      plans.id as "planId", plans.name as "planName", plans.features as "planFeatures",
      case when u.role = 'location_user'
          then array(select store_id from user_stores where user_id = u.id order by store_id)
        else array(select id from stores where account_id = c.id order by id) end as "storeIds",
      case c.type
        when 'partner' then (select count(*) from companies a join stores s on s.account_id = a.id
          where a.partner_id = c.id)
        when 'platform' then (select count(*) from stores)
        else 0 end as "tenantStores"
    from users u
    join companies c on c.id = u.company_id
    -- White label is what a partner shows to its accounts.
    join companies b on b.id = coalesce(c.partner_id, c.id)
    left join plans on plans.id = c.plan_id
    where u.id = ${userId}`;
  return row;
}

export interface PersonRow {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly companyId: number;
}

export async function findPerson(db: DbOrTx, userId: number): Promise<PersonRow | undefined> {
  const [row] = await db.sql<PersonRow[]>`
    select id, email, name, company_id as "companyId" from users where id = ${userId}`;
  return row;
}

/** Who is sent a code for a new password, and in whose name. */
export interface CodeRecipient {
  readonly userId: number;
  /** The tenant's own name, where white label is on. */
  readonly brand: string | null;
}

export async function findCodeRecipient(
  db: DbOrTx,
  email: string,
): Promise<CodeRecipient | undefined> {
  const [row] = await db.sql<CodeRecipient[]>`
    select u.id as "userId", case when b.white_label_enabled then b.brand_name end as brand
    from users u
    join companies c on c.id = u.company_id
    left join companies p on p.id = c.partner_id
    join companies b on b.id = coalesce(c.partner_id, c.id)
    where u.email = ${email} and u.is_active and c.is_active and coalesce(p.is_active, true)
      and ${takesPassword(db, email)}`;
  return row;
}

/**
 * Makes whoever issues a token for the user wait for a password reset, and the reverse: afterwards either the reset
 * has seen the token, or the issuer sees what the reset has revoked. One holder at a time: locks that are shared let
 * each other in past a reset that waits, and a thief who keeps refreshing would keep the reset from ever happening.
 * False if the user is not active.
 */
export async function holdUser(tx: Tx, userId: number): Promise<boolean> {
  const rows = await tx.sql`
    select 1 from users where id = ${userId} and is_active for no key update`;
  return rows.length > 0;
}

/** `holdUser` by email; undefined, for the same work, if nobody active has it. */
export async function holdUserOf(tx: Tx, email: string): Promise<number | undefined> {
  const [row] = await tx.sql<{ id: number }[]>`
    select id from users where email = ${email} and is_active for no key update`;
  return row?.id;
}

/** The first statement of a reset: it waits for tokens that are being issued. Undefined if the user is not active. */
export async function changePassword(
  tx: Tx,
  change: { userId: number; hash: string; now: Date },
): Promise<PersonRow | undefined> {
  const [row] = await tx.sql<PersonRow[]>`
    update users set password_hash = ${change.hash}, updated_at = ${change.now}
    where id = ${change.userId} and is_active
    returning id, email, name, company_id as "companyId"`;
  return row;
}

/** The account of an id, with its first active owner if it has one. */
export interface AccountWithOwner {
  readonly id: number;
  readonly partnerId: number;
  readonly isActive: boolean;
  readonly ownerId: number | null;
}

export async function findAccountWithOwner(
  db: DbOrTx,
  accountId: number,
): Promise<AccountWithOwner | undefined> {
  const [row] = await db.sql<AccountWithOwner[]>`
    select c.id, c.partner_id as "partnerId", c.is_active as "isActive",
      (select u.id from users u where u.company_id = c.id and u.role = 'account_owner' and u.is_active
        order by u.id limit 1) as "ownerId"
    from companies c where c.id = ${accountId} and c.type = 'account'`;
  return row;
}
