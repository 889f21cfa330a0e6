import { desc, type Param, sql, type SQL } from "drizzle-orm";

import { isAttemptOf } from "../../../db/conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { stores } from "../../../db/schema/companies.ts";
import { batchEntries, outbox } from "../../../db/schema/outbox.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import {
  list,
  nullable,
  selected,
  statement,
  value,
  type ValuesOf,
} from "../../../db/statement.ts";
import { addMs, fromMs } from "../../lib/clock.ts";
import { OUTCOMES } from "../delivery-model.ts";
import type { AttemptCondition, DeliveryCursor, DeliveryFilter } from "../delivery-list-model.ts";
import { attemptsWithin, newestFirst, SUMMARY } from "./attempts.ts";

/*
 * Bounded reads for a page of deliveries. A walk reads a given number of rows below its cursor, whether or not they
 * match the filter, so that no filter can make a request read more.
 */

/** Ids of attempts from `firstId` up to and without `endId`. */
export interface IdRange {
  readonly firstId: string;
  readonly endId: string;
}

/** Attempts in a range of ids, and the condition that they have to meet; undefined if any attempt matches. */
interface AttemptsRead extends IdRange {
  readonly condition: AttemptCondition | undefined;
}

interface Walk extends Pick<DeliveryFilter, "event" | "since" | "until"> {
  readonly cursor: DeliveryCursor;
  readonly limit: number;
  /** Attempts to read, for deliveries that were attempted; undefined if the list reads queued entries instead. */
  readonly attempts: AttemptsRead | undefined;
  /** Queued entries to read, for deliveries without an attempt; undefined if the list reads attempts instead. */
  readonly entries: EntryKind | undefined;
}

/** An attempt or an entry at which a delivery may be listed. `isMatch` is false if the row itself fails the filter. */
export type Candidate = (Pick<WalkedAttempt, "eventId" | "isMatch"> & { readonly at: Date }) &
  ({ readonly attempt: string } | { readonly entry: number });

/**
 * The most milliseconds by which `recorded_at` of entries may deviate from the order of their sequence, because
 * clocks differ and transactions take time.
 */
const MAX_DISORDER_MS = 600_000;

/** Reads the next candidates after the cursor, the newest first. `isEnd` is true if no further candidates follow. */
export async function nextCandidates(
  db: DbOrTx,
  subscriptionId: string,
  { cursor, limit, attempts: wanted, entries: kind, event, since, until }: Walk,
) {
  const entryRows =
    kind === undefined
      ? []
      : await db.run(WALK_STATEMENTS[kind], { id: subscriptionId, below: cursor.entry, limit });
  const attemptRows =
    wanted === undefined
      ? []
      : await walkAttempts(db, subscriptionId, {
          ...wanted,
          endId: cursor.attempt < wanted.endId ? cursor.attempt : wanted.endId,
          event,
          limit,
        });
  const oldest = entryRows.at(-1)?.recordedAt;
  const isPastRange =
    oldest !== undefined && since !== undefined && oldest < addMs(since, -MAX_DISORDER_MS);
  const walks = [
    withDescendingTimes(
      attemptRows.map(({ id: attempt, startedAt: at, ...row }) => ({ ...row, attempt, at })),
      attemptRows.length < limit,
    ),
    withDescendingTimes(
      entryRows.map(({ sequence, eventId, recordedAt: at, event: own }) => ({
        entry: sequence,
        eventId,
        at,
        isMatch:
          (event === undefined || event === own) &&
          (since === undefined || at >= since) &&
          (until === undefined || at < until),
      })),
      entryRows.length < limit || isPastRange,
    ),
  ];
  // Rows older than the end of a walk that reached its limit are left out, because that walk may have further rows
  // between them; the next call reads the left-out rows again.
  const endMs = Math.max(...walks.map((walk) => walk.endMs));
  const rows = walks
    .flatMap((walk) => walk.rows)
    .toSorted((a, b) => b.at.getTime() - a.at.getTime())
    .filter(({ at }) => at.getTime() >= endMs);
  return { rows, isEnd: endMs === Number.NEGATIVE_INFINITY };
}

/**
 * Makes the times of a walk descend: a time that is later than the previous one is replaced by the previous one. A walk
 * follows the order of ids or sequence numbers, which may contradict the times, because the clocks of processes differ.
 * Also returns the instant down to which the walk is complete.
 */
function withDescendingTimes(candidates: readonly Candidate[], isEnd: boolean) {
  let lastMs = Number.POSITIVE_INFINITY;
  const rows = candidates.map((one) => {
    lastMs = Math.min(lastMs, one.at.getTime());
    return { ...one, at: fromMs(lastMs) };
  });
  return { rows, endMs: isEnd ? Number.NEGATIVE_INFINITY : lastMs };
}

