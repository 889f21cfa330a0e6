import { sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../db/schema/providers.ts";
import { reviews } from "../../db/schema/reviews.ts";
import { instant, list, rows, statement, value } from "../../db/statement.ts";
import type { ReviewState, Site } from "./model.ts";

// The intake of a provider's events is measured (`bun run bench ingest`): whatever a request of 500 events brings is one
// parameter of one SQL statement. The query builder would bind 500 rows one column at a time. Tables are read by look-ups
// behind an offset, and rows to be updated by their ids: a join alone would read all of a table for as long as its plan is
// kept from when there was little.

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

const sites = statement({
  name: "providers.sites",
  reason: "Hot; the locks are taken in a materialized CTE, in the order of the ids.",
  params: {
    slug: reviewSites.slug,
    ids: list(storeReviewSites.id),
    locked: list(storeReviewSites.id),
  },
  columns: {
    id: storeReviewSites.id,
    reviewSiteId: storeReviewSites.reviewSiteId,
    name: reviewSites.name,
    storeId: storeReviewSites.storeId,
    accountId: storeReviewSites.accountId,
    partnerId: storeReviewSites.partnerId,
    pullConnected: storeReviewSites.pullConnected,
    pullErrorCode: storeReviewSites.pullErrorCode,
    postConnected: storeReviewSites.postConnected,
    postErrorCode: storeReviewSites.postErrorCode,
  },
  text: ({ slug, ids, locked }) => sql`
    with held as materialized (
      select id, pull_connected, pull_error_code, post_connected, post_error_code
        from store_review_sites where id = any(${locked}::int[])
       order by id for no key update
    )
    select l.id, l.review_site_id as "reviewSiteId", p.name, l.store_id as "storeId",
           l.account_id as "accountId", l.partner_id as "partnerId",
           coalesce(h.pull_connected, l.pull_connected) as "pullConnected",
           case when h.id is null then l.pull_error_code else h.pull_error_code end as "pullErrorCode",
           coalesce(h.post_connected, l.post_connected) as "postConnected",
           case when h.id is null then l.post_error_code else h.post_error_code end as "postErrorCode"
      from store_review_sites l
      join review_sites p on p.id = l.review_site_id
      left join held h on h.id = l.id
     where l.id = any(${ids}::int[]) and p.slug = ${slug}`,
});

/**
 * The provider's connections of these ids; those in `locked` are held until the commit, in the order of their ids.
 * `for no key update` lets others go on inserting reviews of the site.
 */
export async function sitesOf(
  tx: Tx,
  slug: string,
  { ids, locked }: { ids: readonly number[]; locked: readonly number[] },
): Promise<Site[]> {
  const found = await tx.run(sites, { slug, ids, locked });
  return found.map(({ pullConnected, pullErrorCode, postConnected, postErrorCode, ...site }) => ({
    ...site,
    pull: { connected: pullConnected, errorCode: pullErrorCode },
    post: { connected: postConnected, errorCode: postErrorCode },
  }));
}

const claim = statement({
  name: "providers.claimEventIds",
  reason: "Hot; all ids are one parameter, and inserted in one order.",
  params: { slug: reviewSites.slug, ids: value("text"), now: instant },
  columns: { id: providerEvents.id },
  text: ({ slug, ids, now }) => sql`
    insert into provider_events (review_site_id, id, received_at)
    select p.id, i.id, ${now}
      from review_sites p, json_array_elements_text(${ids}::text::json) as i(id)
     where p.slug = ${slug}
     order by i.id collate "C"
    on conflict do nothing
    returning id`,
});

/**
 * Claims event ids for ever and answers those that were free. A request with the same ids waits here until this one
 * has committed or given up; the order of the insert keeps two such requests from waiting for each other.
 */
export async function claimEventIds(
  tx: Tx,
  slug: string,
  ids: readonly string[],
  now: Date,
): Promise<Set<string>> {
  const claimed = await tx.run(claim, { slug, ids: JSON.stringify(ids), now });
  return new Set(claimed.map(({ id }) => id));
}

/** What a provider reports of a review, by the names of its columns. */
export const REPORTED = {
  rate: reviews.rate,
  reviewer: reviews.reviewer,
  reviewer_email: reviews.reviewerEmail,
  content: reviews.content,
  profanity: reviews.profanity,
  reviewed_at: reviews.reviewedAt,
};

export function reported(one: NewReview) {
  return {
    rate: one.rate,
    reviewer: one.reviewer,
    reviewer_email: one.reviewerEmail,
    content: one.content,
    profanity: one.profanity,
    reviewed_at: one.reviewedAt,
  };
}

export type NewReview = Omit<ReviewState, "id" | "removedAt">;

const insertion = statement({
  name: "providers.insertReviews",
  reason: "Hot; a parameter that is a table, joined to what the rows refer to.",
  params: {
    given: rows({
      site_id: reviews.storeReviewSiteId,
      external_review_id: reviews.externalReviewId,
      ...REPORTED,
    }),
    now: instant,
  },
  columns: {
    id: reviews.id,
    siteId: reviews.storeReviewSiteId,
    externalReviewId: reviews.externalReviewId,
  },
  text: ({ given, now }) => sql`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate,
                         reviewer, reviewer_email, content, profanity, reviewed_at, created_at, updated_at)
    select l.partner_id, l.account_id, l.store_id, l.id, given.external_review_id, given.rate,
           given.reviewer, given.reviewer_email, given.content, given.profanity, given.reviewed_at, ${now}, ${now}
      from ${given} cross join lateral (
             select id, partner_id, account_id, store_id from store_review_sites
              where id = given.site_id offset 0) l
     order by given.site_id, given.external_review_id collate "C"
    on conflict (store_review_site_id, external_review_id) do nothing
    returning id, store_review_site_id as "siteId", external_review_id as "externalReviewId"`,
});

/**
 * Inserts the reviews that do not exist yet and answers those. The unique index decides between two requests that
 * report the same review: the later one waits here, and meets a review that exists.
 */
export async function insertReviews(
  tx: Tx,
  found: readonly NewReview[],
  now: Date,
): Promise<{ id: number; siteId: number; externalReviewId: string }[]> {
  const given = found.map((one) => ({
    site_id: one.siteId,
    external_review_id: one.externalReviewId,
    ...reported(one),
  }));
  return tx.run(insertion, { given, now });
}

/** A review as it is read to decide what follows for it. */
export const REVIEW_STATE = {
  id: reviews.id,
  siteId: reviews.storeReviewSiteId,
  externalReviewId: reviews.externalReviewId,
  rate: reviews.rate,
  reviewer: reviews.reviewer,
  reviewerEmail: reviews.reviewerEmail,
  content: reviews.content,
  profanity: reviews.profanity,
  reviewedAt: reviews.reviewedAt,
  removedAt: reviews.removedAt,
};

const locking = statement({
  name: "providers.lockReviews",
  reason: "Hot; a parameter that is a table says which reviews.",
  params: {
    given: rows({ site_id: reviews.storeReviewSiteId, external: reviews.externalReviewId }),
  },
  columns: REVIEW_STATE,
  text: ({ given }) => sql`
    with known as materialized (
      select r.id
        from ${given} cross join lateral (
               select id from reviews
                where store_review_site_id = given.site_id and external_review_id = given.external offset 0) r
       order by r.id
    )
    select r.id, r.store_review_site_id as "siteId", r.external_review_id as "externalReviewId", r.rate,
           r.reviewer, r.reviewer_email as "reviewerEmail", r.content, r.profanity,
           r.reviewed_at as "reviewedAt", r.removed_at as "removedAt"
      from known cross join lateral (select * from reviews where id = known.id for no key update) r`,
});

/** Locks those of these reviews that exist until the commit, by id, so that no two requests deadlock. */
export function lockReviews(
  tx: Tx,
  keys: readonly Pick<ReviewState, "siteId" | "externalReviewId">[],
): Promise<ReviewState[]> {
  const given = keys.map((one) => ({ site_id: one.siteId, external: one.externalReviewId }));
  return tx.run(locking, { given });
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
  const given = changed.map((one) => ({
    id: one.id,
    ...reported(one),
    removed_at: one.removedAt,
  }));
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
