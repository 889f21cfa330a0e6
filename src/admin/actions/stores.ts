import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { SoundParts } from "../../http/fields.ts";
import type { Page } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import type { FieldFaults } from "../../http/rules.ts";
import { invalid } from "../../lib/problem.ts";
import { ACCOUNT_UNKNOWN, LINK_TAKEN, PLAN_TAKEN } from "../input.ts";
import { companyById } from "../queries/companies.ts";
import { providerById } from "../queries/providers.ts";
import * as queries from "../queries/stores.ts";
import type {
  NewPlan,
  NewStore,
  NewStoreReviewSite,
  Plan,
  Store,
  StoreFilter,
  StoreReviewSite,
  StoreReviewSiteQuery,
} from "../store-model.ts";
import { written, type AdminDeps } from "./deps.ts";

type WritingDeps = Pick<AdminDeps, "db" | "clock">;

export function listPlans({ db }: { readonly db: Db }, page: Page): Promise<Plan[]> {
  return queries.plansOf(db, page);
}

export async function newPlanFaults(
  { db }: { readonly db: Db },
  { name }: SoundParts<NewPlan>,
): Promise<FieldFaults> {
  const isTaken = name !== undefined && (await queries.hasPlan(db, { name }));
  return { name: isTaken ? PLAN_TAKEN : undefined };
}

/** The body has passed `newPlanFaults`; a name that was taken since then is a 422. */
export async function createPlan(
  { db, clock }: WritingDeps,
  { principal, call }: Caller,
  { name, features = [] }: NewPlan,
): Promise<Plan> {
  const at = clock.now();
  const insert = async (tx: Tx) => {
    const id = await queries.insertPlan(tx, { name, features });
    const details = { plan_id: id };
    await recordAudit(tx, { at, action: "PLAN_CREATED", actor: principal, call, details });
    return { id, name, features };
  };
  try {
    return await db.transaction(insert);
  } catch (error) {
    if (!queries.isPlanTaken(error)) throw error;
    throw invalid({ name: [PLAN_TAKEN] });
  }
}

export function listStores(
  { db }: { readonly db: Db },
  filter: StoreFilter,
  page: Page,
): Promise<Store[]> {
  return queries.storesOf(db, filter, page);
}

export async function newStoreFaults(
  { db }: { readonly db: Db },
  { account_id: accountId }: SoundParts<NewStore>,
): Promise<FieldFaults> {
  const account = accountId === undefined ? undefined : await companyById(db, "account", accountId);
  const isUnknown = accountId !== undefined && account === undefined;
  return { account_id: isUnknown ? ACCOUNT_UNKNOWN : undefined };
}

/** The body has passed `newStoreFaults`, and no account ever goes away. */
export async function createStore(
  { db, clock }: WritingDeps,
  { principal, call }: Caller,
  { account_id: accountId, name }: NewStore,
): Promise<Store> {
  const at = clock.now();
  return db.transaction(async (tx) => {
    const account = await companyById(tx, "account", accountId);
    const partnerId = account?.partnerId ?? undefined;
    if (partnerId === undefined) throw invalid({ account_id: [ACCOUNT_UNKNOWN] });
    const id = await queries.insertStore(tx, { accountId, partnerId, name });
    const details = { store_id: id, company_id: accountId };
    await recordAudit(tx, { at, action: "STORE_CREATED", actor: principal, call, details });
    return { id, accountId, partnerId, name };
  });
}

export function listStoreReviewSites(
  { db }: { readonly db: Db },
  query: StoreReviewSiteQuery,
  page: Page,
): Promise<StoreReviewSite[]> {
  return queries.storeReviewSitesOf(db, query, page);
}

export async function newStoreReviewSiteFaults(
  { db }: { readonly db: Db },
  { store_id: storeId, provider_id: providerId }: SoundParts<NewStoreReviewSite>,
): Promise<FieldFaults> {
  const [store, provider] = await Promise.all([
    storeId === undefined ? undefined : queries.storeById(db, storeId),
    providerId === undefined ? undefined : providerById(db, providerId),
  ]);
  const isTaken =
    store !== undefined &&
    provider !== undefined &&
    (await queries.isLinked(db, { storeId: store.id, providerId: provider.id }));
  const linkFault = isTaken ? LINK_TAKEN : undefined;
  return {
    store_id: storeId !== undefined && store === undefined ? "is not a store" : undefined,
    provider_id:
      providerId !== undefined && provider === undefined ? "is not a provider" : linkFault,
  };
}

/** The body has passed `newStoreReviewSiteFaults`; a link that was made since then is a 422. */
export async function createStoreReviewSite(
  { db, clock }: WritingDeps,
  { principal, call }: Caller,
  { store_id: storeId, provider_id: providerId }: NewStoreReviewSite,
): Promise<StoreReviewSite> {
  const at = clock.now();
  const link = async (tx: Tx) => {
    const store = written(await queries.storeById(tx, storeId));
    const id = await queries.insertStoreReviewSite(tx, store, providerId);
    const row = written(await queries.storeReviewSiteById(tx, id));
    const action = "STORE_REVIEW_SITE_CREATED";
    const details = { store_review_site_id: id, store_id: storeId, provider: row.provider };
    await recordAudit(tx, { at, action, actor: principal, call, details });
    return row;
  };
  try {
    return await db.transaction(link);
  } catch (error) {
    if (!queries.isLinkTaken(error)) throw error;
    throw invalid({ provider_id: [LINK_TAKEN] });
  }
}
