import { monotonicFactory } from "ulid";

/** An instant further back than this says that the last one was a clock's error. */
const MAX_BACK_MS = 300_000;

/**
 * Makes ULIDs for instants in ms since the epoch, each above all before it. An instant before the last one is taken for
 * the last one, unless it is minutes before: the clock had jumped ahead, and its time must not stay in the ids.
 */
export function createUlids(): (atMs: number) => string {
  let next = monotonicFactory();
  let lastMs = 0;
  return (atMs) => {
    const isBack = atMs < lastMs - MAX_BACK_MS;
    if (isBack) next = monotonicFactory();
    lastMs = isBack ? atMs : Math.max(lastMs, atMs);
    return next(atMs);
  };
}
