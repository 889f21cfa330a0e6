import { and, count as countOf, desc, eq, gte, isNotNull, lte, max, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { idBefore, nthId, someHas } from "../../../db/conditions.ts";
import { auditLog, companies, plans as planTable, stores } from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { lockTable } from "../../../db/locks.ts";
import { onlyRow } from "../../../db/statement.ts";
import type { Found, Page } from "../../http/list.ts";
import type {
  Plan,
  PlanFields,
  Provider,
  Store,
  StoreFilter,
  StoreReviewSite,
  StoreReviewSiteQuery,
  StoredProvider,
} from "../store-model.ts";
import { changedSince, type Changes, isWanted, type Wanted } from "./companies.ts";

/** Selects plans with their numbers of accounts, which are counted in one pass over the companies. */
function selectPlans(db: DbOrTx) {
  const { planId } = companies;
  const used = db
    .select({ planId, accounts: countOf().as("accounts") })
    .from(companies)
    .where(isNotNull(planId))
    .groupBy(planId)
    .as("used");
  const { id, name, features } = planTable;
  const accounts = sql`coalesce(${used.accounts}, 0)`.mapWith(Number);
  return db
    .select({ id, name, features, accounts })
    .from(planTable)
    .leftJoin(used, eq(used.planId, id));
}

/** Lists plans, newest first. */
export function plansOf(db: DbOrTx, page: Page): Promise<Plan[]> {
  return selectPlans(db)
    .where(idBefore(planTable.id, page.after))
    .orderBy(desc(planTable.id))
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
  plan: PlanFields & Partial<Pick<Plan, "id">>,
): Promise<number> {
  const insert = tx.insert(planTable).overridingSystemValue();
  return onlyRow(await insert.values(plan).returning({ id: planTable.id })).id;
}

export async function planById(db: DbOrTx, wanted: number): Promise<Plan | undefined> {
  const [row] = await selectPlans(db).where(eq(planTable.id, wanted));
  return row;
}

export async function updatePlan(tx: Tx, id: number, changes: Changes<PlanFields>): Promise<void> {
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

/** Maximum number of stores that a search for a name reads for one page. */
const READ_FOR_NAME = 20_000;

/**
 * Lists stores, newest first. A search for a name reads at most `READ_FOR_NAME` stores; `end` is then the key of the
 * last store that it read.
 */
export async function storesOf(
  db: DbOrTx,
  { account_id: accountId, partner_id: partnerId, updated_since: since, q }: StoreFilter,
  page: Page,
): Promise<Found<Store>> {
  const walked = and(
    accountId === undefined ? undefined : eq(stores.accountId, accountId),
    partnerId === undefined ? undefined : eq(stores.partnerId, partnerId),
    idBefore(stores.id, page.after),
  );
  const end =
    q === undefined ? undefined : await nthId(db, stores, { nth: READ_FOR_NAME, where: walked });
  const rows = await db
    .select(storeColumns)
    .from(stores)
    .where(
      and(
        walked,
        end === undefined ? undefined : gte(stores.id, end),
        q === undefined ? undefined : someHas([stores.name], q),
        changedSince(stores.updatedAt, since),
      ),
    )
    .orderBy(desc(stores.id))
    .limit(page.limit + 1);
  return { rows, end: end?.toString() };
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

/** Maximum number of connections of a store that are read. A store has one for each provider at most. */
const LINKS_OF_STORE = 1_000;

/** Reads the connections of these stores, and returns a function that finds those of one store. */
export async function linksOfStores(
  db: DbOrTx,
  rows: readonly Pick<Store, "id">[],
): Promise<(store: Pick<Store, "id">) => readonly StoreReviewSite[]> {
  const ids = sql.param(rows.map((one) => one.id));
  // The limit and the order of the index make PostgreSQL look up each store in the index, with any statistics.
  const own = selectLinks(db)
    .where(eq(storeReviewSites.storeId, sql`wanted.id`))
    .orderBy(storeReviewSites.reviewSiteId)
    .limit(LINKS_OF_STORE)
    .as("own");
  const links = await db
    .select({ own: own._.selectedFields })
    .from(sql`unnest(${ids}::integer[]) as wanted(id)`)
    .crossJoinLateral(own);
  const byStore = Map.groupBy(links, ({ own: { storeId } }) => storeId);
  return (store) => (byStore.get(store.id) ?? []).map((link) => link.own);
}

/** Number of the newest reviews of a store in which the latest one of each connection is looked for. */
const REVIEWS_READ = 1_000;

/** Returns the times of the latest reviews of a store by the id of their connection. */
export async function latestReviews(
  db: DbOrTx,
  store: Pick<Store, "id">,
): Promise<ReadonlyMap<number, Date | null>> {
  const newest = db
    .select({ siteId: reviews.storeReviewSiteId, at: reviews.createdAt })
    .from(reviews)
    .where(eq(reviews.storeId, store.id))
    .orderBy(desc(reviews.id))
    .limit(REVIEWS_READ)
    .as("newest");
  const { siteId, at } = newest;
  const rows = await db
    .select({ siteId, at: max(at) })
    .from(newest)
    .groupBy(siteId);
  return new Map(rows.map((one) => [one.siteId, one.at]));
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

/** Number of refused requests, of all providers, in which the latest one of each provider is looked for. */
const REFUSALS_READ = 1_000;

/** Returns the times of the latest refused requests by the slug of their provider. */
export async function latestRefusals(db: DbOrTx): Promise<ReadonlyMap<string, Date>> {
  const { at, action, details } = auditLog;
  const refused = db
    .select({ at, slug: sql`${details} ->> 'provider'`.mapWith(String).as("slug") })
    .from(auditLog)
    .where(eq(action, "PROVIDER_AUTH_FAILED"))
    .orderBy(desc(auditLog.id))
    .limit(REFUSALS_READ)
    .as("refused");
  const rows = await db
    .select({ slug: refused.slug, at: max(refused.at) })
    .from(refused)
    .groupBy(refused.slug);
  return new Map(rows.flatMap((one) => (one.at === null ? [] : [[one.slug, one.at] as const])));
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
