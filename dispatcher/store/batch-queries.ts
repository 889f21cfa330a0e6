import { and, eq, lte, sql } from "drizzle-orm";

import type { Tx } from "../../db/client.ts";
import { neverNull } from "../../db/never-null.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { outbox, outboxSequences } from "../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { instant, statement, value } from "../../db/statement.ts";

// The statement that moves and numbers the events is SQL.

/** Locks the lease of this process for the transaction; false if it is gone. */
export async function holdLease(tx: Tx, dispatcherId: string): Promise<boolean> {
  const rows = await tx
    .select({ id: dispatchers.id })
    .from(dispatchers)
    .where(eq(dispatchers.id, dispatcherId))
    .for("key share");
  return rows.length === 1;
}

/**
 * Locks the sequence, before the subscription as a delete does. Writers of review actions are not held up: they take
 * this row for key share.
 */
export async function holdSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx
    .select({ last: outboxSequences.lastSequence })
    .from(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .for("no key update");
  return row?.last;
}

interface DueBatch {
  readonly shard: number;
  readonly intervalHours: number;
  readonly dueAt: Date;
}

/** Locks the subscription, if its batch is due. */
export async function dueBatch(
  tx: Tx,
  subscriptionId: string,
  now: Date,
): Promise<DueBatch | undefined> {
  const { id, shard, state, batchIntervalHours, nextBatchAt } = webhookSubscriptions;
  const [row] = await tx
    .select({ shard, intervalHours: batchIntervalHours, dueAt: nextBatchAt })
    .from(webhookSubscriptions)
    .where(and(eq(id, subscriptionId), eq(state, "active"), lte(nextBatchAt, now)))
    .for("no key update");
  if (row === undefined) return undefined;
  const { intervalHours, dueAt } = row;
  return { ...row, intervalHours: neverNull(intervalHours), dueAt: neverNull(dueAt) };
}

const moving = statement({
  name: "batch.moveToOutbox",
  reason: "Moves and numbers the rows in one statement, by windows over what it deletes.",
  params: {
    id: value("text"),
    subscriptionId: outbox.subscriptionId,
    shard: outbox.shard,
    sequence: outbox.sequence,
    now: instant,
  },
  columns: { jobs: value("integer") },
  text: ({ id, subscriptionId, shard, sequence, now }) => sql`
    with taken as (
      delete from batch_entries where subscription_id = ${subscriptionId} returning review_history_id
    ), events as (
      select h.id, h.event_id, h.event, h.review_id, ${id} || '-' || h.review_id as job_id,
             min(h.id) over (partition by h.review_id) as first_id
        -- The condition holds for all: it has the planner expect fewer than are there, and so not compile the plan.
        from (select * from taken where review_history_id + 0 >= 0 and review_history_id + 0 < 1000000000000000000) t
       cross join lateral (
               select id, event_id, event, review_id from review_history where id = t.review_history_id offset 0) h
    ), entries as (
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id,
                          review_id, batch_job_id, recorded_at)
      select ${shard}, ${subscriptionId}, ${sequence}::bigint + row_number() over (order by first_id, id), event_id,
             event, 'full', id, review_id, job_id, ${now}
        from events
      returning 1
    ), counted as (
      update outbox_sequences set last_sequence = last_sequence + (select count(*) from entries)
       where subscription_id = ${subscriptionId}
    )
    select count(distinct job_id)::int as jobs from events`,
});

/** Turns the waiting events into one job per review and one entry per event, in the order of the first event of each review. */
export async function moveToOutbox(
  tx: Tx,
  window: Pick<DueBatch, "shard"> & {
    readonly id: string;
    readonly subscriptionId: string;
    readonly sequence: number;
    readonly now: Date;
  },
): Promise<number> {
  const [row] = await tx.run(moving, window);
  return row?.jobs ?? 0;
}

export async function advanceCursor(
  tx: Tx,
  { subscriptionId, now, next }: { subscriptionId: string; now: Date; next: Date },
): Promise<void> {
  await tx
    .update(webhookSubscriptions)
    .set({ lastBatchDispatchedAt: now, nextBatchAt: next })
    .where(eq(webhookSubscriptions.id, subscriptionId));
}
