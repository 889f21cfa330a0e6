import type { Subscription } from "./event.ts";
import type { InDoubtAttempts } from "./in-doubt.ts";
import type { Lane } from "./lane.ts";

/** Entries that an actor holds in memory, at the most. */
export const MAX_QUEUED = 64;
/**
 * Entries that it reads first. Often its head waits or its subscription is disabled, so that the rest would be read in
 * vain.
 */
export const FIRST_LOAD = 4;
/** Requests at once per subscription where reviews have lanes of their own. */
export const PARALLEL_REVIEWS = 8;
/** Test events that a load answers at the most. */
export const MAX_TESTS = 16;
/** A URL or secret older than this is read again before it is used (contract 7.12: read at each attempt). */
const SETTINGS_MAX_AGE_MS = 1_000;

export class Actor {
  readonly id: string;
  readonly shard: number;
  subscription: Subscription | undefined;
  loadedAt: Date | undefined;
  readonly lanes = new Map<string, Lane>();
  /** Entries that it may hold at the moment: its share of the memory. */
  capacity = MAX_QUEUED;
  /** The highest sequence taken into the main lane. */
  cursor = 0;
  /** Counts the times that the queues were thrown away: an answer to an older load is not used. */
  generation = 0;
  loading = false;
  batching = false;
  /** A `recheck` is under way. */
  rechecking = false;
  /** A wake came since the last load began: Postgres may hold more than that load saw. */
  wanted = false;
  /** The last load was cut at its limit. */
  more = false;
  /** The last load answered as many tests as it may, all due: there may be more. */
  moreTests = false;
  /** How often in a row a send failed on our side. */
  postponed = 0;
  /** A wake is planned for this instant; undefined once one came. */
  plannedFor: Date | undefined;
  /** What a dead process has left; undefined if its shard came from none. */
  readonly inDoubt: InDoubtAttempts | undefined;
  /** Nothing new is sent any more: the process stops, or the shard is given up. */
  stopping = false;

  constructor(id: string, shard: number, inDoubt?: InDoubtAttempts) {
    this.id = id;
    this.shard = shard;
    this.inDoubt = inDoubt;
  }
}

/** Whether settings read at this instant may still be used. */
export function isFresh(readAt: Date, now: Date): boolean {
  return Math.abs(now.getTime() - readAt.getTime()) < SETTINGS_MAX_AGE_MS;
}

/** A lane from before the ordering changed. */
export function isForeign(lane: Lane, { subscription }: Actor): boolean {
  if (subscription === undefined || lane.kind === "test") return false;
  return (lane.kind === "review") !== (subscription.ordering === "review");
}
