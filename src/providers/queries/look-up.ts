import { sql } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import {
  asTable,
  nullable,
  rows,
  selected,
  statement,
  table,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";

// What a group of requests asks of the database, each once for all of them: a parameter that is a table, so that the text
// is the same for any number of rows. The query builder would bind 500 rows one column at a time. Tables are read by
// look-ups behind an offset, and rows to be updated by their ids: a join alone would read all of a table for as long as its
// plan is kept from when there was little. An array is a select of its own: the planner takes that for ten, and any other
// array for as many as it has, so that it would plan each statement anew.

/** What an event refers to, and what is to be held of it. */
const ASKED = {
  slug: reviewSites.slug,
  id: nullable(providerEvents.id),
  siteId: nullable(reviews.storeReviewSiteId),
  externalReviewId: nullable(reviews.externalReviewId),
  /** Whether the review is to be held, if it exists. */
  usesReview: value("boolean"),
  /** Whether it may create the review. */
  createsReview: value("boolean"),
  /** Whether the connection is to be held, because it changes. */
  changesSite: value("boolean"),
};
export type Asked = ValuesOf<typeof ASKED>;

const waiting = statement({
  name: "providers.waitForRows",
  // It takes locks in one order, of two tables.
  params: { given: rows(ASKED) },
  columns: { sites: value("bigint"), reviews: value("bigint") },
  text: ({ given }) => sql`
    with input as materialized (
      select * from ${given}
    ), sites as materialized (
      select distinct "siteId" as id from input where "changesSite" order by 1
    ), known as materialized (
      select r.id
        from input i cross join lateral (
               select id from reviews
                where store_review_site_id = i."siteId" and external_review_id = i."externalReviewId" offset 0) r
       where i."usesReview"
       order by r.id
    )
    select (select count(*) from sites cross join lateral (
                   select from store_review_sites where id = sites.id for no key update) l) as sites,
           (select count(*) from known cross join lateral (
                   select from reviews where id = known.id for no key update) r) as reviews`,
});

/** Waits for the connections and reviews that `lookUp` would hold, and holds them: connections first, each kind by id. */
export async function waitForRows(tx: Tx, given: readonly Asked[]): Promise<void> {
  await tx.run(waiting, { given });
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
/** A review as the database has it, or will have it after this request. */
export type ReviewState = ValuesOf<typeof REVIEW_STATE>;

/** A connection with the provider as it is read and written; slug and name are those of the provider. */
export const SITE = {
  id: storeReviewSites.id,
  slug: reviewSites.slug,
  name: reviewSites.name,
  reviewSiteId: storeReviewSites.reviewSiteId,
  storeId: storeReviewSites.storeId,
  accountId: storeReviewSites.accountId,
  partnerId: storeReviewSites.partnerId,
  pullConnected: storeReviewSites.pullConnected,
  pullErrorCode: storeReviewSites.pullErrorCode,
  postConnected: storeReviewSites.postConnected,
  postErrorCode: storeReviewSites.postErrorCode,
};
export type Site = ValuesOf<typeof SITE>;

const lookingUp = statement({
  name: "providers.lookUp",
  // Hot; four look-ups for each event, two locks that skip what is held, and an id.
  params: {
    given: rows({
      ...ASKED,
      ord: value("integer"),
      showsSecret: value("boolean"),
      showsSite: value("boolean"),
    }),
  },
  columns: {
    ord: value("integer"),
    /** The secret of the provider, with the first event of each. */
    sealedSecret: nullable(reviewSites.sealedSecret),
    /** Whether the event id was claimed. */
    isSeen: value("boolean"),
    /** Whether the connection exists and is one with this provider. */
    isOwnSite: value("boolean"),
    /** Whether the review exists. */
    isKnown: value("boolean"),
    /** The id of the review that it may create; nobody else gets it. */
    newId: nullable(value("integer")),
    /** The connection, with the first event of each; of one that is to be held none if somebody else holds it. */
    site: table(SITE),
    /** The review; none if somebody else holds it. */
    review: table(REVIEW_STATE),
  },
  text: ({ given }) => sql`
    with bound as materialized (
      select set_config('lock_timeout', '100ms', true)
    )
    select given.ord, case when given."showsSecret" then review_sites.sealed_secret end as "sealedSecret",
           e.id is not null as "isSeen", l.id is not null as "isOwnSite", r.id is not null as "isKnown",
           case when given."createsReview" and l.id is not null and e.id is null and r.id is null
                then nextval('reviews_id_seq')::integer end as "newId",
           case when given."showsSite" and l.id is not null then json_build_array(l)
                when given."changesSite" and l.id is not null then ${asTable(sql`
                     select ${selected(SITE)} from store_review_sites where id = l.id for no key update skip locked`)}
                else '[]' end as site,
           case when r.id is null or not given."usesReview" then '[]'
                else ${asTable(sql`
                     select ${selected(REVIEW_STATE)} from reviews where id = r.id for no key update skip locked`)}
                end as review
      from bound cross join ${given}
      left join lateral (select id, slug, name, sealed_secret from review_sites where slug = given.slug offset 0) review_sites on true
      left join lateral (
             select id from provider_events where review_site_id = review_sites.id and id = given.id offset 0) e on true
      left join lateral (
             select ${selected(SITE)} from store_review_sites
              where id = given."siteId" and review_site_id = review_sites.id offset 0) l on true
      left join lateral (
             select id from reviews
              where store_review_site_id = l.id and external_review_id = given."externalReviewId" offset 0) r on true`,
});

/**
 * What is known of each of these, with what is to be held of it held until the commit. It waits for nobody, and whatever
 * the transaction does after it waits for 100 ms at most.
 */
export async function lookUp<A extends Asked>(tx: Tx, asked: readonly A[]) {
  const shown = new Set<string>();
  const given = asked.map((one, ord) => {
    const key = `${one.slug} ${one.siteId}`;
    const showsSite = !one.changesSite && !shown.has(key);
    if (showsSite) shown.add(key);
    const showsSecret = !shown.has(one.slug);
    shown.add(one.slug);
    return { ...one, ord, showsSecret, showsSite };
  });
  const found = await tx.run(lookingUp, { given });
  return found.flatMap(({ ord, site: [site], review: [review], ...facts }) => {
    const one = asked[ord];
    return one === undefined ? [] : { ...one, ...facts, site, review };
  });
}
