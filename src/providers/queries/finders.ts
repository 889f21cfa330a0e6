import { getTableColumns } from "drizzle-orm";

import type { Db, DbOrTx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import type { Clock } from "../../lib/clock.ts";
import { inBatches } from "../../lib/batches.ts";

const { id: _id, name: _name, ...CREDENTIALS } = getTableColumns(reviewSites);

/** Returns the credentials of providers by slug. */
export async function credentialsOf(db: DbOrTx, slugs: readonly string[]) {
  const found = await db
    .select(CREDENTIALS)
    .from(reviewSites)
    .where(anyOf(reviewSites.slug, slugs));
  return new Map(found.map((one) => [one.slug, one]));
}

/** The secrets of a provider, and the rule by which its requests are verified. */
export type Credentials = NonNullable<ReturnType<Awaited<ReturnType<typeof credentialsOf>>["get"]>>;

const LIMITS = { questions: 256, waiting: 4_096, waitMs: 6_000 };
const PROVIDERS_REMEMBERED = 1_000;

/** Creates a cached loader for the credentials of providers. */
export function createCredentialsFinder(db: Db, clock: Clock) {
  const known = new Map<string, Credentials>();
  const answer = async (slugs: readonly string[]) => {
    const found = await credentialsOf(db, [...new Set(slugs)]);
    if (known.size + found.size > PROVIDERS_REMEMBERED) known.clear();
    for (const [slug, one] of found) known.set(slug, one);
    return slugs.map((slug) => found.get(slug));
  };
  return {
    /** Returns the provider's credentials as last read, which may be outdated; undefined before the first read. */
    remembered: (slug: string) => known.get(slug),
    /** Reads the credentials; undefined if the provider does not exist. Concurrent reads share a statement. */
    read: inBatches(clock, answer, LIMITS),
  };
}

function partnersOf(db: Db, siteIds: Iterable<number>) {
  const { id, partnerId } = storeReviewSites;
  return db.select({ id, partnerId }).from(storeReviewSites).where(anyOf(id, siteIds));
}

const SITES_REMEMBERED = 100_000;

/**
 * Creates a cached loader for the partners that own connections. The loader returns each partner once, and none for a
 * connection that does not exist. Cached partners never expire, because a connection never changes its partner; at
 * the limit the cache is cleared.
 */
export function createPartnerFinder(db: Db): (siteIds: readonly number[]) => Promise<number[]> {
  const known = new Map<number, number>();
  return async (siteIds) => {
    const remembered = siteIds.flatMap((id) => known.get(id) ?? []);
    const unknown = new Set(siteIds.filter((id) => !known.has(id)));
    const found = unknown.size === 0 ? [] : await partnersOf(db, unknown);
    if (known.size > SITES_REMEMBERED) known.clear();
    for (const { id, partnerId } of found) known.set(id, partnerId);
    return [...new Set([...remembered, ...found.map(({ partnerId }) => partnerId)])];
  };
}
