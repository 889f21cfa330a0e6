import { and, desc, eq, gte, lt, sql, type SQL } from "drizzle-orm";

import { isAttemptOf } from "../../../db/attempt-conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { stores } from "../../../db/schema/companies.ts";
import { outbox, skippedEntries } from "../../../db/schema/outbox.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import {
  instant,
  list,
  nullable,
  oneOf,
  selected,
  statement,
  value,
} from "../../../db/statement.ts";
import type { AttemptSummary, Outcome } from "../delivery-model.ts";
import { LANE_LOOKED_AT, type AttemptTest } from "../message-model.ts";
import type { Subscription } from "../model.ts";
import { isOfSubscription, SUMMARY } from "./attempts.ts";
import { endedRounds } from "./entries.ts";

// What is looked at for a page of messages. Each walk takes a number of rows from where the last one ended, whether they
// fit or not, so that no filter can make a request read more.

/** From `firstId` on, before `endId`. */
export interface IdRange {
  readonly firstId: string;
  readonly endId: string;
}

export interface WalkedAttempt {
  readonly id: string;
  readonly eventId: string;
  readonly startedAt: Date;
  readonly isMatch: boolean;
}

interface AttemptWalk extends IdRange {
  readonly event: string | undefined;
  readonly test: AttemptTest | undefined;
  readonly limit: number;
}

const ANY: AttemptTest = {
  outcomes: ["delivered", "retry", "failed", "interrupted"],
  lowStatus: null,
  highStatus: null,
  isWithoutStatus: false,
  text: null,
};

/** Whether an attempt passes; `is` has the parts of the test as SQL. */
function passes(is: Readonly<Record<keyof AttemptTest, SQL>>): SQL {
  const { outcome, statusCode, errorCode, responseExcerpt } = deliveryAttempts;
  return sql`(${outcome} = any(${is.outcomes}::text[])
    and (${is.lowStatus}::int is null or ${statusCode} between ${is.lowStatus}::int and ${is.highStatus}::int)
    and (not ${is.isWithoutStatus}::boolean or ${statusCode} is null)
    and (${is.text}::text is null
         or strpos(lower(coalesce(${errorCode}, '') || ' ' || coalesce(${responseExcerpt}, '')), lower(${is.text}::text)) > 0))`;
}

function given(test: AttemptTest): Readonly<Record<keyof AttemptTest, SQL>> {
  return {
    outcomes: sql`${sql.param(test.outcomes)}`,
    lowStatus: sql`${test.lowStatus}`,
    highStatus: sql`${test.highStatus}`,
    isWithoutStatus: sql`${test.isWithoutStatus}`,
    text: sql`${test.text}`,
  };
}

/**
 * The next attempts of a subscription from the newest on. Those that were not delivered have an index by outcome, of
 * which each is walked alone; all others are among the newest of any.
 */
export async function walkAttempts(
  db: DbOrTx,
  subscriptionId: string,
  asked: AttemptWalk,
): Promise<WalkedAttempt[]> {
  const { test = ANY, limit } = asked;
  const rare = test.outcomes.includes("delivered") ? [undefined] : test.outcomes;
  const walked: WalkedAttempt[][] = [];
  for (const outcome of rare)
    walked.push(await walkOne(db, subscriptionId, { ...asked, test, outcome }));
  return mergeWalks(walked, limit);
}

