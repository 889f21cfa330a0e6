import { getTableColumns, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { serviceActions } from "../../../db/schema/companies.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import {
  asTable,
  list,
  nullable,
  rows,
  selected,
  statement,
  table,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";
import { type Key, keyOf } from "../../lib/kind-key.ts";

// The statements that look up rows for a batch of requests. Each runs once for all requests and has a table as its
// parameter, so that its text is the same for any number of rows. The query builder would bind 500 rows one column at a
// time.
//
// Two forms keep the plans stable:
//
// - Tables are read through lateral look-ups with `offset 0`, and updated by id. With a plain join, a plan that was
//   cached while the table was empty would scan the whole table.
// - An array is wrapped in a sub-select, because the planner then assumes ten elements. With a bare array it uses the
//   actual length, and would plan every execution anew.

/** The references of one event, and which rows the transaction must lock for it. */
const LOOK_UP_COLUMNS = {
  slug: reviewSites.slug,
  id: nullable(providerEvents.id),
  siteId: nullable(reviews.storeReviewSiteId),
  externalReviewId: nullable(reviews.externalReviewId),
  /** Whether to lock the review, if it exists. */
  usesReview: value("boolean"),
  /** Whether the event may create the review. */
  createsReview: value("boolean"),
  /** Whether to lock the connection, because the event changes it. */
  changesSite: value("boolean"),
};
export type LookUpRow = ValuesOf<typeof LOOK_UP_COLUMNS>;

const waitStatement = statement({
  name: "intake.waitForRows",
  // Raw SQL, because the statement locks rows of two tables in a fixed order.
  params: {
    given: rows(LOOK_UP_COLUMNS),
    siteIds: list(storeReviewSites.id),
    reviewIds: list(reviews.id),
  },
  columns: { sites: value("bigint"), reviews: value("bigint") },
  text: ({ given, siteIds, reviewIds }) => sql`
    with input as materialized (
      select * from ${given}
    ), sites as materialized (
      select "siteId" as id from input where "changesSite" union select unnest((select ${siteIds}::integer[])) order by 1
    ), known as materialized (
      select r.id
        from input i cross join lateral (
               select id from reviews
                where store_review_site_id = i."siteId" and external_review_id = i."externalReviewId" offset 0) r
       where i."usesReview"
       union select unnest((select ${reviewIds}::integer[]))
       order by 1
    )
    select (select count(*) from sites cross join lateral (
                   select from store_review_sites where id = sites.id for no key update) l) as sites,
           (select count(*) from known cross join lateral (
                   select from reviews where id = known.id for no key update) r) as reviews`,
});

/**
 * Waits for the locks of the rows that the look-ups would otherwise skip: connections first, then reviews, each in the
 * order of ids.
 */
export async function waitForRows(
  tx: Tx,
  given: ValuesOf<typeof waitStatement.params>,
): Promise<void> {
  await tx.run(waitStatement, given);
}

/** All columns of a review, because an action returns its resulting state. */
const REVIEW_STATE = getTableColumns(reviews);
/** The state of a review in the database, or as it will be after the batch of requests is written. */
export type ReviewState = ValuesOf<typeof REVIEW_STATE>;

const {
  externalId: _externalId,
  updatedAt: _updatedAt,
  ...connectionColumns
} = getTableColumns(storeReviewSites);

/** The columns of a connection and its provider; `slug` and `name` are the provider's. */
export const SITE = { ...connectionColumns, slug: reviewSites.slug, name: reviewSites.name };
export type Site = ValuesOf<typeof SITE>;

const lookUpStatement = statement({
  name: "intake.lookUpReports",
  // Raw SQL, because the statement runs with every batch. For each event it makes four look-ups, takes two locks with
  // `skip locked`, and draws a new id.
  params: {
    given: rows({
      ...LOOK_UP_COLUMNS,
      ord: value("integer"),
      showsSecret: value("boolean"),
      showsSite: value("boolean"),
    }),
  },
  columns: {
    ord: value("integer"),
    /** The provider's secrets and its setting for timestamps; present only in the first row of each provider. */
    sealedSecret: nullable(reviewSites.sealedSecret),
    sealedPreviousSecret: reviewSites.sealedPreviousSecret,
    requiresTimestamp: nullable(reviewSites.requiresTimestamp),
    /** Whether an earlier request had this event id. */
    isSeen: value("boolean"),
    /** Whether the connection exists and belongs to this provider. */
    isOwnSite: value("boolean"),
    /** The id of the review that the event refers to, if it exists. */
    knownId: nullable(reviews.id),
    /** A new id for the review that the event may create, taken from the sequence of review ids. */
    newId: nullable(value("integer")),
    /**
     * The connection. A row with `changesSite` contains it unless another transaction has locked it; of all other rows,
     * only the first one of each connection contains it.
     */
    site: table(SITE),
    /** The review; absent if another transaction has locked it. */
    review: table(REVIEW_STATE),
  },
  text: ({ given }) => sql`
    with bound as materialized (
      select set_config('lock_timeout', '100ms', true)
    )
    select given.ord, case when given."showsSecret" then review_sites.sealed_secret end as "sealedSecret",
           case when given."showsSecret" then review_sites.sealed_previous_secret end as "sealedPreviousSecret",
           case when given."showsSecret" then review_sites.requires_timestamp end as "requiresTimestamp",
           e.id is not null as "isSeen", l.id is not null as "isOwnSite", r.id as "knownId",
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
      left join lateral (
             select id, slug, name, sealed_secret, sealed_previous_secret, requires_timestamp
               from review_sites where slug = given.slug offset 0) review_sites on true
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
 * The secrets that are valid for a provider's requests now. The previous secret stays valid until maintenance deletes
 * it.
 */
export type LookedUpSecret = Pick<
  Awaited<ReturnType<typeof lookUpReports>>[number],
  "sealedSecret" | "sealedPreviousSecret" | "requiresTimestamp"
>;

/**
 * Loads the state that each event of a provider refers to, and locks the required rows until the commit. Rows that
 * other transactions have locked are skipped. Sets a lock timeout of 100 ms for the rest of the transaction.
 */
export async function lookUpReports<A extends LookUpRow>(tx: Tx, asked: readonly A[]) {
  const shown = new Set<Key<"provider" | "provider-site">>();
  const given = asked.map((one, ord) => {
    const key = keyOf("provider-site", one.slug, one.siteId ?? "");
    const showsSite = !one.changesSite && !shown.has(key);
    if (showsSite) shown.add(key);
    const provider = keyOf("provider", one.slug);
    const showsSecret = !shown.has(provider);
    shown.add(provider);
    return { ...one, ord, showsSecret, showsSite };
  });
  const found = await tx.run(lookUpStatement, { given });
  return found.flatMap(({ ord, site: [site], review: [review], ...facts }) => {
    const one = asked[ord];
    return one === undefined ? [] : { ...one, ...facts, site, review };
  });
}

const subjectColumns = {
  reviewId: nullable(reviews.id),
  siteId: nullable(storeReviewSites.id),
};

const subjectsStatement = statement({
  name: "intake.lookUpSubjects",
  // Raw SQL, because the statement runs with every batch of actions, and takes two locks with `skip locked`.
  params: { given: rows({ ...subjectColumns, ord: value("integer") }) },
  columns: {
    ord: value("integer"),
    /** Whether the review or connection exists. */
    isKnown: value("boolean"),
    /**
     * The connection itself, or that of the review. Absent if it must be locked but another transaction has locked it.
     */
    site: table(SITE),
    /** The review; absent if another transaction has locked it. */
    review: table(REVIEW_STATE),
  },
  text: ({ given }) => sql`
    with bound as materialized (
      select set_config('lock_timeout', '100ms', true)
    )
    select given.ord, l.id is not null as "isKnown",
           case when l.id is null then '[]'
                when given."reviewId" is not null then json_build_array(l)
                else ${asTable(sql`
                     select ${selected(SITE)}
                       from store_review_sites join review_sites on review_sites.id = store_review_sites.review_site_id
                      where store_review_sites.id = l.id for no key update of store_review_sites skip locked`)}
                end as site,
           case when r.id is null then '[]'
                else ${asTable(sql`
                     select ${selected(REVIEW_STATE)} from reviews where id = r.id for no key update skip locked`)}
                end as review
      from bound cross join ${given}
      left join lateral (
             select id, store_review_site_id from reviews where id = given."reviewId" offset 0) r on true
      left join lateral (
             select ${selected(SITE)}
               from store_review_sites join review_sites on review_sites.id = store_review_sites.review_site_id
              where store_review_sites.id = coalesce(r.store_review_site_id, given."siteId") offset 0) l on true`,
});

/**
 * Loads reviews, with their connections, and connections by their ids. Locks what it loads until the commit, except the
 * connections of the reviews. Rows that other transactions have locked are skipped. Sets a lock timeout of 100 ms for
 * the rest of the transaction.
 */
export async function lookUpSubjects<S extends ValuesOf<typeof subjectColumns>>(
  tx: Tx,
  asked: readonly S[],
) {
  if (asked.length === 0) return [];
  const found = await tx.run(subjectsStatement, {
    given: asked.map((one, ord) => ({ ...one, ord })),
  });
  return found.flatMap(({ ord, site: [site], review: [review], isKnown }) => {
    const one = asked[ord];
    return one === undefined ? [] : { ...one, isKnown, site, review };
  });
}

const ACTION_CLAIM = { serviceId: serviceActions.serviceId, id: serviceActions.id };

const claimedStatement = statement({
  name: "intake.claimedActions",
  // Raw SQL, because the ids are one parameter, and each is looked up separately.
  params: { given: rows(ACTION_CLAIM) },
  columns: ACTION_CLAIM,
  text: ({ given }) => sql`
    select given."serviceId", given.id
      from ${given} cross join lateral (
             select from service_actions where service_id = given."serviceId" and id = given.id offset 0) c`,
});

/** Returns those ids of actions that their services have already used. */
export const claimedActions = (tx: Tx, given: readonly ValuesOf<typeof ACTION_CLAIM>[]) =>
  given.length === 0 ? [] : tx.run(claimedStatement, { given });

/** Returns the partners of reviews and connections. */
export async function partnersOf(
  db: DbOrTx,
  {
    reviewIds,
    siteIds,
  }: { readonly reviewIds: readonly number[]; readonly siteIds: readonly number[] },
): Promise<number[]> {
  const [ofReviews, ofSites] = await Promise.all([
    db.selectDistinct({ id: reviews.partnerId }).from(reviews).where(anyOf(reviews.id, reviewIds)),
    db
      .selectDistinct({ id: storeReviewSites.partnerId })
      .from(storeReviewSites)
      .where(anyOf(storeReviewSites.id, siteIds)),
  ]);
  return [...new Set([...ofReviews, ...ofSites].map(({ id }) => id))];
}
