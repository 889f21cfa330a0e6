import { type Page } from "../../http/list.ts";
import { findRow } from "../../http/ids.ts";
import type { Db } from "../../../db/client.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { Caller } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { invalid } from "../../lib/problem.ts";
import { addMs } from "../../lib/clock.ts";
import { fingerprint } from "../../lib/secrets.ts";
import { newSecret } from "../../lib/secrets.ts";
import { providerSecretContext } from "../../intake/provider-model.ts";
import type {
  NewPlan,
  NewProvider,
  NewStore,
  NewStoreReviewSite,
  Plan,
  PlanUpdate,
  Provider,
  ProviderUpdate,
  Store,
  StoreReviewSite,
  StoreReviewSiteUpdate,
  StoredProvider,
  StoreUpdate,
} from "../store-model.ts";
import { companyById } from "../queries/companies.ts";
import * as queries from "../queries/stores.ts";
import { type AdminDeps, existing, orNotFound } from "./deps.ts";
import { changeRecord, deleteRecord, updateRecord } from "./records.ts";

const HOUR_MS = 3_600_000;

type WritingDeps = Pick<AdminDeps, "db" | "clock">;

const PLAN_TAKEN = "is the name of another plan";
const ACCOUNT_UNKNOWN = "is not an account";
const LINK_TAKEN = "is already connected to this store";
const SLUG_TAKEN = "is the slug of another provider";

/*
 * Plans, stores, providers, and connections of stores to review sites. Each function `create…` and `change…` takes a
 * body that has passed the function `…Errors` of the same kind of record.
 */

const CONFLICTS = {
  plans_name_key: ["name", PLAN_TAKEN],
  store_review_sites_store_id_review_site_id_key: ["provider_id", LINK_TAKEN],
  review_sites_slug_key: ["slug", SLUG_TAKEN],
} as const;

export function findPlan({ db }: { readonly db: Db }, id: string | undefined): Promise<Plan> {
  return findRow(id, (rowId) => queries.planById(db, rowId));
}

export async function planErrors(
  { db }: { readonly db: Db },
  { name }: ValidParts<PlanUpdate>,
  changed?: Plan,
): Promise<RuleErrors> {
  const isOther = name !== undefined && name !== changed?.name;
  return { name: isOther && (await queries.hasPlan(db, { name })) ? PLAN_TAKEN : undefined };
}

export function createPlan(
  deps: WritingDeps,
  caller: Caller,
  { name, features = [] }: NewPlan,
): Promise<Plan> {
  return changeRecord(deps, caller, CONFLICTS, async (tx) => {
    const id = await queries.insertPlan(tx, { name, features });
    const change = { action: "PLAN_CREATED", details: { plan_id: id } } as const;
    return { result: { id, name, features, accounts: 0 }, change };
  });
}

export function changePlan(
  deps: WritingDeps,
  caller: Caller,
  { id }: Plan,
  body: PlanUpdate,
): Promise<Plan> {
  return updateRecord(deps, caller, body, {
    record: { table: "plans", id },
    conflicts: CONFLICTS,
    action: "PLAN_UPDATED",
    ids: { plan_id: id },
    read: (tx) => queries.planById(tx, id),
    write: (tx) => queries.updatePlan(tx, id, body),
  });
}

export function deletePlan(deps: WritingDeps, caller: Caller, { id, name }: Plan): Promise<void> {
  const change = { action: "PLAN_DELETED", details: { plan_id: id, name } } as const;
  return deleteRecord(deps, caller, change, (tx) => queries.deletePlan(tx, id));
}

export function findStore({ db }: { readonly db: Db }, id: string | undefined): Promise<Store> {
  return findRow(id, (rowId) => queries.storeById(db, rowId));
}

export async function newStoreErrors(
  { db }: { readonly db: Db },
  { account_id: accountId }: ValidParts<NewStore>,
): Promise<RuleErrors> {
  const account = accountId === undefined ? undefined : await companyById(db, "account", accountId);
  const isUnknown = accountId !== undefined && account === undefined;
  return { account_id: isUnknown ? ACCOUNT_UNKNOWN : undefined };
}

