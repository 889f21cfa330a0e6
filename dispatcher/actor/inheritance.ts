import { SEND_AHEAD } from "./lane.ts";
import type { Entry } from "./entry.ts";

/** Of one lane a process has at most one entry under way, and these many whose answer is not committed (contract 7.4). */
const PER_LANE = SEND_AHEAD + 1;
/** Lanes of one subscription that a process can have sent from without a record: fewer than this in all it does. */
const MAX_LANES = 4_096;

/**
 * What an actor knows of a subscription whose shard a dead process held: which attempts may have been made by it, so that
 * their records say so. These are the first entries of each lane that were due at the takeover and there at the first
 * load, and nothing else.
 */
export interface Inheritance {
  /** When the shard was taken over. */
  readonly at: Date;
  /** The last sequence that there was at the first load; undefined until then. */
  lastSequence: number | undefined;
  /** Of each lane that a load showed, how many entries were marked and which was looked at last. */
  readonly lanes: Map<string, { marked: number; last: number }>;
  /** The sequences of the entries that may have been sent, until their attempt is recorded. */
  readonly marked: Set<number>;
  /** Every lane was seen. */
  isComplete: boolean;
}

export function createInheritance(at: Date): Inheritance {
  return { at, lastSequence: undefined, lanes: new Map(), marked: new Set(), isComplete: false };
}

/** Looks at an entry that a load has shown; those of a lane come in their order. */
export function inherit(inheritance: Inheritance, lane: string, entry: Entry): void {
  const { at, lastSequence, lanes, marked, isComplete } = inheritance;
  if (isComplete || entry.sequence > (lastSequence ?? 0)) return;
  let seen = lanes.get(lane);
  if (seen === undefined) {
    if (lanes.size >= MAX_LANES) return;
    lanes.set(lane, (seen = { marked: 0, last: 0 }));
    // Behind a head that waited for its retry nothing was sent.
    if (entry.dueAt !== null && entry.dueAt > at) seen.marked = PER_LANE;
  }
  if (entry.sequence <= seen.last || seen.marked >= PER_LANE) return;
  seen.last = entry.sequence;
  if (entry.dueAt !== null && entry.dueAt > at) return;
  seen.marked += 1;
  marked.add(entry.sequence);
}

/** Whether so many of a lane were marked that no more can have been sent. */
export function isSeen({ lanes }: Inheritance, lane: string): boolean {
  return (lanes.get(lane)?.marked ?? 0) >= PER_LANE;
}

/** Whether nothing is left to be repeated. */
export function isResolved({ isComplete, marked }: Inheritance): boolean {
  return isComplete && marked.size === 0;
}
