import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { isAttemptOf } from "../../../db/conditions.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { stores } from "../../../db/schema/companies.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, list, nullable, oneOf, statement, value } from "../../../db/statement.ts";
import { fromMs } from "../../lib/clock.ts";
import type { Subscription } from "../model.ts";

export const SINCE = { since: instant, firstAttempt: deliveryAttempts.id };

/** Returns an instant twice: as it is, and as the smallest id of an attempt that started then. */
export function sinceOf(since: Date) {
  return { since, firstAttempt: ulidFloor(since) };
}

/**
 * Selects the rounds of an event for a subscription: queued, held for an inactive account, skipped since `since`, or
 * ended by an attempt since then. The views `queued_entries` and `skipped_entries` are for look-ups by event: a read in
 * the order of the sequence would sort all rows of the subscription. The subscription is compared in a form that
 * matches no index. Otherwise, the planner might read all rows of the subscription instead of the few rounds of the
 * event.
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
    select event_id, event, sequence, round, is_test, payload_mode, review_history_id, batch_job_id,
           case when is_held then 'held' else 'skipped' end, recorded_at, case when not is_held then skipped_at end
      from skipped_entries where ${isOne} and skipped_at >= ${since}
     union all
    -- A test stores its own request (payload_format is null) and has no history row. An event whose history row is missing was
    -- composed.
    select a.event_id, a.event, a.sequence, a.round, hist.id is null and a.payload_format is null, a.payload_mode, hist.id,
           a.batch_job_id, a.outcome, a.recorded_at, a.started_at + a.duration_ms * interval '1 millisecond'
      from delivery_attempts a left join review_history hist on hist.event_id = a.event_id
     where ${isAttemptOf(sql`a.event_id`, eventId)}
       and a.subscription_id || '' = ${subscription} and a.id >= ${firstAttempt} and a.recorded_at is not null`;
}

/** The number of a row `h` of the log at its subscription (contract 7.19). */
export const NUMBER = sql.raw("h.sequence - coalesce(h.unlogged, 0)");

