import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { list, statement } from "../../../db/statement.ts";

/** To whom connections belong. */
export function partnersOf(
  db: DbOrTx,
  ids: readonly number[],
): Promise<{ id: number; partnerId: number }[]> {
  return db
    .select({ id: storeReviewSites.id, partnerId: storeReviewSites.partnerId })
    .from(storeReviewSites)
    .where(anyOf(storeReviewSites.id, ids));
}

const secrets = statement({
  name: "providers.secrets",
  reason: "Hot; one parameter for the slugs of all requests.",
  params: { slugs: list(reviewSites.slug) },
  columns: { slug: reviewSites.slug, sealedSecret: reviewSites.sealedSecret },
  text: ({ slugs }) => sql`
    select p.slug, p.sealed_secret as "sealedSecret"
      from unnest((select ${slugs}::text[])) as given(slug) cross join lateral (
             select slug, sealed_secret from review_sites where slug = given.slug offset 0) p`,
});

/** By slug. */
export async function sealedSecretsOf(
  db: DbOrTx,
  slugs: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await db.run(secrets, { slugs });
  return new Map(found.map(({ slug, sealedSecret }) => [slug, sealedSecret]));
}