export function createStore(
  deps: WritingDeps,
  caller: Caller,
  { account_id: accountId, name, external_id }: NewStore,
): Promise<Store> {
  return changeRecord(deps, caller, CONFLICTS, async (tx) => {
    const account = await companyById(tx, "account", accountId);
    const partnerId = account?.partnerId ?? undefined;
    if (partnerId === undefined) throw invalid({ account_id: [ACCOUNT_UNKNOWN] });
    const result = await queries.insertStore(tx, {
      accountId,
      partnerId,
      name,
      externalId: external_id ?? null,
    });
    const details = { store_id: result.id, company_id: accountId };
    return { result, change: { action: "STORE_CREATED", details } };
  });
}

export function changeStore(
  deps: WritingDeps,
  caller: Caller,
  { id, accountId }: Store,
  body: StoreUpdate,
): Promise<Store> {
  const { name, external_id: externalId } = body;
  return updateRecord(deps, caller, body, {
    record: { table: "stores", id },
    conflicts: CONFLICTS,
    action: "STORE_UPDATED",
    ids: { store_id: id, company_id: accountId },
    read: (tx) => queries.storeById(tx, id),
    write: (tx) => queries.updateStore(tx, id, { name, externalId }),
  });
}

export function deleteStore(
  deps: WritingDeps,
  caller: Caller,
  { id, accountId, name }: Store,
): Promise<void> {
  const details = { store_id: id, company_id: accountId, name };
  const change = { action: "STORE_DELETED", details } as const;
  return deleteRecord(deps, caller, change, (tx) => queries.deleteStore(tx, id));
}

