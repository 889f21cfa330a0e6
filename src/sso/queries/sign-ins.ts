import { and, eq, exists, isNull, desc, lt } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { companies, stores, users, userStores } from "../../../db/schema/companies.ts";
import { ssoCodes, ssoIdentities, ssoStates, ssoDomains } from "../../../db/schema/sign-in.ts";
import { isPartnerOfCompany, isTenantActive, partners } from "../../auth/access/queries.ts";
import type { Page } from "../../http/list.ts";
import { normalEmail, emailDomain } from "../../lib/email.ts";
import type { KnownUser, StoredCode, StoredState } from "../decide.ts";
import type { IdentityRow } from "../model.ts";

type State = typeof ssoStates.$inferSelect;

export async function insertState(db: DbOrTx, state: Omit<State, "consumedAt">): Promise<void> {
  await db.insert(ssoStates).values(state);
}

export type StateRow = StoredState & Pick<State, "returnTo" | "codeChallenge">;

/**
 * Locks the state of a single sign-on until the commit. If two callbacks present the same state, the second callback
 * waits and then finds the state consumed.
 */
export async function holdState(tx: Tx, stateHash: string): Promise<StateRow | undefined> {
  const [row] = await tx
    .select()
    .from(ssoStates)
    .where(eq(ssoStates.stateHash, stateHash))
    .for("update");
  return row;
}

export async function consumeState(tx: Tx, stateHash: string, now: Date): Promise<void> {
  await tx.update(ssoStates).set({ consumedAt: now }).where(eq(ssoStates.stateHash, stateHash));
}

