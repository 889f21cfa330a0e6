import { and, eq, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import {
  batchEntries,
  outbox,
  outboxSequences,
  settledEntries,
} from "../../../db/schema/outbox.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, list, nullable, oneOf, statement, value } from "../../../db/statement.ts";
import { fromMs } from "../../lib/clock.ts";
import { TEST_EVENT } from "../../outbox/event.ts";
import type { DeliveryRow, SettledEntry } from "../delivery-model.ts";
import type { Subscription } from "../model.ts";

// What moves rows from table to table, and what numbers them, is SQL; so is what reads the rounds of an event that ended,
// of which each such statement has a part.

/**
 * Holds the sequence until the commit, so that whoever appends goes before or after; answers the last number given
 * out, or nothing if the subscription is deleted. Of the locks of a subscription it is the first: then entries by
 * sequence, then the subscription.
 */
export async function lockSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx
    .select({ last: outboxSequences.lastSequence })
    .from(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .for("no key update");
  return row?.last;
}

const settlement = statement({
  name: "webhooks.settleQueued",
  reason:
    "Locks in one order, in a materialized CTE, and moves the rows from table to table: the builder has no `delete … using`.",
  params: {
    shard: outbox.shard,
    id: outbox.subscriptionId,
    reason: settledEntries.reason,
    now: instant,
  },
  columns: {},
  text: ({ shard, id, reason, now }) => sql`
    with held as materialized (
      select shard, subscription_id, sequence from outbox
       where shard = ${shard} and subscription_id = ${id}
       order by sequence for update
    ), taken as (
      delete from outbox o using held h
       where o.shard = h.shard and o.subscription_id = h.subscription_id and o.sequence = h.sequence
      returning o.*
    )
    insert into settled_entries
      (subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
       batch_job_id, round, reason, recorded_at, settled_at)
    select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
           batch_job_id, round, ${reason}, recorded_at, ${now}
      from taken`,
});

/** Settles all that is queued as skipped, in the order of its sequence, which is the order in which others lock it. */
export async function settleQueued(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  reason: "deleted" | "skipped",
  now: Date,
): Promise<void> {
  await tx.run(settlement, { shard, id, reason, now });
}

/** What waits for the next batch goes without a trace: it was never queued. */
export async function dropBatchEntries(tx: Tx, subscriptionId: string): Promise<void> {
  await tx.delete(batchEntries).where(eq(batchEntries.subscriptionId, subscriptionId));
}

/** An entry as it is queued; the rest of its row follows from the subscription, or is its beginning. */
type NewEntry = Omit<typeof outbox.$inferInsert, "shard" | "subscriptionId">;

/** Queues an entry behind the last one, as which it is counted. Under the lock of the sequence. */
async function appendEntry(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  entry: NewEntry,
): Promise<void> {
  await tx
    .update(outboxSequences)
    .set({ lastSequence: entry.sequence })
    .where(eq(outboxSequences.subscriptionId, id));
  await tx.insert(outbox).values({ ...entry, subscriptionId: id, shard });
}

/** Under the lock of the sequence. */
export async function appendTest(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard" | "payloadMode">,
  { sequence, eventId, now }: { sequence: number; eventId: string; now: Date },
): Promise<void> {
  const { payloadMode } = subscription;
  const test = { event: TEST_EVENT, isTest: true, payloadMode, recordedAt: now };
  await appendEntry(tx, subscription, { sequence, eventId, ...test });
}

export async function isQueued(tx: Tx, subscriptionId: string, eventId: string): Promise<boolean> {
  const rows = await tx
    .select({ sequence: outbox.sequence })
    .from(outbox)
    .where(and(eq(outbox.eventId, eventId), eq(outbox.subscriptionId, subscriptionId)))
    .limit(1);
  return rows.length > 0;
}

/**
 * The rounds of an event that have ended since then: skipped, or with the attempt that was their last. `firstAttempt` is
 * the smallest id of an attempt of that time. Of the few that an event has, the subscription's are picked in a form that
 * no index knows, or the planner might read the index of all that the subscription has.
 */
function endedRounds(
  subscription: SQL,
  eventId: SQL,
  { since, firstAttempt }: { since: SQL; firstAttempt: SQL },
): SQL {
  return sql`
    select event_id, event, sequence, round, is_test, payload_mode, review_history_id, review_id, batch_job_id,
           'skipped' as state, recorded_at, settled_at
      from settled_entries
     where ${isOf(sql`event_id`, eventId)} and subscription_id || '' = ${subscription} and settled_at >= ${since}
     union all
    select a.event_id, a.event, a.sequence, a.round, a.event = ${TEST_EVENT}, a.payload_mode, told.id, told.review_id,
           a.batch_job_id, a.outcome, a.recorded_at, a.started_at + a.duration_ms * interval '1 millisecond'
      from delivery_attempts a left join review_history told on told.event_id = a.event_id
     where ${isOf(sql`a.event_id`, eventId)} and a.subscription_id || '' = ${subscription} and a.id >= ${firstAttempt}
       and a.recorded_at is not null`;
}

/** The same said twice, so that the planner without statistics expects few, and does not compile the plan. */
const isOf = (column: SQL, id: SQL): SQL =>
  sql`${column} = ${id} and ${column} >= ${id} and ${column} <= ${id}`;

const EVER: { since: SQL; firstAttempt: SQL } = {
  since: sql`${fromMs(0)}`,
  firstAttempt: sql`${ulidFloor(fromMs(0))}`,
};

const lastRound = statement({
  name: "webhooks.lastSettled",
  reason: "Of the ended rounds, whose SQL `webhooks.appendUndelivered` needs as well.",
  params: { id: outbox.subscriptionId, eventId: outbox.eventId },
  columns: {
    event: settledEntries.event,
    isTest: settledEntries.isTest,
    payloadMode: settledEntries.payloadMode,
    reviewHistoryId: settledEntries.reviewHistoryId,
    reviewId: settledEntries.reviewId,
    batchJobId: settledEntries.batchJobId,
    round: settledEntries.round,
    recordedAt: settledEntries.recordedAt,
  },
  text: ({ id, eventId }) => sql`
    select event, is_test as "isTest", payload_mode as "payloadMode", review_history_id as "reviewHistoryId",
           review_id as "reviewId", batch_job_id as "batchJobId", round, recorded_at as "recordedAt"
      from (${endedRounds(id, eventId, EVER)}) e
     order by round desc, sequence desc limit 1`,
});

/** The last round of an event that is settled. */
export async function lastSettled(
  tx: Tx,
  id: string,
  eventId: string,
): Promise<SettledEntry | undefined> {
  const [row] = await tx.run(lastRound, { id, eventId });
  return row;
}

/** Queues a settled event again, as its next round. Under the lock of the sequence. */
export async function appendRound(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard">,
  { round, ...settled }: SettledEntry,
  entry: { readonly sequence: number; readonly eventId: string; readonly recordedAt: Date },
): Promise<void> {
  await appendEntry(tx, subscription, { ...settled, ...entry, round: round + 1 });
}

export interface Recovery {
  readonly since: Date;
  readonly until: Date;
  /** Nothing of the window was settled earlier: spares a look at the days before. */
  readonly settledSince: Date;
  /** At most so many, the oldest first. */
  readonly limit: number;
  /** The event values that the subscription is to get. */
  readonly events: readonly string[];
  readonly lastSequence: number;
  readonly now: Date;
}

const recovery = statement({
  name: "webhooks.appendUndelivered",
  reason: "Numbers up to 10,000 events while the sequence is held, from a join of what is missing.",
  params: {
    id: webhookSubscriptions.id,
    shard: webhookSubscriptions.shard,
    partnerId: webhookSubscriptions.partnerId,
    payloadMode: webhookSubscriptions.payloadMode,
    since: instant,
    until: instant,
    settledSince: instant,
    firstAttempt: deliveryAttempts.id,
    limit: value("bigint"),
    events: list(reviewHistory.event),
    lastSequence: outboxSequences.lastSequence,
    now: instant,
  },
  columns: { queued: value("integer") },
  text: ({ id, shard, partnerId, payloadMode, since, until, ...the }) => {
    const ended = { since: the.settledSince, firstAttempt: the.firstAttempt };
    return sql`
    with missed as materialized (
      select h.id, h.event_id, h.event, h.review_id
        from review_history h
       where h.partner_id = ${partnerId} and h.recorded_at >= ${since} and h.recorded_at < ${until}
         and h.event = any(${the.events}::text[])
         and not exists (select from outbox o where o.event_id = h.event_id and o.subscription_id = ${id})
         and not exists (select from batch_entries b where b.subscription_id = ${id} and b.review_history_id = h.id)
         and not exists (select from (${endedRounds(id, sql`h.event_id`, ended)}) d where d.state = 'delivered')
       order by h.id limit ${the.limit}
    ), entries as (
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id,
                          review_id, batch_job_id, round, recorded_at)
      select ${shard}, ${id}, ${the.lastSequence}::bigint + row_number() over (order by m.id), m.event_id, m.event,
             coalesce(s.payload_mode, ${payloadMode}), m.id, m.review_id, s.batch_job_id, coalesce(s.round, 0) + 1,
             ${the.now}
        from missed m
        left join lateral (
               select payload_mode, batch_job_id, round
                 from (${endedRounds(id, sql`m.event_id`, ended)}) d order by round desc limit 1) s on true
      returning 1
    ), counted as (
      update outbox_sequences set last_sequence = last_sequence + (select count(*) from entries)
       where subscription_id = ${id}
    )
    select count(*)::int as queued from entries`;
  },
});

/**
 * Queues the events of a window that were neither delivered nor are queued, in the order of the audit trail; answers
 * how many. An event that was tried before is queued as its next round, with the body that it had. Under the lock of
 * the sequence.
 */
export async function appendUndelivered(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard" | "partnerId" | "payloadMode">,
  window: Recovery,
): Promise<number> {
  const firstAttempt = ulidFloor(window.settledSince);
  const [row] = await tx.run(recovery, { ...subscription, ...window, firstAttempt });
  return row?.queued ?? 0;
}

const delivery = statement({
  name: "webhooks.deliveryOf",
  reason: "Of the ended rounds, whose SQL `webhooks.appendUndelivered` needs as well.",
  params: { id: outbox.subscriptionId, eventId: outbox.eventId },
  columns: {
    eventId: outbox.eventId,
    event: outbox.event,
    sequence: outbox.sequence,
    state: oneOf(["pending", "waiting", "delivered", "failed", "skipped"]),
    settledAt: nullable(settledEntries.settledAt),
    createdAt: outbox.recordedAt,
  },
  text: ({ id, eventId }) => sql`
    select e.event_id as "eventId", e.event, e.sequence, e.state, e.settled_at as "settledAt",
           coalesce(h.recorded_at, e.recorded_at) as "createdAt"
      from (select event_id, event, sequence, round, state, null::timestamptz as settled_at, review_history_id,
                   recorded_at
              from outbox where event_id = ${eventId} and subscription_id = ${id}
             union all
            select event_id, event, sequence, round, state, settled_at, review_history_id, recorded_at
              from (${endedRounds(id, eventId, EVER)}) ended) e
      left join review_history h on h.id = e.review_history_id
     order by e.round desc, e.sequence desc limit 1`,
});

/** Where the last round of an event stands, queued or settled. */
export async function deliveryOf(
  db: DbOrTx,
  id: string,
  eventId: string,
): Promise<DeliveryRow | undefined> {
  const [row] = await db.run(delivery, { id, eventId });
  return row;
}
