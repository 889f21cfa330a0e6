import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { isAttemptOf } from "../../../db/conditions.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { stores } from "../../../db/schema/companies.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { instant, list, nullable, oneOf, statement } from "../../../db/statement.ts";
import { fromMs } from "../../lib/clock.ts";

// The rounds of an event at a subscription, and where it stands.

export const SINCE = { since: instant, firstAttempt: deliveryAttempts.id };

/** The same instant twice: as it is, and as the smallest id of an attempt that began then. */
export function sinceOf(since: Date) {
  return { since, firstAttempt: ulidFloor(since) };
}

/**
 * The rounds of an event at a subscription: queued, skipped since then, or ended by an attempt since then. The views are
 * for look-ups by event: a walk of one in the order of the sequence would sort all that a subscription has. Of the few
 * rounds of an event the subscription's are picked in a form that no index knows, or the planner might read the index of
 * all that the subscription has.
 */
export function roundsOf(
  subscription: SQL,
  eventId: SQL,
  { since, firstAttempt }: Record<keyof typeof SINCE, SQL>,
): SQL {
  const isOne = sql`event_id = ${eventId} and subscription_id || '' = ${subscription}`;
  return sql`
    select event_id, event, sequence, round, is_test, payload_mode, review_history_id, batch_job_id, state, recorded_at,
           null::timestamptz as settled_at
      from queued_entries where ${isOne}
     union all
    select event_id, event, sequence, round, is_test, payload_mode, review_history_id, batch_job_id, 'skipped', recorded_at,
           skipped_at
      from skipped_entries where ${isOne} and skipped_at >= ${since}
     union all
    -- Only a test keeps its own request and has no history. An event whose history row is missing has none either.
    select a.event_id, a.event, a.sequence, a.round, told.id is null and a.composer is null, a.payload_mode, told.id,
           a.batch_job_id, a.outcome, a.recorded_at, a.started_at + a.duration_ms * interval '1 millisecond'
      from delivery_attempts a left join review_history told on told.event_id = a.event_id
     where ${isAttemptOf(sql`a.event_id`, eventId)}
       and a.subscription_id || '' = ${subscription} and a.id >= ${firstAttempt} and a.recorded_at is not null`;
}

const standing = statement({
  name: "events.standing",
  // The last round of each of many events, wherever it is kept.
  params: { id: outbox.subscriptionId, eventIds: list(outbox.eventId), ...SINCE },
  columns: {
    eventId: outbox.eventId,
    event: outbox.event,
    sequence: outbox.sequence,
    round: outbox.round,
    isTest: outbox.isTest,
    payloadMode: outbox.payloadMode,
    batchJobId: outbox.batchJobId,
    state: oneOf(["pending", "waiting", "delivered", "failed", "skipped"]),
    recordedAt: outbox.recordedAt,
    settledAt: nullable(instant),
    createdAt: outbox.recordedAt,
    reviewHistoryId: nullable(reviewHistory.id),
    reviewId: nullable(reviews.id),
    externalReviewId: nullable(reviews.externalReviewId),
    rate: nullable(reviews.rate),
    storeId: nullable(reviewHistory.storeId),
    storeName: nullable(stores.name),
  },
  text: ({ id, eventIds, ...since }) => sql`
    select e.event_id as "eventId", e.event, e.sequence, e.round, e.is_test as "isTest",
           e.payload_mode as "payloadMode", e.batch_job_id as "batchJobId", e.state, e.recorded_at as "recordedAt",
           e.settled_at as "settledAt", coalesce(h.recorded_at, e.recorded_at) as "createdAt",
           h.id as "reviewHistoryId", r.id as "reviewId", r.external_review_id as "externalReviewId", r.rate,
           h.store_id as "storeId", s.name as "storeName"
      from unnest(${eventIds}::text[]) as given(event_id)
     cross join lateral (
            select * from (${roundsOf(id, sql`given.event_id`, since)}) rounds
             order by round desc, sequence desc limit 1) e
      left join review_history h on h.id = e.review_history_id
      left join reviews r on r.id = h.review_id
      left join stores s on s.id = h.store_id`,
});

/** Where these events stand, and what they are about. Nothing of theirs is older than `since`. */
export function standingOf(db: DbOrTx, id: string, eventIds: readonly string[], since: Date) {
  return db.run(standing, { id, eventIds, ...sinceOf(since) });
}

/** Where the last round of an event stands, queued or settled. */
export async function deliveryOf(db: DbOrTx, id: string, eventId: string) {
  const [row] = await standingOf(db, id, [eventId], fromMs(0));
  return row;
}

/** Of a review no more events are looked at than the newest of them. */
const EVENTS_OF_REVIEW = 500;
/** Of a partner so many reviews may have one external id, at as many review sites. */
const REVIEWS_OF_EXTERNAL_ID = 20;

const ofReviews = statement({
  name: "events.ofReviews",
  // The newest events of a few reviews, each by its index, whatever the planner thinks of their number.
  params: {
    partnerId: reviewHistory.partnerId,
    reviewId: nullable(reviews.id),
    externalId: nullable(reviews.externalReviewId),
  },
  columns: { eventId: reviewHistory.eventId },
  text: ({ partnerId, reviewId, externalId }) => sql`
    select h.event_id as "eventId"
      from (select ${reviewId}::integer as id where ${externalId}::text is null
             union all
            (select r.id from companies c
               join store_review_sites l on l.account_id = c.id
               join reviews r on r.store_review_site_id = l.id and r.external_review_id = ${externalId}
              where c.partner_id = ${partnerId} limit ${sql.raw(String(REVIEWS_OF_EXTERNAL_ID))})) wanted
     cross join lateral (
            select id, event_id from review_history
             where review_id = wanted.id and partner_id = ${partnerId}
             order by id desc limit ${sql.raw(String(EVENTS_OF_REVIEW))}) h
     where wanted.id = coalesce(${reviewId}, wanted.id)
     order by h.id desc limit ${sql.raw(String(EVENTS_OF_REVIEW))}`,
});

/** The newest events of a review of the partner, by its id or by the one that it has at its site, which others may share. */
export async function eventsOfReviews(
  db: DbOrTx,
  partnerId: number,
  asked: { readonly reviewId: number | null; readonly externalId: string | null },
): Promise<string[]> {
  const found = await db.run(ofReviews, { partnerId, ...asked });
  return found.map(({ eventId }) => eventId);
}