/** Beyond the end of a walk that was cut nothing is known, so the others are cut there as well. */
function mergeWalks(walked: readonly WalkedAttempt[][], limit: number): WalkedAttempt[] {
  return walked
    .flat()
    .toSorted((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit);
}

function walkOne(
  db: DbOrTx,
  subscriptionId: string,
  asked: AttemptWalk & { readonly test: AttemptTest; readonly outcome: Outcome | undefined },
): Promise<WalkedAttempt[]> {
  const { id, eventId, startedAt, outcome } = deliveryAttempts;
  return db
    .select({ id, eventId, startedAt, isMatch: sql`${passes(given(asked.test))}`.mapWith(Boolean) })
    .from(deliveryAttempts)
    .where(
      and(
        isOfSubscription(subscriptionId, asked.event),
        asked.outcome === undefined
          ? undefined
          : and(eq(outcome, asked.outcome), sql`${outcome} <> 'delivered'`),
        gte(id, asked.firstId),
        lt(id, asked.endId),
      ),
    )
    .orderBy(desc(id))
    .limit(asked.limit);
}

export interface WalkedEntry {
  readonly sequence: number;
  readonly eventId: string;
  readonly event: string;
  readonly recordedAt: Date;
}

/** Which entries: the queued ones, those that wait for a retry, those that were or are to be skipped, or all. */
export type EntryKind = "queued" | "waiting" | "skipped" | "any";

interface EntryWalk {
  readonly kind: EntryKind;
  readonly below: number;
  readonly limit: number;
}

const ROW = sql`o.sequence, o.event_id, o.event, o.recorded_at`;
const EVENT = sql`h.sequence, h.event_id, h.event, h.recorded_at`;

/** Rows `o` of `outbox`, and events `h` of the log, of each kind; `s` is the subscription and `f` its offset. */
const ROWS: Readonly<Record<EntryKind, SQL>> = {
  any: sql`true`,
  queued: sql`o.sequence > f.skipped_through and o.skipped_at is null`,
  waiting: sql`o.sequence > f.skipped_through and o.skipped_at is null and o.state = 'waiting'`,
  skipped: sql`(o.sequence <= f.skipped_through or o.skipped_at is not null)`,
};
const QUEUED_EVENTS = (below: SQL, limit: SQL) => sql`
           (select ${EVENT} from review_history h
             where h.subscription_number = s.number and h.sequence > f.settled_through and h.sequence < ${below}
             order by h.sequence desc limit ${limit})`;
const SKIPPED_EVENTS = (below: SQL, limit: SQL) => sql`
           (select e.* from (select first, last from outbox_skips where subscription_id = s.id
                              order by last desc) k
             cross join lateral (
                   select ${EVENT} from review_history h
                    where h.subscription_number = s.number and h.sequence between k.first and k.last
                      and h.sequence < ${below}
                    order by h.sequence desc limit ${limit}) e
             limit ${limit})`;
const EVENTS: Readonly<Record<EntryKind, readonly (typeof QUEUED_EVENTS)[]>> = {
  any: [QUEUED_EVENTS, SKIPPED_EVENTS],
  queued: [QUEUED_EVENTS],
  waiting: [],
  skipped: [SKIPPED_EVENTS],
};

const walking = (kind: EntryKind) =>
  statement({
    name: `messages.walk.${kind}`,
    reason: "Merges bounded walks of the log and of what has rows.",
    params: { id: outbox.subscriptionId, below: outbox.sequence, limit: value("bigint") },
    columns: {
      sequence: outbox.sequence,
      eventId: outbox.eventId,
      event: outbox.event,
      recordedAt: outbox.recordedAt,
    },
    text: ({ id, below, limit }) => sql`
    select e.sequence, e.event_id as "eventId", e.event, e.recorded_at as "recordedAt"
      from (select s.id, s.shard, s.number from webhook_subscriptions s where s.id = ${id}) s
     cross join lateral (select * from outbox_offsets where subscription_id = s.id) f
     cross join lateral (
           (select ${ROW} from outbox o
             where o.shard = s.shard and o.subscription_id = s.id and o.sequence < ${below} and ${ROWS[kind]}
             order by o.sequence desc limit ${limit})
           ${sql.join(
             EVENTS[kind].map((events) => sql` union all ${events(below, limit)}`),
             sql``,
           )}) e
     order by e.sequence desc limit ${limit}`,
  });
const WALKS = {
  any: walking("any"),
  queued: walking("queued"),
  waiting: walking("waiting"),
  skipped: walking("skipped"),
};

/** The next entries of a subscription below a sequence, the last first, queued or skipped. */
export function walkEntries(
  db: DbOrTx,
  id: string,
  { kind, below, limit }: EntryWalk,
): Promise<WalkedEntry[]> {
  return db.run(WALKS[kind], { id, below, limit });
}

const standing = statement({
  name: "messages.standing",
  reason: "Built on the SQL of ended rounds, which entries.ts has, for many events at once.",
  params: {
    id: outbox.subscriptionId,
    eventIds: list(outbox.eventId),
    since: instant,
    firstAttempt: deliveryAttempts.id,
  },
  columns: {
    eventId: outbox.eventId,
    event: outbox.event,
    sequence: outbox.sequence,
    state: oneOf(["pending", "waiting", "delivered", "failed", "skipped"]),
    settledAt: nullable(skippedEntries.skippedAt),
    createdAt: outbox.recordedAt,
    reviewId: nullable(reviews.id),
    externalReviewId: nullable(reviews.externalReviewId),
    rate: nullable(reviews.rate),
    storeId: nullable(reviewHistory.storeId),
    storeName: nullable(stores.name),
  },
  text: ({ id, eventIds, since, firstAttempt }) => sql`
    select e.event_id as "eventId", e.event, e.sequence, e.state, e.settled_at as "settledAt",
           coalesce(h.recorded_at, e.recorded_at) as "createdAt", r.id as "reviewId",
           r.external_review_id as "externalReviewId", r.rate, h.store_id as "storeId", s.name as "storeName"
      from unnest(${eventIds}::text[]) as given(event_id)
     cross join lateral (
            select * from (
              select event_id, event, sequence, round, state, null::timestamptz as settled_at, review_history_id, recorded_at
                from queued_entries
               where event_id = given.event_id and subscription_id || '' = ${id}
               union all
              select event_id, event, sequence, round, state, settled_at, review_history_id, recorded_at
                from (${endedRounds(id, sql`given.event_id`, { since, firstAttempt })}) ended) rounds
             order by round desc, sequence desc limit 1) e
      left join lateral (select * from review_history where id = e.review_history_id) h on true
      left join lateral (select * from reviews where id = h.review_id) r on true
      left join lateral (select * from stores where id = h.store_id) s on true`,
});

/** Where these events stand, and what they are about. Nothing of theirs is older than `since`. */
export function standingOf(db: DbOrTx, id: string, eventIds: readonly string[], range: Since) {
  return db.run(standing, { id, eventIds, ...range });
}

/** The same instant twice: as it is, and as the smallest id of an attempt that began then. */
export interface Since {
  readonly since: Date;
  readonly firstAttempt: string;
}

const attempts = statement({
  name: "messages.attempts",
  reason: "The newest attempts of each of many events alone.",
  params: {
    id: deliveryAttempts.subscriptionId,
    eventIds: list(deliveryAttempts.eventId),
    firstAttempt: deliveryAttempts.id,
    firstId: deliveryAttempts.id,
    endId: deliveryAttempts.id,
    outcomes: list(deliveryAttempts.outcome),
    lowStatus: nullable(value("integer")),
    highStatus: nullable(value("integer")),
    isWithoutStatus: value("boolean"),
    text: nullable(value("text")),
    limit: value("bigint"),
  },
  columns: { ...SUMMARY, isMatch: value("boolean") },
  text: ({ id, eventIds, firstAttempt, firstId, endId, limit, ...test }) => sql`
    select found.* from unnest(${eventIds}::text[]) as given(event_id)
     cross join lateral (
            select ${selected(SUMMARY)}, id >= ${firstId} and id < ${endId} and ${passes(test)} as "isMatch"
              from delivery_attempts
             where ${isAttemptOf(sql`delivery_attempts.event_id`, sql`given.event_id`)}
               and subscription_id || '' = ${id} and id >= ${firstAttempt}
             order by id desc limit ${limit}) found`,
});

/** Of one event more attempts than this are not told apart: it was redelivered dozens of times. */
const ATTEMPTS_LOOKED_AT = 200;

/** The newest attempts of these events, the newest of each first; `isMatch` of those that pass within the range. */
export function attemptsOfEvents(
  db: DbOrTx,
  id: string,
  eventIds: readonly string[],
  asked: Pick<Since, "firstAttempt"> & IdRange & { readonly test: AttemptTest | undefined },
): Promise<(AttemptSummary & { readonly isMatch: boolean })[]> {
  const { test = ANY, firstAttempt, firstId, endId } = asked;
  const limit = ATTEMPTS_LOOKED_AT;
  return db.run(attempts, { id, eventIds, firstAttempt, firstId, endId, limit, ...test });
}

const lanes = statement({
  name: "messages.lanes",
  reason: "Joins what is queued to itself, of which it looks at a bounded number.",
  params: {
    id: outbox.subscriptionId,
    shard: outbox.shard,
    heads: list(outbox.sequence),
    byReview: value("boolean"),
    limit: value("bigint"),
  },
  columns: { eventId: outbox.eventId, behind: value("integer") },
  text: ({ id, shard, heads, byReview, limit }) => sql`
    with queued as materialized (
      select e.sequence, e.event_id, case when ${byReview}::boolean then coalesce(e.review_id, 0) else 0 end as lane
        from (select s.id, s.number from webhook_subscriptions s where s.id = ${id}) s
       cross join lateral (select * from outbox_offsets where subscription_id = s.id) f
       cross join lateral (
              (select sequence, event_id, review_id from outbox
                where shard = ${shard} and subscription_id = s.id and not is_test and skipped_at is null
                  and sequence > f.skipped_through order by sequence limit ${limit})
               union all
              (select sequence, event_id, review_id from review_history
                where subscription_number = s.number and sequence > f.settled_through order by sequence limit ${limit})) e
       order by e.sequence limit ${limit})
    select h.event_id as "eventId", count(q.sequence)::int as behind
      from queued h left join queued q on q.lane = h.lane and q.sequence > h.sequence
     where h.sequence = any(${heads}::bigint[])
     group by h.event_id`,
});

/** How many entries wait behind each of these, which wait for a retry; of those that are queued first. */
export async function waitingBehind(
  db: DbOrTx,
  { id, shard, ordering }: Pick<Subscription, "id" | "shard" | "ordering">,
  heads: readonly number[],
): Promise<ReadonlyMap<string, number>> {
  if (heads.length === 0) return new Map();
  const byReview = ordering === "review";
  const found = await db.run(lanes, { id, shard, heads, byReview, limit: LANE_LOOKED_AT });
  return new Map(found.map(({ eventId, behind }) => [eventId, behind]));
}
