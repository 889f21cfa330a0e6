// Contains one raw statement (db/statement.ts): the query of the login object, which is measured as hot.

import {
  and,
  asc,
  eq,
  gt,
  isNull,
  not,
  notExists,
  sql,
  type SQL,
  type SQLWrapper,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies, plans, stores, users } from "../../../db/schema/companies.ts";
import { invitations, ssoConnections, ssoDomains } from "../../../db/schema/sign-in.ts";
import { prepared } from "../../../db/session.ts";
import {
  list,
  neverNull,
  nullable,
  statement,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";
import { isPartnerOfCompany, isUserActive, partners } from "../../../db/conditions.ts";
import { emailDomain } from "../email.ts";

/** Returns the condition that the company's identity provider lets the user sign in with a password. */
function takesPassword(db: Pick<DbOrTx, "select">, domain: string | SQLWrapper): SQL {
  const refusing = db
    .select({ domain: ssoDomains.domain })
    .from(ssoDomains)
    .innerJoin(ssoConnections, eq(ssoConnections.id, ssoDomains.connectionId))
    .where(
      and(
        eq(ssoDomains.domain, domain),
        eq(ssoConnections.companyId, users.companyId),
        ssoConnections.isActive,
        not(ssoConnections.passwordLogin),
      ),
    );
  return notExists(refusing);
}

const ofEmail = { email: users.email, domain: ssoDomains.domain };

const signInUsers = prepared(ofEmail, (db, { email, domain }) =>
  db
    .select({
      id: users.id,
      companyId: users.companyId,
      companyType: companies.type,
      companyPartnerId: companies.partnerId,
      passwordHash: users.passwordHash,
      takesPassword: takesPassword(db, domain).mapWith(Boolean),
      isActive: isUserActive,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(users.email, email)),
);

/** The user with an email, and the facts that decide whether a sign-in is possible. */
export interface SignInUser {
  readonly id: number;
  readonly companyId: number;
  /** The tenant: the partner itself, or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /**
   * Null for users who can sign in only through an identity provider: they have no password, or their domain allows
   * none.
   */
  readonly passwordHash: string | null;
  /** Whether the user, the company and the company's partner are all active. */
  readonly isActive: boolean;
}

export async function findSignInUser(db: DbOrTx, email: string): Promise<SignInUser | undefined> {
  const [row] = await signInUsers(db, { email, domain: emailDomain(email) });
  if (row === undefined) return undefined;
  const { id, companyId, isActive } = row;
  const partnerId = row.companyType === "partner" ? companyId : row.companyPartnerId;
  const passwordHash = row.takesPassword ? row.passwordHash : null;
  return { id, companyId, partnerId, passwordHash, isActive };
}

const { id, email, name, companyId } = users;
const person = { id, email, name, companyId };
export type PersonRow = Pick<typeof users.$inferSelect, keyof typeof person>;

const personsWithPassword = prepared({ id, passwordHash: users.passwordHash }, (db, given) =>
  db
    .select({ id })
    .from(users)
    .where(and(eq(id, given.id), eq(users.passwordHash, given.passwordHash), users.isActive))
    .for("no key update"),
);

/**
 * Locks the user's row and returns whether the password that was just verified is still valid. The lock orders a
 * sign-in against a password reset, as `holdUser` does: either the reset sees the token that the sign-in issues, or
 * the sign-in sees the new hash.
 */
export async function holdPassword(
  tx: Tx,
  user: { id: number; passwordHash: string },
): Promise<boolean> {
  const rows = await personsWithPassword(tx, user);
  return rows.length > 0;
}

/** Replaces a hash by another hash of the same password, unless the password was changed meanwhile. */
export async function replaceHash(
  db: DbOrTx,
  { userId, from, to }: { userId: number; from: string; to: string },
): Promise<void> {
  await db
    .update(users)
    .set({ passwordHash: to })
    .where(and(eq(users.id, userId), eq(users.passwordHash, from)));
}

const context = statement({
  name: "findContext",
  // Written whole, because Drizzle's builder has no CASE expression.
  params: { userId: id },
  columns: {
    id,
    email,
    name,
    role: users.role,
    companyId: companies.id,
    companyType: companies.type,
    companyName: companies.name,
    partnerId: companies.partnerId,
    primaryColor: companies.primaryColor,
    logoUrl: companies.logoUrl,
    whiteLabelEnabled: companies.whiteLabelEnabled,
    brandName: companies.brandName,
    whiteLabelDomain: companies.whiteLabelDomain,
    planId: nullable(plans.id),
    planName: nullable(plans.name),
    planFeatures: nullable(plans.features),
    storeIds: list(stores.id),
    tenantStores: value("bigint"),
  },
  text: ({ userId }) => sql`
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
    -- An account shows the white label of its partner.
    join companies b on b.id = coalesce(c.partner_id, c.id)
    left join plans on plans.id = c.plan_id
    where u.id = ${userId}`,
});

/** The columns from which the login object is built. */
export type ContextRow = ValuesOf<typeof context.columns>;

export async function findContext(db: DbOrTx, userId: number): Promise<ContextRow | undefined> {
  const [row] = await db.run(context, { userId });
  return row;
}

export async function findPerson(db: DbOrTx, userId: number): Promise<PersonRow | undefined> {
  const [row] = await db.select(person).from(users).where(eq(users.id, userId));
  return row;
}

/** The company that gives an account its name and looks: its partner. Other companies show their own. */
const brands = alias(companies, "brands");

const mailRecipients = prepared(ofEmail, (db, given) =>
  db
    .select({
      userId: id,
      isWhite: brands.whiteLabelEnabled,
      brandName: brands.brandName,
      takesPassword: takesPassword(db, given.domain).mapWith(Boolean),
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .innerJoin(brands, eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`))
    .where(and(eq(email, given.email), isUserActive)),
);

/** An active user that receives a mail, and the brand that the mail uses. */
export interface MailRecipient {
  readonly userId: number;
  /** The tenant's own brand name if white label is on, otherwise null. */
  readonly brand: string | null;
  /** Whether the user may sign in with a password. */
  readonly takesPassword: boolean;
}

export async function findMailRecipient(
  db: DbOrTx,
  address: string,
): Promise<MailRecipient | undefined> {
  const [row] = await mailRecipients(db, { email: address, domain: emailDomain(address) });
  if (row === undefined) return undefined;
  const { userId, takesPassword: isTaken } = row;
  return { userId, brand: row.isWhite ? row.brandName : null, takesPassword: isTaken };
}

/** Finds the active user with this address, but only one that may sign in with a password. */
export async function findCodeRecipient(
  db: DbOrTx,
  address: string,
): Promise<MailRecipient | undefined> {
  const recipient = await findMailRecipient(db, address);
  return recipient?.takesPassword === true ? recipient : undefined;
}

const activeUsers = prepared({ id }, (db, given) =>
  db
    .select({ id })
    .from(users)
    .where(and(eq(id, given.id), users.isActive))
    .for("no key update"),
);

/**
 * Locks the user's row exclusively. A transaction that issues a token for the user and a password reset wait for each
 * other: either the reset sees the new token, or the issuer sees the revocations of the reset. Returns false if the
 * user is not active.
 *
 * A shared lock would not do: shared locks overtake a waiting reset, so a thief who keeps refreshing could delay the
 * reset forever.
 */
export async function holdUser(tx: Tx, userId: number): Promise<boolean> {
  const rows = await activeUsers(tx, { id: userId });
  return rows.length > 0;
}

/** Does what `holdUser` does, by email. Returns undefined, after the same work, if no active user has the email. */
export async function holdUserOf(tx: Tx, address: string): Promise<number | undefined> {
  const [row] = await tx
    .select({ id })
    .from(users)
    .where(and(eq(email, address), users.isActive))
    .for("no key update");
  return row?.id;
}

/**
 * Sets the password hash and locks the user's row. It is the first statement of a reset, so that it waits for tokens
 * that are being issued. Returns undefined if the user is not active.
 */
export async function changePassword(
  tx: Tx,
  { userId, hash, now }: { userId: number; hash: string; now: Date },
): Promise<PersonRow | undefined> {
  const [row] = await tx
    .update(users)
    .set({ passwordHash: hash, updatedAt: now })
    .where(and(eq(users.id, userId), users.isActive))
    .returning(person);
  return row;
}

/** Finds an account with its first active owner, if it has one. */
export async function findAccountWithOwner(db: DbOrTx, accountId: number) {
  const { partnerId, isActive } = companies;
  const isOwner = and(eq(companyId, companies.id), eq(users.role, "account_owner"), users.isActive);
  const [row] = await db
    .select({ id: companies.id, partnerId, isActive, ownerId: id })
    .from(companies)
    .leftJoin(users, isOwner)
    .where(and(eq(companies.id, accountId), eq(companies.type, "account")))
    .orderBy(asc(id))
    .limit(1);
  return row && { ...row, partnerId: neverNull(row.partnerId) };
}

const { userId, codeHash, expiresAt } = invitations;

/** Replaces the user's last invitation, which stops working. */
export async function saveInvitation(tx: Tx, one: typeof invitations.$inferInsert): Promise<void> {
  await tx.insert(invitations).values(one).onConflictDoUpdate({ target: userId, set: one });
}

/** Finds the invited user by the hash of the code. The user must be active and must not have a password yet. */
export async function findInvited(
  db: DbOrTx,
  hash: string,
  now: Date,
): Promise<number | undefined> {
  const [row] = await db
    .select({ userId })
    .from(invitations)
    .innerJoin(users, eq(users.id, userId))
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(codeHash, hash), gt(expiresAt, now), isNull(users.passwordHash), isUserActive));
  return row?.userId;
}

/**
 * Deletes the invitation. Returns false if it was used, replaced, or ended by a password that was set in another way.
 */
export async function consumeInvitation(tx: Tx, hash: string, now: Date): Promise<boolean> {
  const { count } = await tx.delete(invitations).where(and(eq(codeHash, hash), gt(expiresAt, now)));
  return count > 0;
}

export async function deleteInvitationOf(tx: Tx, invited: number): Promise<void> {
  await tx.delete(invitations).where(eq(userId, invited));
}
