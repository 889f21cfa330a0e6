import { and, eq, exists, isNull } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies, stores, users, userStores } from "../../../db/schema/companies.ts";
import { ssoCodes, ssoIdentities, ssoStates } from "../../../db/schema/sign-in.ts";
import { anyOf, isPartnerOfCompany, isTenantActive, partners } from "../../../db/conditions.ts";
import { normalEmail } from "../../lib/email.ts";
import type { KnownUser, StoredCode, StoredState } from "../decide.ts";

type State = typeof ssoStates.$inferSelect;

export async function insertState(db: DbOrTx, state: Omit<State, "consumedAt">): Promise<void> {
  await db.insert(ssoStates).values(state);
}

export type StateRow = StoredState & Pick<State, "returnTo" | "codeChallenge">;

/**
 * Locks the state of a single sign-on until the commit. If two callbacks present the same state, the second callback
 * finds it used.
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

/** A user with the stored facts that decide about a single sign-on. */
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

/** Links a user to the provider's subject. Returns false if the subject or the user was linked meanwhile. */
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

type Code = typeof ssoCodes.$inferSelect;
const { codeHash } = ssoCodes;

export async function insertCode(tx: Tx, code: Omit<Code, "consumedAt">): Promise<void> {
  await tx.insert(ssoCodes).values(code);
}

export type CodeRow = StoredCode & Pick<Code, "userId" | "connectionId">;

export async function findCode(db: DbOrTx, hash: string): Promise<CodeRow | undefined> {
  const [row] = await db.select().from(ssoCodes).where(eq(codeHash, hash));
  return row;
}

/** Marks the one-time code as used. Of several concurrent transactions, only the one that marked it gets true. */
export async function consumeCode(tx: Tx, hash: string, now: Date): Promise<boolean> {
  const { count } = await tx
    .update(ssoCodes)
    .set({ consumedAt: now })
    .where(and(eq(codeHash, hash), isNull(ssoCodes.consumedAt)));
  return count > 0;
}

/** Returns those of the stores that belong to a company. */
export async function storesOf(
  tx: Tx,
  accountId: number,
  ids: readonly number[],
): Promise<number[]> {
  const isOwn = and(eq(stores.accountId, accountId), anyOf(stores.id, ids));
  const rows = await tx.select({ id: stores.id }).from(stores).where(isOwn);
  return rows.map(({ id }) => id);
}

/** Creates a user without a password. Returns undefined if the email has a user already. */
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
