import { DISABLE_AFTER_FAILURES } from "./decide.ts";
import type { Subscription } from "./event.ts";
import type { InDoubtAttempts } from "./in-doubt.ts";
import type { Lane } from "./lane.ts";

/** The most entries that an actor holds in memory. */
export const MAX_QUEUED = 64;
/**
 * The limit of the first load of an actor, and of a load of a lane that waited. Often the head of the queue waits or the
 * subscription is disabled, and more entries would be read in vain.
 */
export const FIRST_LOAD = 4;
/**
 * The largest average size in bytes at which a load returns its full number of entries. If entries are larger, it
 * returns fewer, but at least one. Common events have 1 to 2 KB.
 */
export const ENTRY_BYTES = 4 * 1_024;
/** The most simultaneous requests of a subscription with a lane per review. */
export const PARALLEL_REVIEWS = 8;
/** The most test events that a load returns. */
export const MAX_TESTS = 16;
/**
 * The age in milliseconds at which a URL or secret is read again before it is used (contract 7.12: read at each
 * attempt).
 */
const SETTINGS_MAX_AGE_MS = 1_000;

export class Actor {
  readonly id: string;
  readonly shard: number;
  subscription: Subscription | undefined;
  loadedAt: Date | undefined;
  readonly lanes = new Map<string, Lane>();
  /** The number of entries that the actor may hold now: its share of the memory. */
  capacity = MAX_QUEUED;
  /** The highest sequence number that was put into the main lane; the next load reads the entries after it. */
  cursor = 0;
  /**
   * The number of times that the queues were discarded. The result of a load that began before the last time is
   * ignored.
   */
  generation = 0;
  /** The bytes of entries that the other actors leave for this actor to hold, and to read ahead. */
  mayHold = Number.POSITIVE_INFINITY;
  mayReadAhead = Number.POSITIVE_INFINITY;
  /** The bytes of this actor when they were counted last. */
  countedBytes = 0;
  loading = false;
  /** True if the load under way is to bring entries. */
  filling = false;
  /** True if the next load reads the main lane before its wait is over. */
  looksAtHead = false;
  batching = false;
  /** True while a `recheck` is under way. */
  rechecking = false;
  /** True if a wake came since the last load began, so that PostgreSQL may have more entries than that load showed. */
  wanted = false;
  /** True if the last load was cut off at its limit. */
  more = false;
  /** True if the last load returned `MAX_TESTS` due tests, so that there may be more tests. */
  moreTests = false;
  /** The permanent failures in a row, with those whose attempt record is not committed yet. */
  failures = 0;
  /**
   * True if the load under way reads a count of failures that includes every outcome so far, because no attempt record
   * was uncommitted when it began.
   */
  readsFailures = false;
  /** The number of sends in a row that failed on our side. */
  postponed = 0;
  /** The first due time of a review that waits for a retry; such reviews have no lane. */
  nextDueAt: Date | undefined;
  /** The instant of the planned wake; undefined once any wake came. */
  plannedFor: Date | undefined;
  /** The time of the last step in milliseconds since the epoch. */
  steppedMs = 0;
  /** The attempts that a crashed holder of the shard may have made; undefined if no holder crashed. */
  readonly inDoubt: InDoubtAttempts | undefined;
  /** True if the actor sends nothing new, because it will be dropped. */
  stopping = false;

  constructor(id: string, shard: number, inDoubt?: InDoubtAttempts) {
    this.id = id;
    this.shard = shard;
    this.inDoubt = inDoubt;
  }

  /** The number of entries in the queues of all lanes. */
  get queued(): number {
    let queued = 0;
    for (const lane of this.lanes.values()) queued += lane.queue.length;
    return queued;
  }

  /** The bytes of the entries that are queued or under way. */
  get bytes(): number {
    let bytes = 0;
    for (const lane of this.lanes.values()) bytes += lane.bytes;
    return bytes;
  }
}

/** Counts the deliveries of the actor that are under way or wait for their commit. Tests count, too. */
export function countOutcomes({ lanes }: Actor): { underWay: number; uncommitted: number } {
  const count = { underWay: 0, uncommitted: 0 };
  for (const lane of lanes.values()) {
    if (lane.sending) count.underWay += 1;
    count.uncommitted += lane.uncommitted;
  }
  return count;
}

/**
 * Returns the number of deliveries that may be sent besides those under way. If all of them fail permanently, exactly
 * the 20th failure is the last one (contract 7.9). If every outcome is recorded, one delivery may always be sent: the
 * subscription is active, so it has fewer than 20 failures, even if the count of the actor is out of date because an
 * enable has reset it.
 */
export function roomForFailures(actor: Actor): number {
  const { underWay, uncommitted } = countOutcomes(actor);
  const least = underWay + uncommitted === 0 ? 1 : 0;
  return Math.max(DISABLE_AFTER_FAILURES - actor.failures - underWay, least);
}

/** Whether settings that were read at this instant may still be used. */
export function isFresh(readAt: Date, now: Date): boolean {
  return Math.abs(now.getTime() - readAt.getTime()) < SETTINGS_MAX_AGE_MS;
}

/**
 * Whether an entry may have been erased: the partner's number of erasures has changed between the load of the entry and
 * the last load of the actor (contract 10.8).
 */
export function isOutlived(
  { erasures }: Pick<Subscription, "erasures">,
  { subscription }: Pick<Actor, "subscription">,
): boolean {
  return subscription !== undefined && subscription.erasures !== erasures;
}

/** Whether a lane was made before a change of the subscription's ordering. */
export function isForeign(lane: Lane, { subscription }: Actor): boolean {
  if (subscription === undefined || lane.kind === "test") return false;
  return (lane.kind === "review") !== (subscription.ordering === "review");
}