export function findStoreReviewSite(
  { db }: { readonly db: Db },
  id: string | undefined,
): Promise<StoreReviewSite> {
  return findRow(id, (rowId) => queries.storeReviewSiteById(db, rowId));
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

export function createStoreReviewSite(
  deps: WritingDeps,
  caller: Caller,
  { store_id: storeId, provider_id: reviewSiteId, external_id }: NewStoreReviewSite,
): Promise<StoreReviewSite> {
  return changeRecord(deps, caller, CONFLICTS, async (tx) => {
    const store = await queries.storeById(tx, storeId);
    if (store === undefined) throw invalid({ store_id: ["is not a store"] });
    const id = await queries.insertStoreReviewSite(tx, store, {
      reviewSiteId,
      externalId: external_id ?? null,
    });
    const result = existing(await queries.storeReviewSiteById(tx, id));
    const details = { store_review_site_id: id, store_id: storeId, provider: result.provider };
    return { result, change: { action: "STORE_REVIEW_SITE_CREATED", details } };
  });
}

export function changeStoreReviewSite(
  deps: WritingDeps,
  caller: Caller,
  { id, storeId, provider }: StoreReviewSite,
  body: StoreReviewSiteUpdate,
): Promise<StoreReviewSite> {
  return updateRecord(deps, caller, body, {
    record: { table: "storeReviewSites", id },
    conflicts: CONFLICTS,
    action: "STORE_REVIEW_SITE_UPDATED",
    ids: { store_review_site_id: id, store_id: storeId, provider },
    read: (tx) => queries.storeReviewSiteById(tx, id),
    write: (tx) => queries.updateStoreReviewSite(tx, id, { externalId: body.external_id }),
  });
}

/** Deletes a connection. Throws `in_use` if an event of the connection exists. */
export function deleteStoreReviewSite(
  deps: WritingDeps,
  caller: Caller,
  { id, storeId, provider }: StoreReviewSite,
): Promise<void> {
  const details = { store_review_site_id: id, store_id: storeId, provider };
  const change = { action: "STORE_REVIEW_SITE_DELETED", details } as const;
  return deleteRecord(deps, caller, change, (tx) => queries.deleteStoreReviewSite(tx, id));
}

type SealingDeps = Pick<AdminDeps, "db" | "clock" | "box">;

/**
 * Returns a provider with the fingerprint of its current secret instead of the sealed secret. By the fingerprint an
 * operator recognises which secret is current.
 */
function withFingerprint(
  { box }: Pick<AdminDeps, "box">,
  { sealedSecret, ...provider }: StoredProvider,
  lastRefusedAt: Date | null,
): Provider {
  const secret = box.open(sealedSecret, providerSecretContext(provider.slug));
  return { ...provider, secretFingerprint: fingerprint(secret), lastRefusedAt };
}

export async function listProviders(deps: SealingDeps, page: Page): Promise<Provider[]> {
  const rows = await queries.providersOf(deps.db, page);
  const refusals = await queries.latestRefusals(deps.db);
  return rows.map((one) => withFingerprint(deps, one, refusals.get(one.slug) ?? null));
}

export async function findProvider(deps: SealingDeps, id: string | undefined): Promise<Provider> {
  const one = await findRow(id, (rowId) => queries.providerById(deps.db, rowId));
  const refusals = await queries.latestRefusals(deps.db);
  return withFingerprint(deps, one, refusals.get(one.slug) ?? null);
}

type ProviderAndSecret = Provider & { readonly secret: string };

export async function newProviderErrors(
  { db }: { readonly db: Db },
  { slug }: ValidParts<NewProvider>,
): Promise<RuleErrors> {
  const isTaken = slug !== undefined && (await queries.hasSlug(db, slug));
  return { slug: isTaken ? SLUG_TAKEN : undefined };
}

export function createProvider(
  deps: SealingDeps,
  caller: Caller,
  { slug, name, requires_timestamp: requiresTimestamp = false }: NewProvider,
): Promise<ProviderAndSecret> {
  const secret = newSecret();
  const sealedSecret = deps.box.seal(secret, providerSecretContext(slug));
  return changeRecord(deps, caller, CONFLICTS, async (tx) => {
    const provider = { slug, name, requiresTimestamp, sealedSecret };
    const made = withFingerprint(deps, await queries.insertProvider(tx, provider), null);
    const change = { action: "PROVIDER_CREATED", details: { provider: slug } } as const;
    return { result: { ...made, secret }, change };
  });
}

export async function changeProvider(
  deps: SealingDeps,
  caller: Caller,
  { id, slug, lastRefusedAt }: Provider,
  body: ProviderUpdate,
): Promise<Provider> {
  const { name, requires_timestamp: requiresTimestamp } = body;
  const changed = await updateRecord(deps, caller, body, {
    record: { table: "reviewSites", id },
    conflicts: CONFLICTS,
    action: "PROVIDER_UPDATED",
    ids: { provider: slug },
    read: (tx) => queries.providerById(tx, id),
    write: (tx) => queries.updateProvider(tx, id, { name, requiresTimestamp }),
  });
  return withFingerprint(deps, changed, lastRefusedAt);
}

export function deleteProvider(
  deps: WritingDeps,
  caller: Caller,
  { id, slug }: Provider,
): Promise<void> {
  const change = { action: "PROVIDER_DELETED", details: { provider: slug } } as const;
  return deleteRecord(deps, caller, change, (tx) => queries.deleteProvider(tx, id));
}

/**
 * Replaces the secret of a provider. Events that are signed with the old secret are accepted until the end of the grace
 * period. Without a grace period, they are rejected from the commit on. Only one previous secret is stored. So an
 * earlier one whose grace period has not ended becomes invalid immediately.
 */
export function rotateProviderSecret(
  deps: SealingDeps,
  caller: Caller,
  { id, slug, lastRefusedAt }: Provider,
  graceHours: number,
): Promise<ProviderAndSecret> {
  const { box } = deps;
  const secret = newSecret();
  const context = providerSecretContext(slug);
  return changeRecord(deps, caller, {}, async (tx, now) => {
    const before = orNotFound(await queries.lockProvider(tx, id));
    const sealedSecret = box.seal(secret, context);
    const previousSecretExpiresAt = graceHours === 0 ? null : addMs(now, graceHours * HOUR_MS);
    await queries.replaceSecrets(tx, id, {
      sealedSecret,
      // The previous secret is sealed again instead of copied, so that its ciphertext uses the current master key.
      sealedPreviousSecret:
        graceHours === 0 ? null : box.seal(box.open(before.sealedSecret, context), context),
      previousSecretExpiresAt,
    });
    const changed = { ...before, sealedSecret, previousSecretExpiresAt };
    const after = withFingerprint(deps, changed, lastRefusedAt);
    const details = { provider: slug, grace_period_hours: graceHours };
    const change = { action: "PROVIDER_SECRET_ROTATED", details } as const;
    return { result: { ...after, secret }, change };
  });
}

/** Removes the previous secrets of providers whose grace period has ended. The maintenance job calls this function. */
export async function providerSecretsChunk({ db }: Pick<AdminDeps, "db">) {
  return { rows: await queries.removeExpiredSecrets(db) };
}
