import {
  and,
  asc,
  count as countOf,
  eq,
  gt,
  inArray,
  isNull,
  ne,
  sql,
  type SQL,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { companies, users } from "../../db/schema/companies.ts";
import { invitations } from "../../db/schema/sign-in.ts";
import { neverNull } from "../../db/statement.ts";
import { type MailBrand, mailBrandOf } from "../lib/branded-mail.ts";
import type { Role } from "../http/principal.ts";
import { emailDomain } from "../lib/email.ts";
import { companyNames, isPartnerOfCompany, isUserActive, partners } from "./access/queries.ts";
import { takesPassword } from "./sign-in/queries.ts";

const { id, email, name, companyId, scopes } = users;
const personColumns = { id, email, name, companyId, scopes };
export type PersonRow = Pick<typeof users.$inferSelect, keyof typeof personColumns>;

export async function findPerson(db: DbOrTx, userId: number): Promise<PersonRow | undefined> {
  const [row] = await db.select(personColumns).from(users).where(eq(users.id, userId));
  return row;
}

/**
 * Finds the email of a user and the names of the user and the companies, which do not count in a new password. Returns
 * undefined if the user does not exist.
 */
export async function findPasswordContext(db: DbOrTx, userId: number) {
  const [row] = await db
    .select({ email, name, ...companyNames })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(id, userId));
  return row && Object.values(row);
}

/**
 * Table alias for the company whose branding is shown to a user: the partner of an account, or any other company
 * itself.
 */
const brands = alias(companies, "brands");
const brandColumns = {
  whiteLabelEnabled: brands.whiteLabelEnabled,
  brandName: brands.brandName,
  primaryColor: brands.primaryColor,
  logoUrl: brands.logoUrl,
};

/** An active user to whom a mail is sent, and the branding of the mail. */
export interface MailRecipient {
  readonly userId: number;
  readonly name: string;
  readonly role: Role;
  /** The name of the user's company. */
  readonly company: string;
  readonly branding: MailBrand;
  /** Whether the user may sign in with a password. */
  readonly takesPassword: boolean;
}