const ANY_ATTEMPT: AttemptCondition = { outcomes: OUTCOMES, status: "%", text: "" };

/** The parts of a condition on an attempt: SQL, or the values themselves. */
type ConditionParts = Readonly<Record<keyof AttemptCondition, SQL | Param | string>>;

function meetsCondition({ outcomes, status, text }: ConditionParts): SQL {
  const { outcome, statusCode, errorCode, tlsReason, responseExcerpt } = deliveryAttempts;
  return sql`(${outcome} = any(${outcomes}::text[])
    and coalesce(${statusCode}::text, 'none') like ${status}::text
    and (${text}::text = ''
         or strpos(lower(coalesce(${errorCode}, '') || ' ' || coalesce(${tlsReason}, '') || ' ' || coalesce(${responseExcerpt}, '')), lower(${text}::text)) > 0))`;
}

type WalkedAttempt = Awaited<ReturnType<typeof walkAttempts>>[number];

/**
 * Walks the attempts of a subscription from the newest on. Each outcome other than `delivered` has a partial index and
 * a walk of its own. If the condition includes `delivered`, one walk reads attempts of any outcome, because nearly all
 * are delivered.
 */
function walkAttempts(
  db: DbOrTx,
  subscriptionId: string,
  { condition = ANY_ATTEMPT, limit, ...range }: AttemptsRead & Pick<Walk, "event" | "limit">,
) {
  const { id, eventId, startedAt } = deliveryAttempts;
  const outcomeList = sql.param(condition.outcomes);
  const isMatch = meetsCondition({ ...condition, outcomes: outcomeList }).mapWith(Boolean);
  const columns = { id, eventId, startedAt, isMatch };
  const outcomes = condition.outcomes.includes("delivered") ? [undefined] : condition.outcomes;
  const walks = outcomes.map((outcome) =>
    attemptsWithin(db, columns, subscriptionId, { ...range, outcome })
      .orderBy(desc(id))
      .limit(limit),
  );
  return newestFirst(walks, limit);
}

/** Kinds of entries: queued, queued and waiting for a retry, held for an inactive account, skipped, or all of these. */
export type EntryKind = "queued" | "waiting" | "held" | "skipped" | "any";

const EVENT_COLUMNS = sql`h.sequence, h.event_id, h.event, h.recorded_at`;

const WALK_COLUMNS = {
  sequence: outbox.sequence,
  eventId: outbox.eventId,
  event: outbox.event,
  recordedAt: outbox.recordedAt,
};

/** Parts of a walk that read queued and skipped events `h` of the log. `s` is the subscription, `f` its offset. */
const QUEUED_EVENTS = (below: SQL, limit: SQL) => sql` union all
           (select ${EVENT_COLUMNS} from review_history h
             where h.subscription_number = s.number and h.sequence > f.settled_through and h.sequence < ${below}
             order by h.sequence desc limit ${limit})`;
const SKIPPED_EVENTS = (below: SQL, limit: SQL) => sql` union all
           (select e.* from (select first, last from outbox_skips where subscription_id = s.id
                              order by last desc) k
             cross join lateral (
                   select ${EVENT_COLUMNS} from review_history h
                    where h.subscription_number = s.number and h.sequence between k.first and k.last
                      and h.sequence < ${below}
                    order by h.sequence desc limit ${limit}) e
             limit ${limit})`;

/** Makes the statement that merges a walk of the rows `o` of `outbox` with walks of events of the log. */
const walkStatement = (kind: EntryKind, isRow: SQL, ...events: (typeof QUEUED_EVENTS)[]) =>
  statement({
    name: `deliveries.walk.${kind}`,
    // Raw SQL, because the statement is a union of bounded walks in lateral joins, which Drizzle's query builder
    // cannot express.
    params: { id: outbox.subscriptionId, below: outbox.sequence, limit: value("bigint") },
    columns: WALK_COLUMNS,
    text: ({ id, below, limit }) => sql`
    select e.sequence, e.event_id as "eventId", e.event, e.recorded_at as "recordedAt"
      from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id
     cross join lateral (
           (select o.sequence, o.event_id, o.event, o.recorded_at from outbox o
             where o.shard = s.shard and o.subscription_id = s.id and o.sequence < ${below} and ${isRow}
             order by o.sequence desc limit ${limit})${sql.join(events.map((each) => each(below, limit)))}) e
     where s.id = ${id}
     order by e.sequence desc limit ${limit}`,
  });
