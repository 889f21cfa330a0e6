import { eq, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import type { Run } from "../../../db/session.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, list, rows, statement, value, type ValuesOf } from "../../../db/statement.ts";
import type { RecordedAction } from "../../outbox/event.ts";
import {
  ACTION,
  APPEND,
  appendInput,
  heldOf,
  slotsOf,
  toInput,
  WOKEN,
} from "../../outbox/queries.ts";
import { NEW_REVIEW, toNewReview } from "./write.ts";

const SIGNED_REQUEST = {
  slug: reviewSites.slug,
  sealedSecret: reviewSites.sealedSecret,
  /** Whether the signature covered a timestamp. */
  isTimed: value("boolean"),
};
const EVENT_CLAIM = { slug: reviewSites.slug, id: providerEvents.id };
const CONNECTION = {
  slug: reviewSites.slug,
  id: storeReviewSites.id,
  storeId: storeReviewSites.storeId,
  accountId: storeReviewSites.accountId,
  partnerId: storeReviewSites.partnerId,
};

const insertion = statement({
  name: `${APPEND}.newReviews`,
  // Raw SQL, because this statement is the whole transaction of the most frequent kind of batch.
  params: {
    requests: rows(SIGNED_REQUEST),
    claims: rows(EVENT_CLAIM),
    connections: rows(CONNECTION),
    created: rows(NEW_REVIEW),
    given: rows(ACTION),
    partners: list(webhookSubscriptions.partnerId),
    now: instant,
  },
  columns: WOKEN,
  text: ({ requests, claims, connections, created, given, partners, now }) => sql`
    with asked as materialized (
      select p.id is not null as is_accepted
        from ${requests} left join lateral (
               select id from review_sites
                where slug = requests.slug and requests."sealedSecret" in (sealed_secret, sealed_previous_secret)
                  and (requests."isTimed" or not requires_timestamp) offset 0) p on true
    ), kept as materialized (
      -- Locks no row, but the table against the deletion of a connection (deleteStoreReviewSite) until the commit.
      select from store_review_sites where false for key share
    ), providers as materialized (
      select id, slug from review_sites where slug = any(array(select slug from ${requests}))
    ), connected as materialized (
      select l.*
        from ${connections} left join providers p on p.slug = connections.slug
        left join lateral (
             select id, partner_id, account_id, store_id from store_review_sites
              where id = connections.id and review_site_id = p.id and store_id = connections."storeId"
                and account_id = connections."accountId" and partner_id = connections."partnerId" offset 0) l on true
    ), ${slotsOf(partners, now)}, ${heldOf(sql`skip locked`)}, proved as materialized (
      -- Casting a text to a number aborts the statement if a signature is no longer accepted, a connection differs from
      -- the one in the actions, or a sequence is locked. The statement waits at most 100 ms for a unique index.
      select case when set_config('lock_timeout', '100ms', true) is not null
                       and (select bool_and(is_accepted) from asked)
                       and (select bool_and(id is not null) from connected) and not exists (select from kept)
                       and (select bool_and(id is not null) from held) is not false
                  then 1
                  else ('not a batch of new reviews, of ' || (select count(*) from ${claims}))::integer end as one
    ), claimed as (
      insert into provider_events (review_site_id, id, received_at)
      select p.id, claims.id, ${now}
        from ${claims} join providers p on p.slug = claims.slug cross join proved
       where proved.one = 1
       order by p.id, claims.id collate "C"
      returning review_site_id
    ), fresh as materialized (
      -- Event ids are inserted first, so that a repeated report uses up no ids of reviews.
      select created.*, nextval('reviews_id_seq')::integer as "newId"
        from (select count(*) as events from claimed) claims cross join ${created}
       where claims.events > 0
    ), added as (
      insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, reviewer,
                           reviewer_email, content, profanity, reviewed_at, removed_at, created_at, updated_at)
      overriding system value
      select f."newId", l.partner_id, l.account_id, l.store_id, l.id, f."externalReviewId", f.rate, f.reviewer,
             f."reviewerEmail", f.content, f.profanity, f."reviewedAt", f."removedAt", ${now}, ${now}
        from fresh f join connected l on l.id = f."storeReviewSiteId"
       order by f."storeReviewSiteId", f."externalReviewId" collate "C"
    ), input as materialized (
      select given.ord, given."eventId", given.event, given."inBatch", given."partnerId", given."accountId",
             given."storeId", given."storeReviewSiteId", f."newId" as "reviewId", given.axis, given.actor,
             regexp_replace(given.review::text, '"id":[0-9]+', '"id":' || f."newId")::json as review, given.site,
             given.metadata, given."occurredAt"
        from ${given} join fresh f on f.id = given."reviewId"
    ), ${appendInput(now, sql`held`)}`,
});

interface NewReviews {
  /** The secret with which each request was verified, and whether a timestamp was signed. */
  readonly requests: readonly ValuesOf<typeof SIGNED_REQUEST>[];
  readonly claims: readonly ValuesOf<typeof EVENT_CLAIM>[];
  /** The connections of the reviews, each with the provider, store and tenant for which the actions were composed. */
  readonly connections: readonly ValuesOf<typeof CONNECTION>[];
  /**
   * The reviews to insert. Their ids only connect them with their actions. The statement replaces these ids by new
   * ones.
   */
  readonly created: readonly ValuesOf<typeof NEW_REVIEW>[];
  readonly actions: readonly RecordedAction[];
  readonly partners: readonly number[];
}

/**
 * Locks the sequences of the partners, stores event ids, inserts reviews, and appends the actions on them. Returns the
 * subscriptions to wake. It fails in these cases:
 * - an event id is known, or a review exists;
 * - a sequence is locked;
 * - a connection was deleted or belongs to another store;
 * - a signature is no longer accepted.
 */
export function insertReviews(run: Run, { actions, created, ...rest }: NewReviews, now: Date) {
  const listed = { created: created.map(toNewReview), given: actions.map(toInput) };
  return run(insertion, { ...rest, ...listed, now });
}

/** Returns whether an event was recorded. */
export async function isRecorded(db: DbOrTx, eventId: string): Promise<boolean> {
  return (await db.$count(reviewHistory, eq(reviewHistory.eventId, eventId))) > 0;
}