export async function findMailRecipient(
  db: DbOrTx,
  address: string,
): Promise<MailRecipient | undefined> {
  const [row] = await db
    .select({
      userId: id,
      name,
      role: users.role,
      company: companies.name,
      brand: brandColumns,
      takesPassword: takesPassword(db, emailDomain(address)).mapWith(Boolean),
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .innerJoin(brands, eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`))
    .where(and(eq(email, address), isUserActive));
  if (row === undefined) return undefined;
  const { brand, ...recipient } = row;
  return { ...recipient, branding: mailBrandOf(brand) };
}

/** A person who invites another one. */
export type Inviter = Pick<Mailed, "name" | "email">;

/** Finds a person who may be named to the customers of the platform; undefined for an operator. */
export async function findInviter(db: DbOrTx, userId: number): Promise<Inviter | undefined> {
  const [row] = await db
    .select({ name, email })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .where(and(eq(id, userId), ne(companies.type, "platform")));
  return row;
}

/**
 * Returns the id of the partner that a company is or belongs to; null for the platform, and for a company that does not
 * exist.
 */
export async function partnerOfCompany(
  db: DbOrTx,
  wanted: number | null | undefined,
): Promise<number | null> {
  if (wanted === null || wanted === undefined) return null;
  const { id: ownId, type, partnerId } = companies;
  const [company] = await db
    .select({ ownId, type, partnerId })
    .from(companies)
    .where(eq(ownId, wanted));
  if (company === undefined || company.type === "platform") return null;
  return company.partnerId ?? company.ownId;
}

/**
 * Locks the tenant's row, so that concurrent requests that create its OAuth clients or integrations wait for each other
 * and cannot exceed the limit.
 */
export async function holdTenant(tx: Tx, wanted: number): Promise<void> {
  const { id: tenantId } = companies;
  await tx.select({ tenantId }).from(companies).where(eq(tenantId, wanted)).for("no key update");
}

/** An active user, with the branding of the tenant's mails. */
export interface Mailed extends MailBrand {
  readonly email: string;
  readonly name: string;
}

/** Finds an active user as the recipient of a mail. Returns a list with one element, or none. */
export function findMailed(tx: Tx, userId: number): Promise<Mailed[]> {
  return mailedUsers(tx, eq(id, userId));
}

/** Finds the active owners of a partner or an account, except one user. */
export function findMailedOwners(tx: Tx, ofCompany: number, except = 0): Promise<Mailed[]> {
  const isOwner = inArray(users.role, ["partner_owner", "account_owner"]);
  return mailedUsers(tx, and(eq(companyId, ofCompany), isOwner, ne(id, except)));
}

async function mailedUsers(tx: Tx, where: SQL | undefined): Promise<Mailed[]> {
  const rows = await tx
    .select({ email, name, brand: brandColumns })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .innerJoin(brands, eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`))
    .where(and(where, isUserActive))
    .orderBy(asc(id));
  return rows.map(({ brand, ...row }) => ({ ...row, ...mailBrandOf(brand) }));
}

/** Finds the active user with this address who may sign in with a password; no other user receives codes. */
export async function findCodeRecipient(
  db: DbOrTx,
  address: string,
): Promise<MailRecipient | undefined> {
  const recipient = await findMailRecipient(db, address);
  return recipient?.takesPassword === true ? recipient : undefined;
}

/**
 * Locks the user's row exclusively. It must be the first lock of the transaction. A password reset and a transaction
 * that issues a token wait for each other: either the reset sees the new token, or the issuing transaction sees the
 * revocations of the reset. Returns undefined if the user, the company or its partner is not active (contract 4.3). A
 * shared lock would not be enough: shared locks overtake a waiting reset, so a thief who keeps refreshing could delay
 * the reset forever.
 */
export function holdUser(tx: Tx, userId: number): Promise<PersonRow | undefined> {
  return hold(tx, eq(id, userId));
}

/**
 * Locks the user with this email like `holdUser`. If no user has the email, the function executes the same statements.
 */
export function holdUserOf(tx: Tx, address: string): Promise<PersonRow | undefined> {
  return hold(tx, eq(email, address));
}

/**
 * Locks the user's row like `holdUser`, if the password that was just verified has not been changed since. The lock
 * orders a sign-in against a password reset: either the reset sees the token that the sign-in issues, or the sign-in
 * sees the new password hash.
 */
export function holdPassword(
  tx: Tx,
  user: { id: number; passwordHash: string },
): Promise<PersonRow | undefined> {
  return hold(tx, and(eq(id, user.id), eq(users.passwordHash, user.passwordHash)));
}

async function hold(tx: Tx, where: SQL | undefined): Promise<PersonRow | undefined> {
  await tx.select({ id }).from(users).where(where).for("no key update");
  return findActive(tx, where);
}

/**
 * Finds an active user of an active company. A transaction calls it after it has locked the user's row. A suspension
 * changes the company and then locks its users. So either the suspension waits for this transaction, or this query sees
 * the suspension.
 */
async function findActive(tx: Tx, where: SQL | undefined): Promise<PersonRow | undefined> {
  const [row] = await tx
    .select(personColumns)
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(where, isUserActive));
  return row;
}

/**
 * Sets the password hash and locks the user's row. A reset runs this as its first statement, so that it waits for
 * transactions that are issuing tokens. Returns undefined if the user is not active, as `holdUser` does. The caller
 * must then roll back the transaction.
 */
export async function changePassword(
  tx: Tx,
  { userId, hash, now }: { userId: number; hash: string; now: Date },
): Promise<PersonRow | undefined> {
  await tx.update(users).set({ passwordHash: hash, updatedAt: now }).where(eq(users.id, userId));
  return findActive(tx, eq(id, userId));
}

/** Finds an account together with its first active owner, if the account has such an owner. */
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

/** Stores an invitation. It replaces the user's last invitation, which stops working. */
export async function saveInvitation(tx: Tx, one: typeof invitations.$inferInsert): Promise<void> {
  await tx.insert(invitations).values(one).onConflictDoUpdate({ target: userId, set: one });
}

/** Counts the open invitations of a company's active users, except that of one user. */
export async function countOpenInvitations(
  tx: Tx,
  { partnerId, userId: except, now }: { partnerId: number; userId: number; now: Date },
): Promise<number> {
  const [row] = await tx
    .select({ open: countOf() })
    .from(invitations)
    .innerJoin(users, eq(users.id, userId))
    .where(and(eq(companyId, partnerId), users.isActive, ne(userId, except), gt(expiresAt, now)));
  return row?.open ?? 0;
}

/**
 * Finds the invited user by the hash of the invitation code. The user must be active and must not have a password
 * yet.
 */
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
 * Deletes the invitation that is being accepted. Returns false if it was already used, replaced by another invitation,
 * or deleted because a password was set in another way.
 */
export async function consumeInvitation(tx: Tx, hash: string, now: Date): Promise<boolean> {
  const { count } = await tx.delete(invitations).where(and(eq(codeHash, hash), gt(expiresAt, now)));
  return count > 0;
}

export async function deleteInvitationOf(tx: Tx, invited: number): Promise<void> {
  await tx.delete(invitations).where(eq(userId, invited));
}
