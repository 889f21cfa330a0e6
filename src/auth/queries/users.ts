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

import type { DbOrTx, Tx } from "../../../db/client.ts";
import {
  companyNames,
  isPartnerOfCompany,
  isUserActive,
  partners,
} from "../../../db/conditions.ts";
import { companies, users } from "../../../db/schema/companies.ts";
import { invitations } from "../../../db/schema/sign-in.ts";
import { neverNull } from "../../../db/statement.ts";
import type { MailBrand } from "../../lib/branded-mail.ts";
import { emailDomain } from "../../lib/email.ts";
import { takesPassword } from "./sign-in.ts";

const { id, email, name, companyId } = users;
const person = { id, email, name, companyId };
export type PersonRow = Pick<typeof users.$inferSelect, keyof typeof person>;

export async function findPerson(db: DbOrTx, userId: number): Promise<PersonRow | undefined> {
  const [row] = await db.select(person).from(users).where(eq(users.id, userId));
  return row;
}

/** Finds the names and the email that a new password of the user must not consist of; undefined for no user. */
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
 * Table alias for the company that gives an account its name and branding: the account's partner. Other companies
 * show their own branding.
 */
const brands = alias(companies, "brands");

/** An active user to whom a mail is sent, and the brand name in the mail. */
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
  const [row] = await db
    .select({
      userId: id,
      isWhite: brands.whiteLabelEnabled,
      brandName: brands.brandName,
      takesPassword: takesPassword(db, emailDomain(address)).mapWith(Boolean),
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .innerJoin(brands, eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`))
    .where(and(eq(email, address), isUserActive));
  if (row === undefined) return undefined;
  const { userId, takesPassword: isTaken } = row;
  return { userId, brand: row.isWhite ? row.brandName : null, takesPassword: isTaken };
}

/** Finds the partner that a company is or belongs to; null for the platform, and for a company that does not exist. */
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

/** An active user with the appearance of the tenant's mails. */
export interface Mailed extends MailBrand {
  readonly email: string;
  readonly name: string;
}

/** Finds an active user for a mail, as a list of one or none. */
export function findMailed(tx: Tx, userId: number): Promise<Mailed[]> {
  return mailedWhere(tx, eq(id, userId));
}

/** Finds the active owners of a partner or an account, except one user. */
export function findMailedOwners(tx: Tx, ofCompany: number, except = 0): Promise<Mailed[]> {
  const isOwner = inArray(users.role, ["partner_owner", "account_owner"]);
  return mailedWhere(tx, and(eq(companyId, ofCompany), isOwner, ne(id, except)));
}

async function mailedWhere(tx: Tx, where: SQL | undefined): Promise<Mailed[]> {
  const rows = await tx
    .select({
      email,
      name,
      isWhite: brands.whiteLabelEnabled,
      brandName: brands.brandName,
      primaryColor: brands.primaryColor,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .innerJoin(brands, eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`))
    .where(and(where, isUserActive))
    .orderBy(asc(id));
  return rows.map(({ isWhite, brandName, ...row }) => ({
    ...row,
    brand: isWhite ? brandName : null,
  }));
}

/** Finds the active user with this address who may sign in with a password; other users get no codes. */
export async function findCodeRecipient(
  db: DbOrTx,
  address: string,
): Promise<MailRecipient | undefined> {
  const recipient = await findMailRecipient(db, address);
  return recipient?.takesPassword === true ? recipient : undefined;
}

/**
 * Locks the user's row exclusively. It must be the first lock of the transaction. A transaction that issues a token for the
 * user and a password reset wait for each other: either the reset sees the new token, or the issuing transaction sees the
 * revocations of the reset. Returns undefined if the user, the company or its partner is not active (contract 4.3).
 * A shared lock would not be enough: shared locks overtake a waiting reset, so a thief who keeps refreshing could
 * delay the reset forever.
 */
export function holdUser(tx: Tx, userId: number): Promise<PersonRow | undefined> {
  return hold(tx, eq(id, userId));
}

/** Locks the user with this email, as `holdUser` does by id; the work is the same if no user has the email. */
export function holdUserOf(tx: Tx, address: string): Promise<PersonRow | undefined> {
  return hold(tx, eq(email, address));
}

/**
 * Locks the user's row as `holdUser` does, if the password that was just verified is still the user's. The lock orders a
 * sign-in against a password reset: either the reset sees the token that the sign-in issues, or the sign-in sees the new
 * password hash.
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
 * Finds an active user of an active company. A transaction reads this after it has locked the user's row: a suspension
 * changes the company and then locks its users, so that it either waits for this transaction or is seen by this query.
 */
async function findActive(tx: Tx, where: SQL | undefined): Promise<PersonRow | undefined> {
  const [row] = await tx
    .select(person)
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(where, isUserActive));
  return row;
}

/**
 * Sets the password hash and locks the user's row. A reset runs this as its first statement, so that it waits for
 * tokens that are being issued. Returns undefined if the user is not active, as `holdUser` does: then the caller must undo
 * the transaction.
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

/** Stores an invitation in place of the user's last one, which stops working. */
export async function saveInvitation(tx: Tx, one: typeof invitations.$inferInsert): Promise<void> {
  await tx.insert(invitations).values(one).onConflictDoUpdate({ target: userId, set: one });
}

/** Counts the invitations of a company's active users that can still be accepted, without that of one user. */
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
 * Deletes the invitation that is being accepted. Returns false if it was used, replaced, or ended by a password that
 * was set in another way.
 */
export async function consumeInvitation(tx: Tx, hash: string, now: Date): Promise<boolean> {
  const { count } = await tx.delete(invitations).where(and(eq(codeHash, hash), gt(expiresAt, now)));
  return count > 0;
}

export async function deleteInvitationOf(tx: Tx, invited: number): Promise<void> {
  await tx.delete(invitations).where(eq(userId, invited));
}
