import { and, desc, eq } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { idBefore } from "../../../db/conditions.ts";
import { violatesUnique } from "../../../db/errors.ts";
import { plans as planTable, stores } from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { onlyRow } from "../../../db/statement.ts";
import type { Page } from "../../http/list.ts";
import type {
  Plan,
  Provider,
  Store,
  StoreFilter,
  StoreReviewSite,
  StoreReviewSiteQuery,
} from "../store-model.ts";

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

export async function insertPlan(tx: Tx, plan: Omit<Plan, "id">): Promise<number> {
  return onlyRow(await tx.insert(planTable).values(plan).returning({ id: planTable.id })).id;
}

export function isPlanTaken(error: unknown): boolean {
  return violatesUnique(error, "plans_name_key");
}

const store = {
  id: stores.id,
  name: stores.name,
  accountId: stores.accountId,
  partnerId: stores.partnerId,
};

/** Lists stores, newest first. */
export function storesOf(
  db: DbOrTx,
  { account_id: accountId, partner_id: partnerId }: StoreFilter,
  page: Page,
): Promise<Store[]> {
  const ofAccount = accountId === undefined ? undefined : eq(stores.accountId, accountId);
  const ofPartner = partnerId === undefined ? undefined : eq(stores.partnerId, partnerId);
  return db
    .select(store)
    .from(stores)
    .where(and(ofAccount, ofPartner, idBefore(stores.id, page.after)))
    .orderBy(desc(stores.id))
    .limit(page.limit + 1);
}

export async function storeById(db: DbOrTx, id: number): Promise<Store | undefined> {
  const [row] = await db.select(store).from(stores).where(eq(stores.id, id));
  return row;
}

export async function insertStore(tx: Tx, one: Omit<Store, "id">): Promise<number> {
  return onlyRow(await tx.insert(stores).values(one).returning({ id: stores.id })).id;
}

function selectLinks(db: DbOrTx) {
  const { id, storeId, accountId, partnerId, pullErrorCode, postErrorCode } = storeReviewSites;
  const provider = reviewSites.slug;
  return db
    .select({ id, storeId, accountId, partnerId, provider, pullErrorCode, postErrorCode })
    .from(storeReviewSites)
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId));
}

/** Lists connections of stores to review sites, newest first. */
export function storeReviewSitesOf(
  db: DbOrTx,
  { account_id: accountId, store_id: storeId }: StoreReviewSiteQuery,
  page: Page,
): Promise<StoreReviewSite[]> {
  const conditions = [
    accountId === undefined ? undefined : eq(storeReviewSites.accountId, accountId),
    storeId === undefined ? undefined : eq(storeReviewSites.storeId, storeId),
    idBefore(storeReviewSites.id, page.after),
  ];
  return selectLinks(db)
    .where(and(...conditions))
    .orderBy(desc(storeReviewSites.id))
    .limit(page.limit + 1);
}

export async function storeReviewSiteById(
  db: DbOrTx,
  id: number,
): Promise<StoreReviewSite | undefined> {
  const [row] = await selectLinks(db).where(eq(storeReviewSites.id, id));
  return row;
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
 * Inserts a connection of a store to a review site. Both of its states, pull and push, start as connected until the
 * provider reports a failure.
 */
export async function insertStoreReviewSite(
  tx: Tx,
  { id: storeId, accountId, partnerId }: Store,
  reviewSiteId: number,
): Promise<number> {
  const working = { pullConnected: true, postConnected: true };
  const rows = await tx
    .insert(storeReviewSites)
    .values({ storeId, accountId, partnerId, reviewSiteId, ...working })
    .returning({ id: storeReviewSites.id });
  return onlyRow(rows).id;
}

export function isLinkTaken(error: unknown): boolean {
  return violatesUnique(error, "store_review_sites_store_id_review_site_id_key");
}

const { id, slug, name } = reviewSites;

/** Lists providers, newest first. */
export function providersOf(db: DbOrTx, page: Page): Promise<Provider[]> {
  return db
    .select({ id, slug, name })
    .from(reviewSites)
    .where(idBefore(id, page.after))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function providerById(db: DbOrTx, wanted: number): Promise<Provider | undefined> {
  const [row] = await db.select({ id, slug, name }).from(reviewSites).where(eq(id, wanted));
  return row;
}

export async function hasSlug(db: DbOrTx, wanted: string): Promise<boolean> {
  const rows = await db.select({ id }).from(reviewSites).where(eq(slug, wanted));
  return rows.length > 0;
}

export async function insertProvider(
  tx: Tx,
  one: Omit<Provider, "id">,
  sealedSecret: string,
): Promise<number> {
  const row = { slug: one.slug, name: one.name, sealedSecret };
  return onlyRow(await tx.insert(reviewSites).values(row).returning({ id })).id;
}

export function isSlugTaken(error: unknown): boolean {
  return violatesUnique(error, "review_sites_slug_key");
}

export async function replaceSecret(tx: Tx, wanted: number, sealedSecret: string): Promise<void> {
  await tx.update(reviewSites).set({ sealedSecret }).where(eq(id, wanted));
}
