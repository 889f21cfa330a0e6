import type { DbOrTx, Tx } from "../../../db/client.ts";
import type { Role } from "../model.ts";

/** Who might sign in with an email. */
export interface SignInUser {
  readonly id: number;
  readonly companyId: number;
  /** The tenant: the partner itself, or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /** Null for users who sign in only through an identity provider. */
  readonly passwordHash: string | null;
  /** The user, the company and the partner above it. */
  readonly isActive: boolean;
}

export async function findSignInUser(db: DbOrTx, email: string): Promise<SignInUser | undefined> {
  const [row] = await db.sql<SignInUser[]>`
    select u.id, u.company_id as "companyId", u.password_hash as "passwordHash",
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
 * password reset: either the reset sees the token that the sign-in issues, or the sign-in sees the new hash.
 */
export async function holdPassword(
  tx: Tx,
  user: { id: number; passwordHash: string },
): Promise<boolean> {
  const rows = await tx.sql`
    select 1 from users where id = ${user.id} and password_hash = ${user.passwordHash} and is_active
    for share`;
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
