import { and, desc, eq, lte, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { idBefore } from "../../../db/conditions.ts";
import { plans as planTable, stores } from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { lockTable } from "../../../db/locks.ts";
import { onlyRow } from "../../../db/statement.ts";
import type { Page } from "../../http/list.ts";
import type {
  Plan,
  Provider,
  Store,
  StoreFilter,
  StoreReviewSite,
  StoreReviewSiteQuery,
  StoredProvider,
} from "../store-model.ts";
import { changedSince, type Changes, isWanted, type Wanted } from "./companies.ts";

/** Lists plans, newest first. */
export function plansOf(db: DbOrTx, page: Page): Promise<Plan[]> {
  const { id, name, features } = planTable;
  return db
    .select({ id, name, features })
    .from(planTable)
    .where(idBefore(id, page.after))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function hasPlan(
  db: DbOrTx,
  wanted: Pick<Plan, "id"> | Pick<Plan, "name">,
): Promise<boolean> {
  const is = "id" in wanted ? eq(planTable.id, wanted.id) : eq(planTable.name, wanted.name);
  return (await db.$count(planTable, is)) > 0;
}

/** Inserts a plan. `plan.id` is an id from `ownId`; if it is absent, the plan gets the next id of the table. */
export async function insertPlan(
  tx: Tx,
  plan: Omit<Plan, "id"> & Partial<Pick<Plan, "id">>,
): Promise<number> {
  const insert = tx.insert(planTable).overridingSystemValue();
  return onlyRow(await insert.values(plan).returning({ id: planTable.id })).id;
}

export async function planById(db: DbOrTx, wanted: number): Promise<Plan | undefined> {
  const { id, name, features } = planTable;
  const [row] = await db.select({ id, name, features }).from(planTable).where(eq(id, wanted));
  return row;
}

export async function updatePlan(
  tx: Tx,
  id: number,
  changes: Changes<Omit<Plan, "id">>,
): Promise<void> {
  await tx.update(planTable).set(changes).where(eq(planTable.id, id));
}

/** Deletes a plan. Throws an error if an account has the plan. */
export async function deletePlan(tx: Tx, id: number): Promise<void> {
  await tx.delete(planTable).where(eq(planTable.id, id));
}

const storeColumns = {
  id: stores.id,
  name: stores.name,
  accountId: stores.accountId,
  partnerId: stores.partnerId,
  externalId: stores.externalId,
  updatedAt: stores.updatedAt,
};

/** Lists stores, newest first. */
export function storesOf(
  db: DbOrTx,
  { account_id: accountId, partner_id: partnerId, updated_since: since }: StoreFilter,
  page: Page,
): Promise<Store[]> {
  const ofAccount = accountId === undefined ? undefined : eq(stores.accountId, accountId);
  const ofPartner = partnerId === undefined ? undefined : eq(stores.partnerId, partnerId);
  return db
    .select(storeColumns)
    .from(stores)
    .where(
      and(
        ofAccount,
        ofPartner,
        changedSince(stores.updatedAt, since),
        idBefore(stores.id, page.after),
      ),
    )
    .orderBy(desc(stores.id))
    .limit(page.limit + 1);
}

/** Reads a store, by its id or by the platform's external id. */
export async function storeBy(db: DbOrTx, by: Wanted): Promise<Store | undefined> {
  const [row] = await db.select(storeColumns).from(stores).where(isWanted(stores, by));
  return row;
}

export const storeById = (db: DbOrTx, id: number) => storeBy(db, { id });

export async function insertStore(tx: Tx, one: Omit<Store, "id" | "updatedAt">): Promise<Store> {
  return onlyRow(await tx.insert(stores).values(one).returning(storeColumns));
}

export async function updateStore(
  tx: Tx,
  id: number,
  changes: Changes<Pick<Store, "name" | "externalId">>,
): Promise<void> {
  await tx.update(stores).set(changes).where(eq(stores.id, id));
}

/** Deletes a store. Throws an error if the store has connections, or if a location user has access to it. */
export async function deleteStore(tx: Tx, id: number): Promise<void> {
  await tx.delete(stores).where(eq(stores.id, id));
}

function selectLinks(db: DbOrTx) {
  const { id, storeId, accountId, partnerId, reviewSiteId: providerId } = storeReviewSites;
  const { pullErrorCode, postErrorCode, externalId, updatedAt } = storeReviewSites;
  const provider = { providerId, provider: reviewSites.slug };
  const state = { pullErrorCode, postErrorCode, externalId, updatedAt };
  return db
    .select({ id, storeId, accountId, partnerId, ...provider, ...state })
    .from(storeReviewSites)
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId));
}

/** Lists connections of stores to review sites, newest first. */
export function storeReviewSitesOf(
  db: DbOrTx,
  { account_id: accountId, store_id: storeId, updated_since: since }: StoreReviewSiteQuery,
  page: Page,
): Promise<StoreReviewSite[]> {
  const conditions = [
    accountId === undefined ? undefined : eq(storeReviewSites.accountId, accountId),
    storeId === undefined ? undefined : eq(storeReviewSites.storeId, storeId),
    changedSince(storeReviewSites.updatedAt, since),
    idBefore(storeReviewSites.id, page.after),
  ];
  return selectLinks(db)
    .where(and(...conditions))
    .orderBy(desc(storeReviewSites.id))
    .limit(page.limit + 1);
}

