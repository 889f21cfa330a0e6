import { and, desc, eq, exists, gte, isNotNull, ne, sql } from "drizzle-orm";

import { arrayOf, idBefore, nthId, someHas } from "../../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { onlyRow } from "../../../db/statement.ts";
import { companies, stores, users, userStores } from "../../../db/schema/companies.ts";
import { invitations, signInLocks, ssoIdentities } from "../../../db/schema/sign-in.ts";
import { isMailbox } from "../../auth/passwords/email-queries.ts";
import { normalEmail } from "../../lib/email.ts";
import type { Role } from "../../http/principal.ts";
import type { Found, Page } from "../../http/list.ts";
import type { Employer, User, UserQuery } from "../model.ts";
import { companyNames, isPartnerOfCompany, isPerson, partners } from "../../auth/access/queries.ts";
import { changedSince, type Changes, isWanted, type Wanted } from "./companies.ts";

/** Reads the identities of the user of the surrounding statement at identity providers. */
const identitiesOfUser = (db: DbOrTx) =>
  db
    .select({ userId: ssoIdentities.userId })
    .from(ssoIdentities)
    .where(eq(ssoIdentities.userId, users.id));

/** Condition for users who can sign in: by a password, or by an identity at an identity provider. */
const canSignIn = (db: DbOrTx) =>
  sql`(${users.passwordHash} is not null or ${exists(identitiesOfUser(db))})`;

/** SQL expression for the digest of a user's email, equal to that of `emailDigest` in src/auth/email.ts. */
const digestOfEmail = sql`encode(sha256(convert_to(coalesce(${users.normalEmail}, ${users.email}), 'UTF8')), 'hex')`;