const isQueued = sql`o.sequence > f.skipped_through and o.skipped_at is null`;
const WALK_STATEMENTS: Readonly<Record<EntryKind, ReturnType<typeof walkStatement>>> = {
  any: walkStatement("any", sql`true`, QUEUED_EVENTS, SKIPPED_EVENTS),
  queued: walkStatement("queued", isQueued, QUEUED_EVENTS),
  // The literal selects the partial index. An event that waits for a retry has a row in `outbox`, so the log is not
  // walked.
  waiting: walkStatement("waiting", sql`${isQueued} and o.state = 'waiting'`),
  held: walkStatement("held", sql`o.is_held and o.sequence > f.skipped_through`),
  skipped: walkStatement("skipped", sql`not (${isQueued})`, SKIPPED_EVENTS),
};

const batchWalk = statement({
  name: "deliveries.walk.batch",
  // Raw SQL, because reviews and stores are read by their ids for each of the few rows of the walk, independent of the
  // number of rows that the planner estimates.
  params: {
    id: batchEntries.subscriptionId,
    below: batchEntries.reviewHistoryId,
    limit: value("bigint"),
  },
  columns: {
    /** The number of rows that the walk has read, also those whose row in `review_history` is missing. */
    walked: value("integer"),
    position: batchEntries.reviewHistoryId,
    eventId: reviewHistory.eventId,
    event: reviewHistory.event,
    recordedAt: reviewHistory.recordedAt,
    reviewId: nullable(reviews.id),
    externalReviewId: nullable(reviews.externalReviewId),
    rate: nullable(reviews.rate),
    storeId: nullable(reviewHistory.storeId),
    storeName: nullable(stores.name),
  },
  text: ({ id, below, limit }) => sql`
    with walk as materialized (
      select review_history_id from batch_entries
       where subscription_id = ${id} and review_history_id < ${below}
         and review_history_id > (select batch_skipped_through from outbox_sequences where subscription_id = ${id})
       order by review_history_id desc limit ${limit})
    select (select count(*)::int from walk) as walked, b.review_history_id as position, h.event_id as "eventId", h.event,
           h.recorded_at as "recordedAt", r.id as "reviewId", r.external_review_id as "externalReviewId", r.rate,
           h.store_id as "storeId", t.name as "storeName"
      from walk b
     cross join lateral (
            select event_id, event, recorded_at, review_id, store_id from review_history
             where id = b.review_history_id offset 0) h
      left join lateral (select id, external_review_id, rate from reviews where id = h.review_id offset 0) r on true
      left join lateral (select name from stores where id = h.store_id offset 0) t on true
     order by b.review_history_id desc`,
});

/** Walks the events that wait for the next batch of a subscription, the newest first. */
export function eventsForBatch(db: DbOrTx, walk: ValuesOf<typeof batchWalk.params>) {
  return db.run(batchWalk, walk);
}

/**
 * The most attempts of an event that are read, the newest first. An event has more attempts than this only after
 * dozens of redeliveries.
 */
const ATTEMPTS_PER_EVENT = 200;

const attemptsStatement = statement({
  name: "deliveries.attempts",
  // Raw SQL, because the statement reads the newest attempts of each of many events by one index probe per event.
  params: {
    id: deliveryAttempts.subscriptionId,
    eventIds: list(deliveryAttempts.eventId),
    firstAttempt: deliveryAttempts.id,
    firstId: deliveryAttempts.id,
    endId: deliveryAttempts.id,
    outcomes: list(deliveryAttempts.outcome),
    status: value("text"),
    text: value("text"),
  },
  columns: { ...SUMMARY, isMatch: value("boolean") },
  text: ({ id, eventIds, firstAttempt, firstId, endId, ...condition }) => sql`
    select found.* from unnest(${eventIds}::text[]) as given(event_id)
     cross join lateral (
            select ${selected(SUMMARY)}, id >= ${firstId} and id < ${endId} and ${meetsCondition(condition)} as "isMatch"
              from delivery_attempts
             where ${isAttemptOf(sql`delivery_attempts.event_id`, sql`given.event_id`)}
               and subscription_id || '' = ${id} and id >= ${firstAttempt}
             order by id desc limit ${ATTEMPTS_PER_EVENT}) found`,
});

/**
 * Reads the newest attempts of events from `firstAttempt` on, the newest of each event first. `isMatch` holds for the
 * attempts in the range that meet the condition.
 */
export function attemptsOfEvents(
  db: DbOrTx,
  id: string,
  eventIds: readonly string[],
  { condition = ANY_ATTEMPT, ...range }: AttemptsRead & { readonly firstAttempt: string },
) {
  return db.run(attemptsStatement, { id, eventIds, ...range, ...condition });
}
