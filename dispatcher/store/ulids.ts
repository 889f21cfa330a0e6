import { encodeTime } from "ulid";

const TIME_CHARS = 10;
const HALF_CHARS = 8;
/** The count begins at random below half of what 8 characters hold: no process lives to see it overflow. */
const START_BELOW = 32 ** HALF_CHARS / 2;
/** An instant further back than this says that the last one was a clock's error. */
const MAX_BACK_MS = 300_000;

/**
 * Makes ULIDs for instants in ms since the epoch, each above all before it. Of the 80 random bits the upper half is
 * drawn for each instant; the lower half is drawn too, and then counted on. An instant before the last one is taken for
 * the last one, unless it is minutes before: the clock had jumped ahead, and its time must not stay in the ids.
 */
export function createUlids(): (atMs: number) => string {
  const drawn = new Uint32Array(4);
  let lastMs = -1;
  let prefix = "";
  let count = 0;
  return (atMs) => {
    if (atMs > lastMs || atMs < lastMs - MAX_BACK_MS) {
      lastMs = atMs;
      crypto.getRandomValues(drawn);
      const [a = 0, b = 0, c = 0, d = 0] = drawn;
      prefix = encodeTime(atMs, TIME_CHARS) + encodeTime((a % 256) * 2 ** 32 + b, HALF_CHARS);
      count = ((c % 256) * 2 ** 32 + d) % START_BELOW;
    } else {
      count += 1;
    }
    return prefix + encodeTime(count, HALF_CHARS);
  };
}
