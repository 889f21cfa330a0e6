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
import { NEW_REVIEW } from "./write.ts";

const REQUEST = {
  slug: reviewSites.slug,
  sealedSecret: reviewSites.sealedSecret,
  /** Whether the signature covered a timestamp. */
  isTimed: value("boolean"),
};
const CLAIM = {
  slug: reviewSites.slug,
  id: providerEvents.id,
  siteId: storeReviewSites.id,
  storeId: storeReviewSites.storeId,
  accountId: storeReviewSites.accountId,
  partnerId: storeReviewSites.partnerId,
};

const insertion = statement({
  name: `${APPEND}.newReviews`,
  // Raw SQL, because this one statement is the whole transaction of the commonest batch.
  params: {
    requests: rows(REQUEST),
    claims: rows(CLAIM),
    created: rows(NEW_REVIEW),
    given: rows(ACTION),
    partners: list(webhookSubscriptions.partnerId),
    now: instant,
  },
  columns: WOKEN,
  text: ({ requests, claims, created, given, partners, now }) => sql`
    with asked as materialized (
      select p.id is not null as is_accepted
        from ${requests} left join lateral (
               select id from review_sites
                where slug = requests.slug and requests."sealedSecret" in (sealed_secret, sealed_previous_secret)
                  and (requests."isTimed" or not requires_timestamp) offset 0) p on true
    ), kept as materialized (
      -- Locks no row, but the table against the deletion of a connection (deleteStoreReviewSite) until the commit.
      select from store_review_sites where false for key share
    ), claimed_ids as materialized (
      select p.id as review_site_id, claims.id, l.id is not null as is_own_site
        from ${claims}
        left join lateral (select id from review_sites where slug = claims.slug offset 0) p on true
        left join lateral (
             select id from store_review_sites
              where id = claims."siteId" and review_site_id = p.id and store_id = claims."storeId"
                and account_id = claims."accountId" and partner_id = claims."partnerId" offset 0) l on true
    ), ${slotsOf(partners, now)}, ${heldOf(sql`skip locked`)}, proved as materialized (
      -- The cast of a text to a number ends the statement if a signature is not accepted any more, a connection is not what
      -- the actions say, or a sequence is locked. It waits at most 100 ms for a unique index.
      select case when set_config('lock_timeout', '100ms', true) is not null
                       and (select bool_and(is_accepted) from asked)
                       and (select bool_and(is_own_site) from claimed_ids) and not exists (select from kept)
                       and (select bool_and(id is not null) from held) is not false
                  then 1
                  else ('not a batch of new reviews, of ' || (select count(*) from claimed_ids))::integer end as one
    ), claimed as (
      insert into provider_events (review_site_id, id, received_at)
      select review_site_id, id, ${now} from claimed_ids cross join proved where proved.one = 1
       order by review_site_id, id collate "C"
      returning review_site_id
    ), fresh as materialized (
      -- The claims come first, so that a repeated report uses up no ids of reviews.
      select created.*, nextval('reviews_id_seq')::integer as "newId"
        from (select count(*) as events from claimed) claims cross join ${created}
       where claims.events > 0
    ), added as (
      insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, reviewer,
                           reviewer_email, content, profanity, reviewed_at, removed_at, created_at, updated_at)
      overriding system value
      select f."newId", l.partner_id, l.account_id, l.store_id, l.id, f."externalReviewId", f.rate, f.reviewer,
             f."reviewerEmail", f.content, f.profanity, f."reviewedAt", f."removedAt", ${now}, ${now}
        from fresh f cross join lateral (
               select id, partner_id, account_id, store_id from store_review_sites where id = f."storeReviewSiteId" offset 0) l
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
  /** How each request was verified. */
  readonly requests: readonly ValuesOf<typeof REQUEST>[];
  /** The ids of events, each with its connection as the actions have it. */
  readonly claims: readonly ValuesOf<typeof CLAIM>[];
  /** The reviews; their ids tie the actions to them and are replaced by new ones. */
  readonly created: readonly ValuesOf<typeof NEW_REVIEW>[];
  readonly actions: readonly RecordedAction[];
  readonly partners: readonly number[];
}

/**
 * Locks the sequences of the partners, claims event ids, inserts reviews, and appends the actions on them. It fails if an id
 * is known, a review exists, a sequence is locked, a connection is gone or of another store, or a signature is not
 * accepted any more. Returns the subscriptions to wake.
 */
export function insertReviews(run: Run, { actions, ...given }: NewReviews, now: Date) {
  return run(insertion, { ...given, given: actions.map(toInput), now });
}

/** Whether an event was recorded. */
export async function isRecorded(db: DbOrTx, eventId: string): Promise<boolean> {
  return (await db.$count(reviewHistory, eq(reviewHistory.eventId, eventId))) > 0;
}
