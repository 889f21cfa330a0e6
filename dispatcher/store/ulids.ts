import { encodeTime } from "ulid";

/**
 * The largest step back of an instant, in milliseconds, for which the generator keeps its last instant. A larger step
 * means that the clock was wrong before.
 */
const MAX_BACK_MS = 300_000;
const TIME_CHARS = 10;
/**
 * The length of each half of the 16 random characters of a ULID. One half is drawn for each instant; the other is
 * drawn and then incremented for each further ULID of the instant.
 */
const HALF_CHARS = 8;
/** The half that is incremented starts in the lower half of its range, so that it cannot overflow within an instant. */
const START_BELOW = 32 ** HALF_CHARS / 2;

/**
 * Creates a generator of ULIDs for instants in ms since the epoch. Each ULID is greater than all before it: an earlier
 * instant is replaced by the last one. If it is minutes earlier, the clock had jumped ahead, and the generator starts
 * over, so that the wrong time does not stay in the ids.
 *
 * `monotonicFactory` of the package does the same, but encodes the time and increments the text digit by digit for
 * every id: that took 3 % of the CPU of a dispatcher at its highest throughput.
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
