import { sql } from "drizzle-orm";

import type { Db, DbOrTx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { list, statement } from "../../../db/statement.ts";
import type { Clock } from "../../lib/clock.ts";
import { inBatches } from "../../lib/batches.ts";

const secrets = statement({
  name: "providers.secrets",
  // Hot; one parameter for the slugs of all requests.
  params: { slugs: list(reviewSites.slug) },
  columns: { slug: reviewSites.slug, sealedSecret: reviewSites.sealedSecret },
  text: ({ slugs }) => sql`
    select p.slug, p.sealed_secret as "sealedSecret"
      from unnest((select ${slugs}::text[])) as given(slug) cross join lateral (
             select slug, sealed_secret from review_sites where slug = given.slug offset 0) p`,
});

/** By slug. */
export async function sealedSecretsOf(db: DbOrTx, slugs: readonly string[]) {
  const found = await db.run(secrets, { slugs });
  return new Map(found.map(({ slug, sealedSecret }) => [slug, sealedSecret]));
}

const LIMITS = { questions: 256, waiting: 4_096, waitMs: 6_000 };
const SECRETS_REMEMBERED = 1_000;

/** Finds the sealed secrets of providers. */
export function createSecretFinder(db: Db, clock: Clock) {
  const known = new Map<string, string>();
  const answer = async (slugs: readonly string[]) => {
    const found = await sealedSecretsOf(db, [...new Set(slugs)]);
    if (known.size + found.size > SECRETS_REMEMBERED) known.clear();
    for (const [slug, sealed] of found) known.set(slug, sealed);
    return slugs.map((slug) => found.get(slug));
  };
  return {
    /** Answers the secret as it was read last, which may have been changed since; undefined before the first read. */
    remembered: (slug: string) => known.get(slug),
    /** Reads the secret; undefined if there is no such provider. Reads at the same time share a statement. */
    read: inBatches(clock, answer, LIMITS),
  };
}

function partnersOf(db: Db, siteIds: Iterable<number>) {
  const { id, partnerId } = storeReviewSites;
  return db.select({ id, partnerId }).from(storeReviewSites).where(anyOf(id, siteIds));
}

const SITES_REMEMBERED = 100_000;

/**
 * Finds the partners of connections, each once; none for a connection that does not exist. A connection is read once,
 * because its partner never changes. Past the limit all are forgotten.
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
