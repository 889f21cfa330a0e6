import { eq, getTableColumns } from "drizzle-orm";

import type { Db, DbOrTx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import type { Clock } from "../../lib/clock.ts";
import { inBatches } from "../../lib/batches.ts";
import { SITE, type Site } from "./look-up.ts";

const { id: _id, name: _name, ...CREDENTIAL_COLUMNS } = getTableColumns(reviewSites);

/** Returns the credentials of providers by slug. */
export async function credentialsOf(db: DbOrTx, slugs: readonly string[]) {
  const found = await db
    .select(CREDENTIAL_COLUMNS)
    .from(reviewSites)
    .where(anyOf(reviewSites.slug, slugs));
  return new Map(found.map((one) => [one.slug, one]));
}

/** The secrets of a provider, and the setting for timestamps that its requests must meet. */
export type Credentials = NonNullable<ReturnType<Awaited<ReturnType<typeof credentialsOf>>["get"]>>;

const READ_LIMITS = { items: 256, waiting: 4_096, waitMs: 6_000 };
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
    /** Returns the provider's cached credentials, which may be outdated; undefined before they are first read. */
    remembered: (slug: string) => known.get(slug),
    /** Reads the credentials; undefined if the provider does not exist. Concurrent reads share a statement. */
    read: inBatches(clock, answer, READ_LIMITS),
  };
}

function sitesOf(db: Db, siteIds: Iterable<number>): Promise<Site[]> {
  return db
    .select(SITE)
    .from(storeReviewSites)
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
    .where(anyOf(storeReviewSites.id, siteIds));
}

const SITES_REMEMBERED = 100_000;

/**
 * Creates a cached loader for connections by their ids. Missing connections are omitted from its result. Cached
 * connections never expire, because a connection never changes its store or review site, and callers do not use its
 * axes. Only an import can give the id of a deleted connection to another one, so a statement that writes cached values
 * compares them with the row. A cache of more than `SITES_REMEMBERED` connections is cleared.
 */
export function createSiteFinder(
  db: Db,
): (siteIds: readonly number[]) => Promise<ReadonlyMap<number, Site>> {
  const known = new Map<number, Site>();
  return async (siteIds) => {
    const found = new Map<number, Site>();
    for (const one of siteIds.flatMap((id) => known.get(id) ?? [])) found.set(one.id, one);
    const unknown = new Set(siteIds.filter((id) => !found.has(id)));
    const read = unknown.size === 0 ? [] : await sitesOf(db, unknown);
    if (known.size > SITES_REMEMBERED) known.clear();
    for (const one of read) {
      known.set(one.id, one);
      found.set(one.id, one);
    }
    return found;
  };
}
