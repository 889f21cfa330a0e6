import { and, desc, eq, gt, gte, lt, lte, sql, type SQL } from "drizzle-orm";

import { isAttemptOf } from "../../../db/attempt-conditions.ts";
import type { Db, DbOrTx } from "../../../db/client.ts";
import { markedThrough } from "../../../db/marks.ts";
import { planWalks } from "../../../db/planning.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { stores } from "../../../db/schema/companies.ts";
import { outbox, settledEntries } from "../../../db/schema/outbox.ts";
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
export function walkAttempts(
  db: Db,
  subscriptionId: string,
  asked: AttemptWalk,
): Promise<WalkedAttempt[]> {
  const { test = ANY, limit } = asked;
  const rare = test.outcomes.includes("delivered") ? [undefined] : test.outcomes;
  return db.transaction(async (tx) => {
    await planWalks(tx);
    const walked: WalkedAttempt[][] = [];
    for (const outcome of rare)
      walked.push(await walkOne(tx, subscriptionId, { ...asked, test, outcome }));
    return mergeWalks(walked, limit);
  });
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

/** The next entries of a subscription below a sequence, the last first, queued or skipped. */
export async function walkEntries(
  db: Db,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  asked: EntryWalk,
): Promise<WalkedEntry[]> {
  const { kind, limit } = asked;
  return db.transaction(async (tx) => {
    await planWalks(tx);
    const queued = await walkQueued(tx, { id, shard }, asked);
    const hasSettled = kind === "any" || kind === "skipped";
    const settled = hasSettled ? await walkSettled(tx, id, asked) : [];
    return [...queued, ...settled].toSorted((a, b) => b.sequence - a.sequence).slice(0, limit);
  });
}

function walkQueued(
  db: DbOrTx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  { kind, below, limit }: EntryWalk,
): Promise<WalkedEntry[]> {
  const { sequence, eventId, event, recordedAt, state, subscriptionId } = outbox;
  const marked = markedThrough(sql`${id}`);
  const only = {
    any: undefined,
    queued: gt(sequence, marked),
    // A literal, for the partial index.
    waiting: and(gt(sequence, marked), sql`${state} = 'waiting'`),
    skipped: lte(sequence, marked),
  }[kind];
  return db
    .select({ sequence, eventId, event, recordedAt })
    .from(outbox)
    .where(and(eq(outbox.shard, shard), eq(subscriptionId, id), lt(sequence, below), only))
    .orderBy(desc(sequence))
    .limit(limit);
}

function walkSettled(
  db: DbOrTx,
  id: string,
  { below, limit }: Omit<EntryWalk, "kind">,
): Promise<WalkedEntry[]> {
  const { sequence, eventId, event, recordedAt, subscriptionId } = settledEntries;
  return db
    .select({ sequence, eventId, event, recordedAt })
    .from(settledEntries)
    .where(and(eq(subscriptionId, id), lt(sequence, below)))
    .orderBy(desc(sequence))
    .limit(limit);
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
    settledAt: nullable(settledEntries.settledAt),
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
                from outbox
               where event_id = given.event_id and subscription_id || '' = ${id} and sequence > ${markedThrough(id)}
               union all
              select event_id, event, sequence, round, state, settled_at, review_history_id, recorded_at
                from (${endedRounds(id, sql`given.event_id`, { since, firstAttempt })}) ended) rounds
             order by round desc, sequence desc limit 1) e
      left join lateral (select * from review_history where id = e.review_history_id offset 0) h on true
      left join lateral (select * from reviews where id = h.review_id offset 0) r on true
      left join lateral (select * from stores where id = h.store_id offset 0) s on true`,
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
      select sequence, event_id, case when ${byReview}::boolean then coalesce(review_id, 0) else 0 end as lane
        from outbox
       where shard = ${shard} and subscription_id = ${id} and not is_test and sequence > ${markedThrough(id)}
       order by sequence limit ${limit}
    )
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
