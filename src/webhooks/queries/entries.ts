import { and, asc, eq, gt, isNull, max, not, sql } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { anyOfQuery } from "../../../db/conditions.ts";
import { CHUNK, skippedThrough } from "../../../db/log.ts";
import { batchEntries, batchWindows, outbox, outboxSequences } from "../../../db/schema/outbox.ts";
import type { Subscription } from "../model.ts";

/**
 * Locks the sequence of a subscription until the commit, so that no other transaction appends entries before it.
 * Returns the last number in use, or undefined if the subscription was deleted.
 *
 * A transaction locks the sequence of a subscription first, then entries in the order of their sequence, and the
 * subscription last. Writers of events for the next batch lock the sequence `for key share`; only a lock of the
 * strength `update` waits for them.
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

/** The most tests that one transaction skips. */
const MAX_TESTS = 1_000;

/**
 * Drops the events that wait for the next batch, and those that a batch in progress has not queued yet. They never had
 * entries, so no skip is stored for them. The first thousand are deleted now; maintenance deletes the others, and no
 * batch takes events up to `batch_skipped_through`. The caller has locked the sequence with the strength `update`, so
 * that events that are committed later have higher ids.
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

/**
 * Deletes the first thousand events that wait for the next batch. The caller makes sure that no batch takes any of the
 * waiting events.
 */
export async function dropBatchChunk(tx: Tx, subscriptionId: string): Promise<void> {
  const { reviewHistoryId } = batchEntries;
  const isOwn = eq(batchEntries.subscriptionId, subscriptionId);
  const first = tx
    .select({ reviewHistoryId })
    .from(batchEntries)
    .where(isOwn)
    .orderBy(asc(reviewHistoryId))
    .limit(CHUNK);
  await tx.delete(batchEntries).where(and(isOwn, anyOfQuery(reviewHistoryId, first)));
}

/** Deletes the events of an account that wait for the next batch of a subscription. */
export async function dropBatchEntriesOf(
  tx: Tx,
  { id, deliveryKind }: Pick<Subscription, "id" | "deliveryKind">,
  accountId: number,
): Promise<void> {
  if (deliveryKind !== "batch") return;
  const account = sql`(select account_id from review_history where id = ${batchEntries.reviewHistoryId})`;
  await tx
    .delete(batchEntries)
    .where(and(eq(batchEntries.subscriptionId, id), eq(account, accountId)));
}

/** A new entry. The other columns follow from the subscription or have defaults. */
type NewEntry = Omit<typeof outbox.$inferInsert, "shard" | "subscriptionId" | "sequence">;

/** Appends entries after `lastSequence`, and stores the new last number. The caller holds the lock of the sequence. */
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

/**
 * Makes the retry of an entry due now, and with it the entries that wait behind it in its review. Returns false if the
 * entry does not wait for a retry, or if this retry is due already and may be under way.
 */
export async function hastenRetry(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  entry: number,
): Promise<boolean> {
  const { sequence, state, dueAt, behindUntil, skippedAt, isTest, reviewId } = outbox;
  // The clock of PostgreSQL, by which retries are due.
  const now = sql`now()`;
  const isOwn = and(eq(outbox.shard, shard), eq(outbox.subscriptionId, id), isNull(skippedAt));
  const [hastened] = await tx
    .update(outbox)
    .set({ dueAt: now })
    .where(and(isOwn, eq(sequence, entry), eq(state, "waiting"), gt(dueAt, now)))
    .returning({ reviewId });
  if (hastened === undefined) return false;
  const isOfReview = sql`coalesce(${reviewId}, 0) = ${hastened.reviewId ?? 0}`;
  await tx
    .update(outbox)
    .set({ behindUntil: now })
    .where(and(isOwn, isOfReview, gt(behindUntil, now), not(isTest)));
  return true;
}

/**
 * Makes the first retry of a subscription due now. Without a lane per review this is the entry for which all others
 * wait.
 */
export async function hastenFirstRetry(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard">,
): Promise<void> {
  const { id } = subscription;
  const { subscriptionId, sequence, state, skippedAt, isTest } = outbox;
  // The index of the waiting entries has no shard. Without the shard, and with the state as a literal, the planner uses
  // this index and not the primary key, which would find all queued entries.
  const isWaiting = and(eq(subscriptionId, id), sql`${state} = 'waiting'`);
  const isQueued = and(isNull(skippedAt), gt(sequence, skippedThrough(sql`${id}`)));
  const [first] = await tx
    .select({ sequence })
    .from(outbox)
    .where(and(isWaiting, isQueued, not(isTest)))
    .orderBy(asc(sequence))
    .limit(1);
  if (first !== undefined) await hastenRetry(tx, subscription, first.sequence);
}

/** Skips queued tests. A test that the dispatcher has locked is left out, because its outcome is being committed. */
export async function skipTests(
  tx: Tx,
  { id, shard }: Pick<Subscription, "id" | "shard">,
  skippedAt: Date,
): Promise<void> {
  const { sequence } = outbox;
  const isOwn = and(eq(outbox.shard, shard), eq(outbox.subscriptionId, id));
  const isQueued = and(isNull(outbox.skippedAt), gt(sequence, skippedThrough(sql`${id}`)));
  const some = tx
    .select({ sequence })
    .from(outbox)
    .where(and(isOwn, outbox.isTest, isQueued))
    .orderBy(asc(sequence))
    .limit(MAX_TESTS)
    .for("update", { skipLocked: true });
  await tx
    .update(outbox)
    .set({ skippedAt })
    .where(and(isOwn, anyOfQuery(sequence, some)));
}
