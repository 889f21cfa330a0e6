import type { Db } from "../../db/client.ts";
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

/**
 * Dispatches a due batch slot (contract 7.14): in one transaction the events that wait become entries of the
 * outbox, review by review, and the cursor advances. A subscription that is no longer due, active or there changes
 * nothing. What commits while this runs is not seen, and falls into the next window.
 */
export async function dispatchBatch(db: Db, batch: BatchDispatch): Promise<BatchResult> {
  return db.transaction(async (tx) => {
    if (!(await queries.holdLease(tx, batch.dispatcherId))) return { fenced: true, jobs: 0 };
    const sequence = await queries.holdSequence(tx, batch.subscriptionId);
    const due = await queries.dueBatch(tx, batch.subscriptionId, batch.now);
    if (sequence === undefined || due === undefined) return { fenced: false, jobs: 0 };
    const jobs = await queries.moveToOutbox(tx, { ...batch, ...due, sequence });
    const next = nextBatchAt(due.dueAt, due.intervalHours * batch.hourMs, batch.now);
    await queries.advanceCursor(tx, { subscriptionId: batch.subscriptionId, now: batch.now, next });
    return { fenced: false, jobs };
  });
}