function selectUsers(db: DbOrTx) {
  const ownStores = db
    .select({ id: userStores.storeId })
    .from(userStores)
    .where(eq(userStores.userId, users.id))
    .orderBy(userStores.storeId);
  return db
    .select({
      id: users.id,
      email: users.email,
      name: users.name,
      role: users.role,
      companyId: users.companyId,
      company: { id: companies.id, type: companies.type, name: companies.name },
      isActive: users.isActive,
      hasPassword: isNotNull(users.passwordHash).mapWith(Boolean),
      isInvited: sql`${users.isActive} and not ${canSignIn(db)}`.mapWith(Boolean),
      storeIds: arrayOf(ownStores),
      lockedUntil: signInLocks.lockedUntil,
      externalId: users.externalId,
      createdAt: users.createdAt,
      updatedAt: users.updatedAt,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(signInLocks, eq(signInLocks.emailDigest, digestOfEmail));
}

/**
 * The highest number of users that one page of a text search reads. The search scans users one by one, because no
 * index finds parts of names.
 */
const READ_FOR_TEXT = 20_000;

/**
 * Lists users, newest first. A text search reads at most `READ_FOR_TEXT` users; `end` is then the key of the last
 * user that it read.
 */
export async function usersOf(
  db: DbOrTx,
  query: Omit<UserQuery, "limit" | "cursor">,
  page: Page,
): Promise<Found<User>> {
  const {
    company_id: companyId,
    role,
    email,
    is_active: isActive,
    updated_since: since,
    q,
  } = query;
  const walked = [
    isPerson,
    companyId === undefined ? undefined : eq(users.companyId, companyId),
    idBefore(users.id, page.after),
  ];
  const end =
    q === undefined
      ? undefined
      : await nthId(db, users, { nth: READ_FOR_TEXT, where: and(...walked) });
  const conditions = [
    ...walked,
    end === undefined ? undefined : gte(users.id, end),
    q === undefined ? undefined : someHas([users.name, users.email], q),
    role === undefined ? undefined : eq(users.role, role),
    email === undefined ? undefined : isMailbox(email),
    isActive === undefined ? undefined : eq(users.isActive, isActive === "true"),
    changedSince(users.updatedAt, since),
  ];
  const rows = await selectUsers(db)
    .where(and(...conditions))
    .orderBy(desc(users.id))
    .limit(page.limit + 1);
  return { rows, end: end?.toString() };
}

/** Reads a user, by its id or by the platform's external id. */
export async function userBy(db: DbOrTx, by: Wanted): Promise<User | undefined> {
  const [row] = await selectUsers(db).where(and(isWanted(users, by), isPerson));
  return row;
}

export const userById = (db: DbOrTx, id: number) => userBy(db, { id });

export async function employerOf(db: DbOrTx, companyId: number): Promise<Employer | undefined> {
  const ownStores = db
    .select({ id: stores.id })
    .from(stores)
    .where(eq(stores.accountId, companies.id));
  const [row] = await db
    .select({ type: companies.type, storeIds: arrayOf(ownStores), names: companyNames })
    .from(companies)
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(companies.id, companyId));
  return row && { ...row, names: Object.values(row.names) };
}

type NewUserRow = Omit<
  typeof users.$inferSelect,
  "id" | "normalEmail" | "sharesEmail" | "scopes" | "isActive" | "updatedAt"
> &
  Pick<User, "storeIds"> & {
    /** An id from `ownId`. If it is absent, the user gets the next id of the table. */
    readonly id?: number;
    /** The scopes of an integration; absent for a person. */
    readonly scopes?: string[];
  };

export async function insertUser(tx: Tx, { storeIds, ...one }: NewUserRow): Promise<number> {
  const rows = await tx
    .insert(users)
    .overridingSystemValue()
    .values({ ...one, normalEmail: normalEmail(one.email), updatedAt: one.createdAt })
    .returning({ id: users.id });
  const { id: userId } = onlyRow(rows);
  await insertStoresOf(tx, userId, storeIds);
  return userId;
}

async function insertStoresOf(tx: Tx, userId: number, storeIds: readonly number[]): Promise<void> {
  const links = storeIds.map((storeId) => ({ userId, storeId }));
  if (links.length > 0) await tx.insert(userStores).values(links);
}

/** Changes columns of a user and, if `storeIds` is given, replaces the stores that the user has access to. */
export async function updateUser(
  tx: Tx,
  id: number,
  changes: Changes<typeof users.$inferInsert>,
  storeIds: readonly number[] | undefined,
): Promise<void> {
  const isOne = eq(users.id, id);
  await tx.update(users).set(changes).where(isOne);
  // The normal form is stored by a separate statement. If one update changes the email but not the normal form, a
  // trigger clears the normal form, because it may be that of the old email. This would also happen if both emails have
  // the same normal form.
  if (changes.email !== undefined)
    await tx
      .update(users)
      .set({ normalEmail: normalEmail(changes.email) })
      .where(isOne);
  if (storeIds === undefined) return;
  await tx.delete(userStores).where(eq(userStores.userId, id));
  await insertStoresOf(tx, id, storeIds);
}

/** Deletes the open invitation of a user. Returns false if there is none. */
export async function dropInvitation(tx: Tx, id: number): Promise<boolean> {
  return (await tx.delete(invitations).where(eq(invitations.userId, id))).count > 0;
}

/**
 * Deletes a user with the user's invitation and access to stores. Throws an error if a row of another table refers to
 * the user.
 */
export async function deleteUser(tx: Tx, id: number): Promise<void> {
  await tx.delete(userStores).where(eq(userStores.userId, id));
  await dropInvitation(tx, id);
  await tx.delete(users).where(eq(users.id, id));
}

/**
 * Locks the active users of a company who have a role, and returns whether the user is the last of them. Another user
 * counts only if that user can sign in: by a password, or by an identity at an identity provider. All callers lock the
 * users in the order of their ids. So if two users deactivate each other at the same time, there is no deadlock, and
 * the second transaction finds that its user is the last one.
 */
export async function isLastOfRole(
  tx: Tx,
  { id, role, companyId }: Pick<User, "id" | "role" | "companyId">,
): Promise<boolean> {
  const isOfRole = and(eq(users.companyId, companyId), eq(users.role, role), users.isActive);
  await tx
    .select({ id: users.id })
    .from(users)
    .where(isOfRole)
    .orderBy(users.id)
    .for("no key update");
  // The identities are read by a separate statement after the locks. The statement that waits for the locks would still
  // see identities that were deleted while it waited.
  const may = { id: users.id, canSignIn: canSignIn(tx).mapWith(Boolean) };
  const rows = await tx.select(may).from(users).where(isOfRole);
  const isActive = rows.some((one) => one.id === id);
  return isActive && !rows.some((one) => one.id !== id && one.canSignIn);
}

/**
 * Locks a user, active or not, so that no token is issued to the user before the commit. Returns undefined if the user
 * does not exist.
 */
export async function holdUser(
  tx: Tx,
  id: number,
): Promise<Pick<User, "id" | "email"> | undefined> {
  const [row] = await tx
    .select({ id: users.id, email: users.email })
    .from(users)
    .where(eq(users.id, id))
    .for("no key update");
  return row;
}

/**
 * Activates or deactivates a user. The statement waits for transactions that issue tokens to the user. Returns false
 * if the user is already in that state.
 */
export async function setUserActive(
  tx: Tx,
  id: number,
  isActive: boolean,
  now: Date,
): Promise<boolean> {
  const { count } = await tx
    .update(users)
    .set({ isActive, updatedAt: now })
    .where(and(eq(users.id, id), ne(users.isActive, isActive)));
  return count > 0;
}

/** Changes the role of a user. Returns false if the user already has that role. */
export async function setUserRole(
  tx: Tx,
  id: number,
  { role, now }: { readonly role: Role; readonly now: Date },
): Promise<boolean> {
  const { count } = await tx
    .update(users)
    .set({ role, updatedAt: now })
    .where(and(eq(users.id, id), ne(users.role, role)));
  return count > 0;
}
