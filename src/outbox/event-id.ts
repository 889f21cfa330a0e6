import { ulid } from "ulid";

/** Random bytes that are drawn at once: a ULID takes sixteen. */
const DRAWN = 1_024;

/** The numbers below 1 that ULIDs are made of; by itself `ulid` asks the system for each of them. */
function createRandom(): () => number {
  const bytes = new Uint8Array(DRAWN);
  let used = DRAWN;
  return () => {
    if (used === DRAWN) {
      crypto.getRandomValues(bytes);
      used = 0;
    }
    return (bytes[used++] ?? 0) / 256;
  };
}

const random = createRandom();

/**
 * The id of an action that is recorded now. All of its bits after the time are random, also for those of one instant:
 * the index of attempts by event knows only the first of them.
 */
export function newEventId(now: Date): string {
  return ulid(now.getTime(), random);
}
