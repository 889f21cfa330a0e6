import { and, asc, eq, lte, max, sql } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { CHUNK, passLogged, skippedThrough } from "../../../db/log.ts";
import { batchEntries, batchWindows, outbox, outboxSequences } from "../../../db/schema/outbox.ts";
import { instant, statement, value } from "../../../db/statement.ts";
import type { Subscription } from "../model.ts";

/**
 * Holds the sequence until the commit, so that whoever appends goes before or after; answers the last number given
 * out, or nothing if the subscription is deleted. Of the locks of a subscription it is the first: then entries by
 * sequence, then the subscription. Writers of a batch slot share the row; `update` waits for them, too.
 */
export async function lockSequence(
  tx: Tx,
  subscriptionId: string,
  strength: "no key update" | "update" = "no key update",
): Promise<number | undefined> {
  const [row] = await tx
    .select({ last: outboxSequences.lastSequence })
    .from(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .for(strength);
  return row?.last;
}

/** Heads that wait at the most: while so many do, an actor reads no more entries. */
const HEADS_AT_MOST = 256;
/** So many entries are looked through for heads. */
const LOOKED_THROUGH = 10_000;
/** Tests that one transaction settles. */
const TESTS_AT_MOST = 1_000;

const holding = statement({
  name: "entries.holdHeads",
  // The first entry of each review among the first of all, in one bounded walk.
  params: {
    shard: outbox.shard,
    id: outbox.subscriptionId,
    waitMs: value("double precision"),
    heads: value("bigint"),
    limit: value("bigint"),
  },
  text: ({ shard, id, waitMs, heads, limit }) => sql`
    with first as materialized (
      select sequence, review_id from outbox
       where shard = ${shard} and subscription_id = ${id} and not is_test and skipped_at is null
         and sequence > ${skippedThrough(id)}
       order by sequence limit ${limit}
    ), head as (
      select min(sequence) as sequence from first group by review_id order by 1 limit ${heads}
    )
    update outbox o set state = 'waiting', due_at = greatest(o.due_at, now() + ${waitMs}::float8 * interval '1 millisecond')
      from head
     where o.shard = ${shard} and o.subscription_id = ${id} and o.sequence = head.sequence`,
});

/**
 * Has the heads of what is queued wait so long by Postgres' clock, and with them what stands behind them. Where the order is that of the
 * subscription, the first of them holds back all.
 */
export async function holdHeads(
  tx: Tx,
  { id, shard, ordering }: Pick<Subscription, "id" | "shard" | "ordering">,
  waitMs: number,
): Promise<void> {
  await passLogged(tx, id, {
    limit: ordering === "review" ? LOOKED_THROUGH : 1,
    lockMs: LIMITS.writerPool.lockMs,
  });
  await tx.run(holding, { shard, id, waitMs, heads: HEADS_AT_MOST, limit: LOOKED_THROUGH });
}

/**
 * Drops what waits for the next batch, and what a dispatch has left of it, without a trace: it was never queued. Deletes
 * the first thousand; maintenance deletes the others up to `batch_skipped_through`, which no dispatch takes. Under the lock
 * `update` of the sequence: every event that is committed later then has a higher id.
 */
export async function skipBatchEntries(tx: Tx, subscriptionId: string): Promise<void> {
  await tx.delete(batchWindows).where(eq(batchWindows.subscriptionId, subscriptionId));
  const waiting = tx
    .select({ last: max(batchEntries.reviewHistoryId) })
    .from(batchEntries)
    .where(eq(batchEntries.subscriptionId, subscriptionId));
  await tx
    .update(outboxSequences)
    .set({
      batchSkippedThrough: sql`coalesce((${waiting}), ${outboxSequences.batchSkippedThrough})`,
    })
    .where(eq(outboxSequences.subscriptionId, subscriptionId));
  await dropBatchChunk(tx, subscriptionId);
}

/** Deletes the first thousand events that wait for the next batch. Only once no dispatch can take them any more. */
export async function dropBatchChunk(tx: Tx, subscriptionId: string): Promise<void> {
  const { subscriptionId: id, reviewHistoryId } = batchEntries;
  const first = await tx
    .select({ id: reviewHistoryId })
    .from(batchEntries)
    .where(eq(id, subscriptionId))
    .orderBy(asc(reviewHistoryId))
    .limit(CHUNK);
  const last = first.at(-1)?.id;
  if (last === undefined) return;
  await tx.delete(batchEntries).where(and(eq(id, subscriptionId), lte(reviewHistoryId, last)));
}

/** An entry as it is queued; the rest of its row follows from the subscription, or is its beginning. */
type NewEntry = Omit<typeof outbox.$inferInsert, "shard" | "subscriptionId" | "sequence">;

/** Queues entries behind the last one, as which the last of them is counted. Under the lock of the sequence. */
export async function appendEntries(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  lastSequence: number,
  entries: readonly NewEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  await tx
    .update(outboxSequences)
    .set({ lastSequence: lastSequence + entries.length })
    .where(eq(outboxSequences.subscriptionId, id));
  const rows = entries.map((entry, i) => ({ ...entry, sequence: lastSequence + 1 + i }));
  await tx.insert(outbox).values(rows.map((row) => ({ ...row, subscriptionId: id, shard })));
}

const skippingTests = statement({
  name: "entries.skipTests",
  // Bounded, and skips what is locked.
  params: { shard: outbox.shard, id: outbox.subscriptionId, skippedAt: instant },
  text: ({ shard, id, skippedAt }) => sql`
    update outbox set skipped_at = ${skippedAt}
     where ctid = any(array(
             select ctid from outbox
              where shard = ${shard} and subscription_id = ${id} and is_test and skipped_at is null
                and sequence > ${skippedThrough(id)}
              order by sequence limit ${sql.raw(String(TESTS_AT_MOST))} for update skip locked))`,
});

/** Skips queued tests. One whose outcome the dispatcher commits now is left to that commit. */
export async function skipTests(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  skippedAt: Date,
): Promise<void> {
  await tx.run(skippingTests, { id, shard, skippedAt });
}
