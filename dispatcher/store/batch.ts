import type { Db, Tx } from "../../db/client.ts";
import { CHUNK } from "../../db/log.ts";
import * as queries from "./batch-queries.ts";
import { nextBatchAt } from "../actor/decide.ts";

export interface BatchDispatch {
  /** A ULID per dispatch: the jobs of the dispatch are named after it. */
  readonly id: string;
  readonly dispatcherId: string;
  readonly subscriptionId: string;
  /** How long an hour of batch_interval_hours is. */
  readonly hourMs: number;
  readonly now: Date;
}

export interface BatchResult {
  /** True if this process was declared dead, and nothing was written. */
  readonly fenced: boolean;
  readonly jobs: number;
}

type Step = BatchResult & {
  /** Something of the window is left. */
  readonly more: boolean;
};

/**
 * Dispatches a due batch slot (contract 7.14): the events that wait become entries of the outbox, review by review, a
 * chunk in each transaction; the last one moves the cursor. The first one says up to where the window goes, so whoever
 * comes after a crash goes on with the same window. A subscription that is no longer due, active or there changes nothing.
 */
export async function dispatchBatch(db: Db, batch: BatchDispatch): Promise<BatchResult> {
  for (let jobs = 0; ;) {
    const step = await db.transaction((tx) => dispatchChunk(tx, batch));
    jobs += step.jobs;
    if (!step.more) return { fenced: step.fenced, jobs };
  }
}

async function dispatchChunk(tx: Tx, batch: BatchDispatch): Promise<Step> {
  const { subscriptionId, now } = batch;
  if (!(await queries.holdLease(tx, batch.dispatcherId)))
    return { fenced: true, jobs: 0, more: false };
  const sequence = await queries.holdSequence(tx, subscriptionId);
  const active = await queries.activeBatch(tx, subscriptionId);
  const window = sequence && active && (await windowOf(tx, batch, { ...active, ...sequence }));
  if (sequence === undefined || active === undefined || window === undefined)
    return { fenced: false, jobs: 0, more: false };
  const { shard, dueAt, intervalHours } = active;
  const { appended, jobs, ...progress } = await queries.appendChunk(tx, window, {
    shard,
    sequence: sequence.last,
    now,
  });
  const more = appended === CHUNK;
  if (more) {
    const { firstId, reviewId } = progress;
    await queries.keepWindow(tx, { ...window, firstId: firstId ?? window.firstId, reviewId });
  } else {
    // A new interval may have put it off while the window was open.
    const next = dueAt > now ? dueAt : nextBatchAt(dueAt, intervalHours * batch.hourMs, now);
    await queries.advanceCursor(tx, { subscriptionId, cursor: window.openedAt, next });
  }
  return { fenced: false, jobs, more };
}

/** The window that somebody has begun, or else a new one, if the batch is due. */
async function windowOf(
  tx: Tx,
  { id, subscriptionId, now }: BatchDispatch,
  { dueAt, skippedThrough }: { readonly dueAt: Date; readonly skippedThrough: number },
): Promise<queries.Window | undefined> {
  const open = await queries.openWindow(tx, subscriptionId);
  if (open !== undefined || dueAt > now) return open;
  const through = await queries.lastWaiting(tx, subscriptionId);
  return {
    subscriptionId,
    id,
    openedAt: now,
    through,
    firstId: skippedThrough + 1,
    reviewId: null,
  };
}
