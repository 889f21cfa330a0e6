import type { Mark, Settled } from "../../db/marks.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { SWEEP_MS } from "./sweep.ts";

/** Marks as a dispatcher sees them. */
export interface MarkStore {
  open(shards: readonly number[]): Promise<Mark[]>;
  /** Settles the next entries of a mark behind a sequence, those of one chunk. */
  settle(mark: Mark, after: number): Promise<Settled>;
  /** Ends a mark, unless something of it is left or it was written anew. */
  end(mark: Mark): Promise<void>;
}

interface SettleDeps {
  readonly store: { readonly marks: MarkStore };
  readonly clock: Clock;
  readonly log: Log;
}

/** Between two chunks, so that a long walk leaves the stores to those who deliver. */
const PAUSE_MS = 20;

/**
 * Settles what is marked in the shards of this process, a mark after the other. It may stop anywhere: the mark stays
 * until all of it is settled, so that whoever holds the shard goes on.
 */
export async function settleMarks(
  deps: SettleDeps,
  shards: () => readonly number[],
  signal: AbortSignal,
): Promise<void> {
  const { store, clock, log } = deps;
  while (!signal.aborted) {
    try {
      for (const mark of await store.marks.open(shards())) await settle(deps, mark, signal);
    } catch (error) {
      log.warn("marks.unreadable", errorFields(error));
    }
    await clock.sleep(SWEEP_MS, signal);
  }
}

async function settle(
  { store: { marks }, clock, log }: SettleDeps,
  mark: Mark,
  signal: AbortSignal,
): Promise<void> {
  let settled = 0;
  try {
    for (let after: number | null = 0; after !== null && !signal.aborted;) {
      const { taken, last } = await marks.settle(mark, after);
      settled += taken;
      after = last;
      if (last !== null) await clock.sleep(PAUSE_MS, signal);
    }
    if (!signal.aborted) await marks.end(mark);
  } catch (error) {
    // The others are not to wait for it.
    log.warn("mark.unsettled", { subscription_id: mark.subscriptionId, ...errorFields(error) });
  }
  if (settled > 0)
    log.info("mark.settled", { subscription_id: mark.subscriptionId, entries: settled });
}
