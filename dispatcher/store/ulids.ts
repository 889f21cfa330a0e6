import { encodeTime } from "ulid";

/** An instant further back than this says that the last one was a clock's error. */
const MAX_BACK_MS = 300_000;
const TIME_CHARS = 10;
/** The 16 random characters are two halves: one is drawn for each instant, the other is drawn and then counted up. */
const HALF_CHARS = 8;
/** Counting starts in the lower half of the range, so that it cannot overflow within an instant. */
const START_BELOW = 32 ** HALF_CHARS / 2;

/**
 * Makes ULIDs for instants in ms since the epoch, each above all before it. An instant before the last one is taken for
 * the last one, unless it is minutes before: the clock had jumped ahead, and its time must not stay in the ids.
 *
 * `monotonicFactory` of the package does the same, but encodes the time and increments the text digit by digit for every
 * id: that took 3 % of a dispatcher's CPU under full load.
 */
export function createUlids(): (atMs: number) => string {
  const drawn = new Uint32Array(4);
  let lastMs = -1;
  let prefix = "";
  let count = 0;
  return (atMs) => {
    if (atMs > lastMs || atMs < lastMs - MAX_BACK_MS) {
      lastMs = atMs;
      const [a = 0, b = 0, c = 0, d = 0] = crypto.getRandomValues(drawn);
      prefix = encodeTime(atMs, TIME_CHARS) + encodeTime((a % 2 ** 8) * 2 ** 32 + b, HALF_CHARS);
      count = ((c % 2 ** 8) * 2 ** 32 + d) % START_BELOW;
    } else count += 1;
    return prefix + encodeTime(count, HALF_CHARS);
  };
}
