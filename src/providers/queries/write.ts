import { sql } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { instant, list, rows, statement } from "../../../db/statement.ts";
import type { ReviewState, Site } from "../model.ts";

/** What a provider reports of a review, by the names of its columns. */
const REPORTED = {
  rate: reviews.rate,
  reviewer: reviews.reviewer,
  reviewer_email: reviews.reviewerEmail,
  content: reviews.content,
  profanity: reviews.profanity,
  reviewed_at: reviews.reviewedAt,
};

function reported(one: ReviewState) {
  return {
    id: one.id,
    rate: one.rate,
    reviewer: one.reviewer,
    reviewer_email: one.reviewerEmail,
    content: one.content,
    profanity: one.profanity,
    reviewed_at: one.reviewedAt,
  };
}

const insertion = statement({
  name: "providers.insertNew",
  reason: "Hot; two parameters that are tables, each inserted in one order.",
  params: {
    claims: rows({ slug: reviewSites.slug, id: providerEvents.id }),
    given: rows({
      id: reviews.id,
      site_id: reviews.storeReviewSiteId,
      external_review_id: reviews.externalReviewId,
      ...REPORTED,
    }),
    now: instant,
  },
  columns: {},
  text: ({ claims, given, now }) => sql`
    with claimed as (
      insert into provider_events (review_site_id, id, received_at)
      select p.id, claims.id, ${now}
        from ${claims} cross join lateral (select id from review_sites where slug = claims.slug offset 0) p
       order by p.id, claims.id collate "C"
    )
    insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate,
                         reviewer, reviewer_email, content, profanity, reviewed_at, created_at, updated_at)
    overriding system value
    select given.id, l.partner_id, l.account_id, l.store_id, l.id, given.external_review_id, given.rate,
           given.reviewer, given.reviewer_email, given.content, given.profanity, given.reviewed_at, ${now}, ${now}
      from ${given} cross join lateral (
             select id, partner_id, account_id, store_id from store_review_sites
              where id = given.site_id offset 0) l
     order by given.site_id, given.external_review_id collate "C"`,
});

/**
 * Claims event ids for ever and inserts reviews under ids of `lookUp`. It fails if somebody else has claimed or inserted
 * one of them since they were looked up, and with it the transaction.
 */
export async function insertNew(
  tx: Tx,
  claims: readonly { readonly slug: string; readonly id: string }[],
  created: readonly ReviewState[],
  now: Date,
): Promise<void> {
  const given = created.map((one) => ({
    site_id: one.siteId,
    external_review_id: one.externalReviewId,
    ...reported(one),
  }));
  await tx.run(insertion, { claims, given, now });
}

const update = statement({
  name: "providers.updateReviews",
  reason: "Hot; an update from a parameter that is a table.",
  params: {
    given: rows({ id: reviews.id, ...REPORTED, removed_at: reviews.removedAt }),
    ids: list(reviews.id),
    now: instant,
  },
  columns: {},
  text: ({ given, ids, now }) => sql`
    update reviews r
       set rate = given.rate, reviewer = given.reviewer, reviewer_email = given.reviewer_email,
           content = given.content, profanity = given.profanity, reviewed_at = given.reviewed_at,
           removed_at = given.removed_at, updated_at = ${now}
      from ${given}
     where r.id = given.id and r.id = any((select ${ids}::integer[])::integer[])`,
});

export async function updateReviews(
  tx: Tx,
  changed: readonly ReviewState[],
  now: Date,
): Promise<void> {
  const given = changed.map((one) => ({ ...reported(one), removed_at: one.removedAt }));
  await tx.run(update, { given, ids: changed.map(({ id }) => id), now });
}

const axes = statement({
  name: "providers.updateSites",
  reason: "Hot; an update from a parameter that is a table.",
  params: {
    given: rows({
      id: storeReviewSites.id,
      pull_connected: storeReviewSites.pullConnected,
      pull_error_code: storeReviewSites.pullErrorCode,
      post_connected: storeReviewSites.postConnected,
      post_error_code: storeReviewSites.postErrorCode,
    }),
    ids: list(storeReviewSites.id),
  },
  columns: {},
  text: ({ given, ids }) => sql`
    update store_review_sites l
       set pull_connected = given.pull_connected, pull_error_code = given.pull_error_code,
           post_connected = given.post_connected, post_error_code = given.post_error_code
      from ${given}
     where l.id = given.id and l.id = any((select ${ids}::integer[])::integer[])`,
});

export async function updateSites(tx: Tx, changed: readonly Site[]): Promise<void> {
  const given = changed.map(({ id, pull, post }) => ({
    id,
    pull_connected: pull.connected,
    pull_error_code: pull.errorCode,
    post_connected: post.connected,
    post_error_code: post.errorCode,
  }));
  await tx.run(axes, { given, ids: changed.map(({ id }) => id) });
}
