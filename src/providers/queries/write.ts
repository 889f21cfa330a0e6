import { sql } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { instant, list, rows, statement, type ValuesOf } from "../../../db/statement.ts";
import { REVIEW_STATE, SITE, type ReviewState, type Site } from "./look-up.ts";

const insertion = statement({
  name: "providers.insertNew",
  // Raw SQL, because the statement runs with every batch and has two parameters that are tables, each inserted in one
  // order: 100 rows cost the builder 2.3 ms of CPU, and 0.16 ms as one parameter.
  params: {
    claims: rows({ slug: reviewSites.slug, id: providerEvents.id }),
    created: rows(REVIEW_STATE),
    now: instant,
  },
  text: ({ claims, created, now }) => sql`
    with claimed as (
      insert into provider_events (review_site_id, id, received_at)
      select p.id, claims.id, ${now}
        from ${claims} cross join lateral (select id from review_sites where slug = claims.slug offset 0) p
       order by p.id, claims.id collate "C"
    )
    insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, reviewer,
                         reviewer_email, content, profanity, reviewed_at, removed_at, created_at, updated_at)
    overriding system value
    select c.id, l.partner_id, l.account_id, l.store_id, l.id, c."externalReviewId", c.rate, c.reviewer,
           c."reviewerEmail", c.content, c.profanity, c."reviewedAt", c."removedAt", ${now}, ${now}
      from (select * from ${created}) c cross join lateral (
             select id, partner_id, account_id, store_id from store_review_sites where id = c."siteId" offset 0) l
     order by c."siteId", c."externalReviewId" collate "C"`,
});

/**
 * Claims event ids permanently and inserts reviews with the ids from `lookUp`. The statement fails, and the
 * transaction with it, if another transaction has claimed or inserted one of them since the look-up.
 */
export async function insertNew(tx: Tx, given: ValuesOf<typeof insertion.params>): Promise<void> {
  await tx.run(insertion, given);
}

const update = statement({
  name: "providers.updateReviews",
  // Raw SQL, because the statement runs with every batch and updates rows from a parameter that is a table.
  params: {
    given: rows(REVIEW_STATE),
    ids: list(reviews.id),
    now: instant,
  },
  text: ({ given, ids, now }) => sql`
    update reviews r
       set rate = given.rate, reviewer = given.reviewer, reviewer_email = given."reviewerEmail",
           content = given.content, profanity = given.profanity, reviewed_at = given."reviewedAt",
           removed_at = given."removedAt", updated_at = ${now}
      from ${given}
     where r.id = given.id and r.id = any((select ${ids}::integer[])::integer[])`,
});

export async function updateReviews(tx: Tx, given: readonly ReviewState[], now: Date) {
  await tx.run(update, { given, ids: given.map(({ id }) => id), now });
}

const axes = statement({
  name: "providers.updateSites",
  // Raw SQL, because the statement runs with every batch and updates rows from a parameter that is a table.
  params: {
    given: rows(SITE),
    ids: list(storeReviewSites.id),
  },
  text: ({ given, ids }) => sql`
    update store_review_sites l
       set pull_connected = given."pullConnected", pull_error_code = given."pullErrorCode",
           post_connected = given."postConnected", post_error_code = given."postErrorCode"
      from ${given}
     where l.id = given.id and l.id = any((select ${ids}::integer[])::integer[])`,
});

export async function updateSites(tx: Tx, given: readonly Site[]): Promise<void> {
  await tx.run(axes, { given, ids: given.map(({ id }) => id) });
}