const lastRoundsStatement = statement({
  name: "events.lastRounds",
  // Raw SQL, because the statement reads the last round of each of many events from the union of three sources.
  params: { id: outbox.subscriptionId, eventIds: list(outbox.eventId), ...SINCE },
  columns: {
    eventId: outbox.eventId,
    event: outbox.event,
    /** The position of the round in the queue. */
    position: outbox.sequence,
    /** The number of the event at the subscription; the position if it has none. */
    sequence: outbox.sequence,
    round: outbox.round,
    isTest: outbox.isTest,
    payloadMode: outbox.payloadMode,
    batchJobId: outbox.batchJobId,
    state: oneOf(["pending", "waiting", "held", "delivered", "failed", "skipped"]),
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
    select e.event_id as "eventId", e.event, e.sequence as position,
           case when h.subscription_number = (select number from webhook_subscriptions where id = ${id})
                then ${NUMBER} else e.sequence end as sequence, e.round, e.is_test as "isTest",
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

/**
 * Reads the last round of these events, with their reviews and stores. `since` must precede all attempts and skips of
 * these events, because older rows are not read.
 */
export function lastRoundsOf(db: DbOrTx, id: string, eventIds: readonly string[], since: Date) {
  return db.run(lastRoundsStatement, { id, eventIds, ...sinceOf(since) });
}

/**
 * Reads the last round of an event, queued or settled; undefined if the event was never queued for the subscription.
 */
export async function deliveryOf(db: DbOrTx, id: string, eventId: string) {
  const [row] = await lastRoundsOf(db, id, [eventId], fromMs(0));
  return row;
}

/** The most queued entries that are read to count the entries that a retry blocks. */
const LANE_SCAN_LIMIT = 10_000;

const blockedStatement = statement({
  name: "deliveries.lanes",
  // Raw SQL, because the statement joins a bounded number of queued entries to themselves.
  params: {
    id: outbox.subscriptionId,
    sequences: list(outbox.sequence),
    byReview: value("boolean"),
  },
  columns: { eventId: outbox.eventId, count: value("integer") },
  text: ({ id, sequences, byReview }) => sql`
    with queued as materialized (
      select e.sequence, e.event_id, case when ${byReview}::boolean then coalesce(e.review_id, 0) else 0 end as lane
        from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id
       cross join lateral (
              (select sequence, event_id, review_id from outbox
                where shard = s.shard and subscription_id = s.id and not is_test and skipped_at is null
                  and sequence > f.skipped_through order by sequence limit ${LANE_SCAN_LIMIT})
               union all
              (select sequence, event_id, review_id from review_history
                where subscription_number = s.number and sequence > f.settled_through order by sequence limit ${LANE_SCAN_LIMIT})) e
       where s.id = ${id}
       order by e.sequence limit ${LANE_SCAN_LIMIT})
    select h.event_id as "eventId", count(q.sequence)::int as count
      from queued h left join queued q on q.lane = h.lane and q.sequence > h.sequence
     where h.sequence = any(${sequences}::bigint[])
     group by h.event_id`,
});

/**
 * Counts the entries that each of these entries blocks while it waits for a retry: those after it in its lane. Only
 * the first `LANE_SCAN_LIMIT` entries of the queue are read.
 */
export async function waitingBehind(
  db: DbOrTx,
  { id, ordering }: Pick<Subscription, "id" | "ordering">,
  sequences: readonly number[],
): Promise<ReadonlyMap<string, number>> {
  if (sequences.length === 0) return new Map();
  const byReview = ordering === "review";
  const found = await db.run(blockedStatement, { id, sequences, byReview });
  return new Map(found.map(({ eventId, count }) => [eventId, count]));
}

/** The most events of a review, the newest first, that a filter by review finds. */
const EVENTS_OF_REVIEW = 500;
/**
 * The most reviews that a filter by external id finds. Each review site may have a review with the same external id.
 */
const REVIEWS_OF_EXTERNAL_ID = 20;

const ofReviewsStatement = statement({
  name: "events.ofReviews",
  // Raw SQL, because the statement reads the newest events of each review by an index, independent of the number of
  // rows that the planner estimates.
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

/** Finds the newest events of a review, by its id or by its id at the review site, which several reviews may share. */
export async function eventsOfReviews(
  db: DbOrTx,
  partnerId: number,
  review: { readonly reviewId: number | null; readonly externalId: string | null },
): Promise<string[]> {
  const found = await db.run(ofReviewsStatement, { partnerId, ...review });
  return found.map(({ eventId }) => eventId);
}

const ofNumbersStatement = statement({
  name: "events.ofNumbers",
  // Raw SQL, because a recursive query halves the range of positions that a number can have. The log has an index by
  // position, and the number of an event is at most `outbox_sequences.unlogged` below its position.
  params: {
    id: webhookSubscriptions.id,
    numbers: list(outbox.sequence),
    count: value("bigint"),
  },
  columns: { eventId: reviewHistory.eventId },
  text: ({ id, numbers, count }) => sql`
    select h.event_id as "eventId"
      from webhook_subscriptions s join outbox_sequences q on q.subscription_id = s.id
     cross join unnest(${numbers}::bigint[]) with ordinality as given(number, nth)
     cross join lateral (
            with recursive halves(low, high) as (
              select given.number, given.number + q.unlogged
               union all
              select case when m.is_before then m.middle + 1 else low end, case when m.is_before then high else m.middle end
                from halves cross join lateral (
                       select middle, given.number > (
                                select ${NUMBER} from review_history h
                                 where h.subscription_number = s.number and h.sequence >= middle
                                 order by h.sequence limit 1) as is_before
                         from (select (low + high) / 2 as middle) half offset 0) m
               where low < high)
            select low as position from halves where low = high) first
     cross join lateral (
            select h.event_id, h.sequence, ${NUMBER} as number from review_history h
             where h.subscription_number = s.number and h.sequence >= first.position
             order by h.sequence limit ${count}) h
     where s.id = ${id} and h.number - given.number between 0 and ${count}::bigint - 1
     order by given.nth, h.sequence`,
});

/**
 * Finds the events of a subscription with these numbers (contract 7.19), in the given order, and with each the next
 * ones up to `count` numbers. Numbers without an event are left out.
 */
export async function eventsOfNumbers(
  db: DbOrTx,
  id: string,
  numbers: readonly number[],
  count = 1,
): Promise<string[]> {
  const found = await db.run(ofNumbersStatement, { id, numbers, count });
  return found.map(({ eventId }) => eventId);
}
