import type { Clock } from "./clock.ts";
import { unavailable } from "./problem.ts";

/**
 * Limits the total size of the items of a batch. A single item may exceed the limit; it then forms a batch by itself.
 */
interface SizeBound<Item> {
  readonly sizeOf: (item: Item) => number;
  readonly atMost: number;
}

interface BatchOptions<Item> {
  /** The highest number of items in one batch. */
  readonly items: number;
  readonly sizes?: readonly SizeBound<Item>[];
  /** Maximum number of items that wait for a later batch, and the maximum time in ms that an item waits. */
  readonly waiting: number;
  readonly waitMs: number;
  /**
   * Maximum time in ms that a batch waits for more items before it starts. It applies after a batch of at least
   * `MIN_TO_GATHER` items, because closed-loop clients send their next request immediately after a response. The wait
   * ends early when as many items wait as were in that batch and waited behind it. If absent, a batch never waits.
   */
  readonly gatherMs?: number;
  /**
   * Allows further batches to start, up to `groups` at the same time, when the newest batch has been running for more
   * than `patienceMs`. So a batch that hangs on a broken connection does not block the others. If absent, batches run
   * strictly one after another.
   */
  readonly beside?: { readonly groups: number; readonly patienceMs: number };
}

interface WaitingItem<Item, Result> {
  readonly item: Item;
  readonly sinceMs: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
}

/** Interval in ms of the check for items that have waited too long. One check costs less than one timer per item. */
const CHECK_MS = 1_000;

/**
 * Group commit: processes concurrent items in batches, so that the items of a batch can share one transaction. Items
 * that arrive while a batch runs form the next one, in the order of their arrival. An item that arrives while no batch
 * runs starts one as soon as a turn of the event loop has brought no further item.
 *
 * `process` returns the results in the order of the items. If it throws, every item of the batch rejects with that
 * error. An item rejects with `unavailable` if too many items wait already, or if it has waited for `waitMs`.
 */
export function inBatches<Item, Result>(
  clock: Clock,
  process: (items: readonly Item[]) => Promise<readonly Result[]>,
  options: BatchOptions<Item>,
): (item: Item) => Promise<Result> {
  const waiting: WaitingItem<Item, Result>[] = [];
  const { groups, patienceMs } = options.beside ?? { groups: 1, patienceMs: 0 };
  let [running, newestMs, isChecking] = [0, 0, false];
  // Waits for requests that arrive at the same time, because they are read in several turns of the event loop.
  // Otherwise the first one would form a batch by itself, and all others would wait for it.
  const allArrived = async () => {
    for (let seen = 0; seen < waiting.length && waiting.length < options.items;) {
      seen = waiting.length;
      await nextTurn();
    }
  };
  const gathering = createGatherer(clock, options);
  const run = async () => {
    running += 1;
    while (waiting.length > 0) {
      newestMs = clock.monotonicMs();
      await allArrived();
      await gathering.wait(waiting.length);
      const batch = waiting.splice(0, sizeOfNextBatch(waiting, options));
      const settle = await runBatch(batch, process);
      gathering.answered(batch.length + waiting.length);
      settle();
    }
    running -= 1;
  };
  const isFree = () =>
    running === 0 || (running < groups && clock.monotonicMs() - newestMs > patienceMs);
  const checkWaits = async () => {
    isChecking = true;
    while (waiting.length > 0) {
      await clock.sleep(CHECK_MS);
      const sinceMs = clock.monotonicMs() - options.waitMs;
      while ((waiting[0]?.sinceMs ?? Infinity) < sinceMs) waiting.shift()?.reject(unavailable());
      if (waiting.length > 0 && isFree()) void run();
    }
    isChecking = false;
  };
  return (item) => {
    if (waiting.length >= options.waiting) return Promise.reject(unavailable());
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.push({ item, sinceMs: clock.monotonicMs(), resolve, reject });
    gathering.arrived(waiting.length);
    if (isFree()) void run();
    else if (!isChecking) void checkWaits();
    return promise;
  };
}

/**
 * Minimum size of a batch after which the next batch waits for more items. Smaller batches often arise by chance, from
 * clients that do not send their next request immediately.
 */
const MIN_TO_GATHER = 4;

/**
 * Keeps closed-loop clients in one batch. Without the wait they split into two halves that alternate, because the
 * requests of one half arrive while the other half is being answered. One batch needs one transaction instead of two.
 */
function createGatherer(clock: Clock, { gatherMs = 0, items }: BatchOptions<never>) {
  let [expected, untilMs] = [0, 0];
  let isEnough: AbortController | undefined;
  return {
    async wait(waiting: number): Promise<void> {
      const leftMs = untilMs - clock.monotonicMs();
      if (waiting >= expected || leftMs <= 0) return;
      isEnough = new AbortController();
      await clock.sleep(leftMs, isEnough.signal);
      isEnough = undefined;
    },
    arrived(waiting: number): void {
      if (waiting >= expected) isEnough?.abort("enough");
    },
    answered(present: number): void {
      expected = present < MIN_TO_GATHER ? 0 : Math.min(present, items);
      untilMs = clock.monotonicMs() + gatherMs;
    },
  };
}

/** Returns how many of the waiting items, from the first one on, fit into one batch. */
function sizeOfNextBatch<Item>(
  waiting: readonly Pick<WaitingItem<Item, never>, "item">[],
  { items, sizes = [] }: BatchOptions<Item>,
): number {
  const sums = sizes.map((bound) => ({ ...bound, sum: 0 }));
  let count = 0;
  for (const { item } of waiting) {
    for (const one of sums) one.sum += one.sizeOf(item);
    const isFull = count >= items || sums.some(({ sum, atMost }) => sum > atMost);
    if (count > 0 && isFull) break;
    count++;
  }
  return count;
}

/** Waits until the event loop has turned once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Processes a batch. The returned function settles each item with its result or with the error. */
async function runBatch<Item, Result>(
  batch: readonly WaitingItem<Item, Result>[],
  process: (items: readonly Item[]) => Promise<readonly Result[]>,
): Promise<() => void> {
  // Does nothing if a batch that runs at the same time has taken all waiting items.
  if (batch.length === 0) return () => {};
  try {
    const results = await process(batch.map(({ item }) => item));
    if (results.length !== batch.length)
      throw new Error("`process` must return one result per item.");
    return () => {
      for (const [i, one] of results.entries()) batch[i]?.resolve(one);
    };
  } catch (error) {
    return () => {
      for (const { reject } of batch) reject(error);
    };
  }
}