/** A user with the stored facts that decide whether single sign-on is allowed. */
export interface SsoUser extends KnownUser {
  readonly id: number;
  readonly email: string;
  /** The id of the tenant, which is the partner itself or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
}

const userColumns = {
  id: users.id,
  email: users.email,
  role: users.role,
  companyId: companies.id,
  companyType: companies.type,
  companyPartnerId: companies.partnerId,
  isCompanyActive: isTenantActive,
};

type UserRow = Pick<typeof users.$inferSelect, "id" | "email" | "role" | "companyId"> & {
  readonly companyType: (typeof companies.$inferSelect)["type"];
  readonly companyPartnerId: number | null;
  readonly isCompanyActive: boolean;
};

function ssoUserOf({ role, companyType, companyPartnerId, ...user }: UserRow): SsoUser {
  const partnerId = companyType === "partner" ? user.companyId : companyPartnerId;
  const isSuperAdmin = role === "super_admin" || companyType === "platform";
  return { ...user, partnerId, isSuperAdmin };
}

export async function findLinkedUser(
  db: DbOrTx,
  { issuer, subject }: { issuer: string; subject: string },
): Promise<SsoUser | undefined> {
  const [row] = await db
    .select(userColumns)
    .from(ssoIdentities)
    .innerJoin(users, eq(users.id, ssoIdentities.userId))
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(ssoIdentities.issuer, issuer), eq(ssoIdentities.subject, subject)));
  return row && ssoUserOf(row);
}

export async function findUser(db: DbOrTx, id: number): Promise<SsoUser | undefined> {
  const [row] = await db
    .select(userColumns)
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(users.id, id));
  return row && ssoUserOf(row);
}

export async function findCandidate(
  db: DbOrTx,
  { email, issuer }: { email: string; issuer: string },
): Promise<(SsoUser & { isLinked: boolean }) | undefined> {
  const links = db
    .select({ subject: ssoIdentities.subject })
    .from(ssoIdentities)
    .where(and(eq(ssoIdentities.userId, users.id), eq(ssoIdentities.issuer, issuer)));
  const [row] = await db
    .select({ ...userColumns, isLinked: exists(links).mapWith(Boolean) })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(users.email, email));
  return row && { ...ssoUserOf(row), isLinked: row.isLinked };
}

/**
 * Links a user to a subject of an identity provider. Returns false if the subject or the user is already linked at this
 * issuer.
 */
export async function insertIdentity(
  tx: Tx,
  { now, ...link }: Omit<typeof ssoIdentities.$inferInsert, "linkedAt"> & { now: Date },
): Promise<boolean> {
  const { count } = await tx
    .insert(ssoIdentities)
    .values({ ...link, linkedAt: now })
    .onConflictDoNothing();
  return count > 0;
}

type SsoCodeRow = typeof ssoCodes.$inferSelect;
const { codeHash } = ssoCodes;

export async function insertCode(tx: Tx, code: Omit<SsoCodeRow, "consumedAt">): Promise<void> {
  await tx.insert(ssoCodes).values(code);
}

export type CodeRow = StoredCode & Pick<SsoCodeRow, "userId" | "connectionId">;

export async function findCode(db: DbOrTx, hash: string): Promise<CodeRow | undefined> {
  const [row] = await db.select().from(ssoCodes).where(eq(codeHash, hash));
  return row;
}

/**
 * Consumes the one-time code of a single sign-on. Returns false if the code was already consumed. So of several
 * concurrent transactions only one gets true.
 */
export async function consumeCode(tx: Tx, hash: string, now: Date): Promise<boolean> {
  const { count } = await tx
    .update(ssoCodes)
    .set({ consumedAt: now })
    .where(and(eq(codeHash, hash), isNull(ssoCodes.consumedAt)));
  return count > 0;
}

/** Returns those of the store ids that belong to the account. */
export async function storesOf(
  tx: Tx,
  accountId: number,
  ids: readonly number[],
): Promise<number[]> {
  const isOwn = and(eq(stores.accountId, accountId), anyOf(stores.id, ids));
  const rows = await tx.select({ id: stores.id }).from(stores).where(isOwn);
  return rows.map(({ id }) => id);
}

/** Creates a user without a password. Returns undefined if a user already has the email. */
export async function createUser(
  tx: Tx,
  one: Pick<typeof users.$inferInsert, "companyId" | "email" | "name" | "role" | "createdAt">,
  storeIds: readonly number[],
): Promise<number | undefined> {
  const [row] = await tx
    .insert(users)
    .values({ ...one, normalEmail: normalEmail(one.email), updatedAt: one.createdAt })
    .onConflictDoNothing()
    .returning({ id: users.id });
  const links = storeIds.map((storeId) => ({ userId: row?.id ?? 0, storeId }));
  if (row !== undefined && links.length > 0) await tx.insert(userStores).values(links);
  return row?.id;
}

/** Lists the identities of a user at identity providers, newest first. */
export function identitiesOf(db: DbOrTx, userId: number, page: Page): Promise<IdentityRow[]> {
  const isAfterCursor =
    page.after === undefined ? undefined : lt(ssoIdentities.id, Number(page.after));
  return db
    .select()
    .from(ssoIdentities)
    .where(and(eq(ssoIdentities.userId, userId), isAfterCursor))
    .orderBy(desc(ssoIdentities.id))
    .limit(page.limit + 1);
}

export async function findIdentity(
  db: DbOrTx,
  userId: number,
  id: number,
): Promise<IdentityRow | undefined> {
  const isOne = and(eq(ssoIdentities.id, id), eq(ssoIdentities.userId, userId));
  const [row] = await db.select().from(ssoIdentities).where(isOne);
  return row;
}

/** Deletes an identity. Returns false if a concurrent request has already deleted it. */
export async function deleteIdentity(tx: Tx, id: number): Promise<boolean> {
  return (await tx.delete(ssoIdentities).where(eq(ssoIdentities.id, id))).count > 0;
}

/**
 * Returns whether the SSO connection has the domain of an email. If so, the next sign-in with this email can link the
 * user. The caller must have locked the SSO connection.
 */
export async function canLink(tx: Tx, connectionId: string, email: string): Promise<boolean> {
  const domain = emailDomain(normalEmail(email));
  const isOwn = and(eq(ssoDomains.connectionId, connectionId), eq(ssoDomains.domain, domain));
  return (await tx.$count(ssoDomains, isOwn)) > 0;
}
