import { findRow } from "../../http/list.ts";
import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { Caller } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { invalid } from "../../lib/problem.ts";
import { newSecret } from "../../lib/secrets.ts";
import { providerSecretContext } from "../../providers/model.ts";
import type {
  NewPlan,
  NewProvider,
  NewStore,
  NewStoreReviewSite,
  Plan,
  Provider,
  Store,
  StoreReviewSite,
} from "../store-model.ts";
import { companyById } from "../queries/companies.ts";
import * as queries from "../queries/stores.ts";
import { type AdminDeps, existing } from "./deps.ts";

type WritingDeps = Pick<AdminDeps, "db" | "clock">;

const PLAN_TAKEN = "is the name of another plan";
const ACCOUNT_UNKNOWN = "is not an account";
const LINK_TAKEN = "is connected to this store already";
const SLUG_TAKEN = "is the slug of another provider";

/*
 * Creates plans, stores, providers, and connections of stores to review sites. Each `create…` takes a body that has
 * passed the `new…Errors` of the same name. Unique indexes decide between requests that run at the same time: the
 * later request gets a 422, as if the check had found the conflict.
 */

export async function newPlanErrors(
  { db }: { readonly db: Db },
  { name }: ValidParts<NewPlan>,
): Promise<RuleErrors> {
  const isTaken = name !== undefined && (await queries.hasPlan(db, { name }));
  return { name: isTaken ? PLAN_TAKEN : undefined };
}

export async function createPlan(
  { db, clock }: WritingDeps,
  { principal, requestContext }: Caller,
  { name, features = [] }: NewPlan,
): Promise<Plan> {
  const at = clock.now();
  const insert = async (tx: Tx) => {
    const id = await queries.insertPlan(tx, { name, features });
    const details = { plan_id: id };
    await recordAudit(tx, {
      at,
      action: "PLAN_CREATED",
      actor: principal,
      requestContext,
      details,
    });
    return { id, name, features };
  };
  try {
    return await db.transaction(insert);
  } catch (error) {
    if (!queries.isPlanTaken(error)) throw error;
    throw invalid({ name: [PLAN_TAKEN] });
  }
}

export async function newStoreErrors(
  { db }: { readonly db: Db },
  { account_id: accountId }: ValidParts<NewStore>,
): Promise<RuleErrors> {
  const account = accountId === undefined ? undefined : await companyById(db, "account", accountId);
  const isUnknown = accountId !== undefined && account === undefined;
  return { account_id: isUnknown ? ACCOUNT_UNKNOWN : undefined };
}

/** Creates a store. Its account exists, because `newStoreErrors` has found it and accounts are never deleted. */
export async function createStore(
  { db, clock }: WritingDeps,
  { principal, requestContext }: Caller,
  { account_id: accountId, name }: NewStore,
): Promise<Store> {
  const at = clock.now();
  return db.transaction(async (tx) => {
    const account = await companyById(tx, "account", accountId);
    const partnerId = account?.partnerId ?? undefined;
    if (partnerId === undefined) throw invalid({ account_id: [ACCOUNT_UNKNOWN] });
    const id = await queries.insertStore(tx, { accountId, partnerId, name });
    const details = { store_id: id, company_id: accountId };
    await recordAudit(tx, {
      at,
      action: "STORE_CREATED",
      actor: principal,
      requestContext,
      details,
    });
    return { id, accountId, partnerId, name };
  });
}

export async function newStoreReviewSiteErrors(
  { db }: { readonly db: Db },
  { store_id: storeId, provider_id: providerId }: ValidParts<NewStoreReviewSite>,
): Promise<RuleErrors> {
  const [store, provider] = await Promise.all([
    storeId === undefined ? undefined : queries.storeById(db, storeId),
    providerId === undefined ? undefined : queries.providerById(db, providerId),
  ]);
  const isTaken =
    store !== undefined &&
    provider !== undefined &&
    (await queries.isLinked(db, { storeId: store.id, providerId: provider.id }));
  const linkError = isTaken ? LINK_TAKEN : undefined;
  return {
    store_id: storeId !== undefined && store === undefined ? "is not a store" : undefined,
    provider_id:
      providerId !== undefined && provider === undefined ? "is not a provider" : linkError,
  };
}

export async function createStoreReviewSite(
  { db, clock }: WritingDeps,
  { principal, requestContext }: Caller,
  { store_id: storeId, provider_id: providerId }: NewStoreReviewSite,
): Promise<StoreReviewSite> {
  const at = clock.now();
  const link = async (tx: Tx) => {
    const store = existing(await queries.storeById(tx, storeId));
    const id = await queries.insertStoreReviewSite(tx, store, providerId);
    const row = existing(await queries.storeReviewSiteById(tx, id));
    const action = "STORE_REVIEW_SITE_CREATED";
    const details = { store_review_site_id: id, store_id: storeId, provider: row.provider };
    await recordAudit(tx, { at, action, actor: principal, requestContext, details });
    return row;
  };
  try {
    return await db.transaction(link);
  } catch (error) {
    if (!queries.isLinkTaken(error)) throw error;
    throw invalid({ provider_id: [LINK_TAKEN] });
  }
}

export function findProvider(
  { db }: { readonly db: Db },
  id: string | undefined,
): Promise<Provider> {
  return findRow(id, (rowId) => queries.providerById(db, rowId));
}

type SealingDeps = Pick<AdminDeps, "db" | "clock" | "box">;
type ProviderAndSecret = Provider & { readonly secret: string };

export async function newProviderErrors(
  { db }: { readonly db: Db },
  { slug }: ValidParts<NewProvider>,
): Promise<RuleErrors> {
  const isTaken = slug !== undefined && (await queries.hasSlug(db, slug));
  return { slug: isTaken ? SLUG_TAKEN : undefined };
}

export async function createProvider(
  { db, clock, box }: SealingDeps,
  { principal, requestContext }: Caller,
  { slug, name }: NewProvider,
): Promise<ProviderAndSecret> {
  const now = clock.now();
  const secret = newSecret();
  const sealed = box.seal(secret, providerSecretContext(slug));
  try {
    return await db.transaction(async (tx) => {
      const id = await queries.insertProvider(tx, { slug, name }, sealed);
      const details = { provider: slug };
      const action = "PROVIDER_CREATED";
      await recordAudit(tx, { at: now, action, actor: principal, requestContext, details });
      return { id, slug, name, secret };
    });
  } catch (error) {
    if (!queries.isSlugTaken(error)) throw error;
    throw invalid({ slug: [SLUG_TAKEN] });
  }
}

/**
 * Replaces the secret of a provider. From the commit on, an event that the provider signed with the old secret is
 * rejected.
 */
export async function rotateProviderSecret(
  { db, clock, box }: SealingDeps,
  { principal, requestContext }: Caller,
  provider: Provider,
): Promise<ProviderAndSecret> {
  const now = clock.now();
  const secret = newSecret();
  await db.transaction(async (tx) => {
    const { id, slug } = provider;
    await queries.replaceSecret(tx, id, box.seal(secret, providerSecretContext(slug)));
    const action = "PROVIDER_SECRET_ROTATED";
    await recordAudit(tx, {
      at: now,
      action,
      actor: principal,
      requestContext,
      details: { provider: slug },
    });
  });
  return { ...provider, secret };
}
