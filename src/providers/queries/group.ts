import { sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { instant, list, nullable, rows, statement, value } from "../../../db/statement.ts";
import type { ReviewState, Site } from "../model.ts";
import { REPORTED, REVIEW_STATE, reported, type NewReview } from "../queries.ts";

// What a group of requests asks of the database, each once for all of them. Every table is read by look-ups behind an
// offset: a join would read all of it while it seems to be small. An array is a select of its own: the planner takes that
// for ten, and any other array for as many as it has, so that it would plan each statement anew.

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

const sites = statement({
  name: "providers.groupSites",
  reason: "Hot; it is of several providers.",
  params: { ids: list(storeReviewSites.id) },
  columns: {
    id: storeReviewSites.id,
    slug: reviewSites.slug,
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
  text: ({ ids }) => sql`
    select l.id, p.slug, l.review_site_id as "reviewSiteId", p.name, l.store_id as "storeId",
           l.account_id as "accountId", l.partner_id as "partnerId", l.pull_connected as "pullConnected",
           l.pull_error_code as "pullErrorCode", l.post_connected as "postConnected",
           l.post_error_code as "postErrorCode"
      from unnest((select ${ids}::integer[])) as given(id) cross join lateral (
             select * from store_review_sites where id = given.id offset 0) l cross join lateral (
             select slug, name from review_sites where id = l.review_site_id offset 0) p`,
});

export interface SiteOfProvider extends Site {
  readonly slug: string;
}

/** Connections of any provider; none of them is held. */
export async function sitesOfAny(tx: Tx, ids: readonly number[]): Promise<SiteOfProvider[]> {
  const found = await tx.run(sites, { ids });
  return found.map(({ pullConnected, pullErrorCode, postConnected, postErrorCode, ...site }) => ({
    ...site,
    pull: { connected: pullConnected, errorCode: pullErrorCode },
    post: { connected: postConnected, errorCode: postErrorCode },
  }));
}

const known = statement({
  name: "providers.groupKnown",
  reason:
    "Hot; two look-ups for each event, and the id of the review that it may create, in one statement.",
  params: {
    given: rows({
      ord: value("integer"),
      slug: reviewSites.slug,
      id: providerEvents.id,
      site_id: reviews.storeReviewSiteId,
      external: reviews.externalReviewId,
      creates: value("boolean"),
    }),
  },
  columns: {
    ord: value("integer"),
    isSeen: value("boolean"),
    isKnown: value("boolean"),
    newId: nullable(value("integer")),
  },
  text: ({ given }) => sql`
    select given.ord, e.id is not null as "isSeen", r.id is not null as "isKnown",
           case when given.creates and e.id is null and r.id is null
                then nextval('reviews_id_seq')::integer end as "newId"
      from ${given}
      left join lateral (
             select e.id from (select id from review_sites where slug = given.slug offset 0) p
              cross join lateral (
                    select id from provider_events where review_site_id = p.id and id = given.id offset 0) e
           ) e on true
      left join lateral (
             select id from reviews
              where store_review_site_id = given.site_id and external_review_id = given.external offset 0
           ) r on true`,
});

/** What is looked up of an event. */
export interface Asked extends Pick<ReviewState, "siteId" | "externalReviewId"> {
  readonly slug: string;
  readonly id: string;
  readonly creates: boolean;
}

export interface Known {
  /** Whether its id was claimed. */
  readonly isSeen: boolean;
  /** Whether the review exists. */
  readonly isKnown: boolean;
  /** The id of the review that it may create; nobody else gets it. */
  readonly newId: number | null;
}

/** What is known of each of these events. */
export async function knownOf<A extends Asked>(
  tx: Tx,
  asked: readonly A[],
): Promise<(A & Known)[]> {
  const given = asked.map(({ slug, id, siteId, externalReviewId, creates }, ord) => ({
    ord,
    slug,
    id,
    site_id: siteId,
    external: externalReviewId,
    creates,
  }));
  const found = await tx.run(known, { given });
  return found.flatMap(({ ord, ...facts }) => {
    const one = asked[ord];
    return one === undefined ? [] : { ...one, ...facts };
  });
}

const locking = statement({
  name: "providers.holdReviews",
  reason: "Hot; a parameter that is a table says which reviews, and what is held is left out.",
  params: {
    given: rows({ site_id: reviews.storeReviewSiteId, external: reviews.externalReviewId }),
  },
  columns: REVIEW_STATE,
  text: ({ given }) => sql`
    select r.id, r.store_review_site_id as "siteId", r.external_review_id as "externalReviewId", r.rate,
           r.reviewer, r.reviewer_email as "reviewerEmail", r.content, r.profanity,
           r.reviewed_at as "reviewedAt", r.removed_at as "removedAt"
      from ${given} cross join lateral (
             select * from reviews
              where store_review_site_id = given.site_id and external_review_id = given.external
                for no key update skip locked) r`,
});

/** Those of these reviews that nobody else holds, held until the commit. */
export function holdReviews(
  tx: Tx,
  keys: readonly Pick<ReviewState, "siteId" | "externalReviewId">[],
): Promise<ReviewState[]> {
  const given = keys.map((one) => ({ site_id: one.siteId, external: one.externalReviewId }));
  return tx.run(locking, { given });
}

const writing = statement({
  name: "providers.writeGroup",
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
 * Claims event ids for ever and inserts reviews under ids of `knownOf`. It fails if somebody else has claimed or
 * inserted one of them since they were looked up, and with it the transaction.
 */
export async function writeGroup(
  tx: Tx,
  claims: readonly { readonly slug: string; readonly id: string }[],
  created: readonly (NewReview & Pick<ReviewState, "id">)[],
  now: Date,
): Promise<void> {
  const given = created.map((one) => ({
    id: one.id,
    site_id: one.siteId,
    external_review_id: one.externalReviewId,
    ...reported(one),
  }));
  await tx.run(writing, { claims, given, now });
}