/** Reads a connection, by its id or by the platform's external id. */
export async function storeReviewSiteBy(
  db: DbOrTx,
  by: Wanted,
): Promise<StoreReviewSite | undefined> {
  const [row] = await selectLinks(db).where(isWanted(storeReviewSites, by));
  return row;
}

export const storeReviewSiteById = (db: DbOrTx, id: number) => storeReviewSiteBy(db, { id });

export async function updateStoreReviewSite(
  tx: Tx,
  id: number,
  changes: Changes<Pick<StoreReviewSite, "externalId">>,
): Promise<void> {
  await tx.update(storeReviewSites).set(changes).where(eq(storeReviewSites.id, id));
}

/**
 * Deletes a connection. A trigger rejects the deletion if an event of the connection exists. The table is locked first:
 * the lock waits for transactions that have locked a connection and may be about to write an event. Without the lock
 * the trigger would not see such an event, and no foreign key protects the connection.
 */
export async function deleteStoreReviewSite(tx: Tx, id: number): Promise<void> {
  await lockTable(tx, storeReviewSites, "exclusive");
  await tx.delete(storeReviewSites).where(eq(storeReviewSites.id, id));
}

export async function isLinked(
  db: DbOrTx,
  { storeId, providerId }: { readonly storeId: number; readonly providerId: number },
): Promise<boolean> {
  const rows = await db
    .select({ id: storeReviewSites.id })
    .from(storeReviewSites)
    .where(
      and(eq(storeReviewSites.storeId, storeId), eq(storeReviewSites.reviewSiteId, providerId)),
    );
  return rows.length > 0;
}

/**
 * Inserts a connection of a store to a review site. Both of its axes, pull and post, are connected at first, until the
 * provider reports a failure.
 */
export async function insertStoreReviewSite(
  tx: Tx,
  { id: storeId, accountId, partnerId }: Store,
  {
    reviewSiteId,
    externalId,
  }: { readonly reviewSiteId: number; readonly externalId: string | null },
): Promise<number> {
  const working = { pullConnected: true, postConnected: true };
  const rows = await tx
    .insert(storeReviewSites)
    .values({ storeId, accountId, partnerId, reviewSiteId, externalId, ...working })
    .returning({ id: storeReviewSites.id });
  return onlyRow(rows).id;
}

const { id, slug, name, requiresTimestamp, sealedSecret, previousSecretExpiresAt } = reviewSites;
const providerFields = { id, slug, name, requiresTimestamp, sealedSecret, previousSecretExpiresAt };

/** Lists providers, newest first. */
export function providersOf(db: DbOrTx, page: Page): Promise<StoredProvider[]> {
  return db
    .select(providerFields)
    .from(reviewSites)
    .where(idBefore(id, page.after))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function providerById(
  db: DbOrTx,
  wanted: number,
): Promise<StoredProvider | undefined> {
  const [row] = await db.select(providerFields).from(reviewSites).where(eq(id, wanted));
  return row;
}

/**
 * Reads a provider and locks it until the commit, so that concurrent rotations of its secret run one after the other.
 */
export async function lockProvider(tx: Tx, wanted: number): Promise<StoredProvider | undefined> {
  const [row] = await tx
    .select(providerFields)
    .from(reviewSites)
    .where(eq(id, wanted))
    .for("no key update");
  return row;
}

export async function hasSlug(db: DbOrTx, wanted: string): Promise<boolean> {
  const rows = await db.select({ id }).from(reviewSites).where(eq(slug, wanted));
  return rows.length > 0;
}

/** Inserts a provider. `one.id` is an id from `ownId`; if it is absent, the provider gets the next id of the table. */
export async function insertProvider(
  tx: Tx,
  one: Pick<StoredProvider, "slug" | "name" | "requiresTimestamp" | "sealedSecret"> &
    Partial<Pick<StoredProvider, "id">>,
): Promise<StoredProvider> {
  const insert = tx.insert(reviewSites).overridingSystemValue();
  return onlyRow(await insert.values(one).returning(providerFields));
}

export async function updateProvider(
  tx: Tx,
  wanted: number,
  changes: Changes<Pick<Provider, "name" | "requiresTimestamp">>,
): Promise<void> {
  await tx.update(reviewSites).set(changes).where(eq(id, wanted));
}

/** Deletes a provider. Throws an error if a store is connected to the provider. */
export async function deleteProvider(tx: Tx, wanted: number): Promise<void> {
  await tx.delete(reviewSites).where(eq(id, wanted));
}

type ProviderSecrets = Pick<
  typeof reviewSites.$inferSelect,
  "sealedSecret" | "sealedPreviousSecret" | "previousSecretExpiresAt"
>;

export async function replaceSecrets(
  tx: Tx,
  wanted: number,
  secrets: ProviderSecrets,
): Promise<void> {
  await tx.update(reviewSites).set(secrets).where(eq(id, wanted));
}

/**
 * Removes the previous secrets of providers that have expired by the clock of PostgreSQL. Returns the number of removed
 * secrets.
 */
export async function removeExpiredSecrets(db: DbOrTx): Promise<number> {
  const { count } = await db
    .update(reviewSites)
    .set({ sealedPreviousSecret: null, previousSecretExpiresAt: null })
    .where(lte(previousSecretExpiresAt, sql`now()`));
  return count;
}
