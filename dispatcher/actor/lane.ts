import { addMs } from "../../src/lib/clock.ts";
import type { Decision } from "./decide.ts";
import type { Entry, Subscription } from "./event.ts";

/**
 * The number of uncommitted attempts at which a lane stops sending (contract 7.4). While an entry of the lane is under
 * way, at most one attempt fewer than this is uncommitted, so a crash repeats at most this many entries of a lane.
 */
export const SEND_AHEAD = 16;

/**
 * The most attempts of one subscription, over all its lanes, that are under way or wait for their commit (contract
 * 7.4). SEND_AHEAD limits one lane only, and a subscription with a lane per review has many: while commits are delayed,
 * it would send all its entries, and a crash would repeat them.
 */
export const MAX_UNRECORDED = 128;

/**
 * Entries that are delivered strictly one after the other: all of a subscription, those of one review, or one test
 * event.
 */
export class Lane {
  readonly kind: "main" | "review" | "test";
  readonly reviewId: number | null;
  /** The bytes of the entries that are queued or under way. */
  bytes = 0;
  sending = false;
  /** The sequence number of the entry that is under way or was sent last. */
  sent = 0;
  #queue: Entry[] = [];
  #bytesSent = 0;
  /** The number of entries of the lane that were answered, but have no committed attempt record yet. */
  uncommitted = 0;
  /** True if the last attempt did not succeed, so that the lane sends nothing until its attempt record is committed. */
  halted = false;
  /** The instant of the retry of the entry that halted the lane, if there is one. */
  retryAt: Date | undefined;
  /** The instant until which the head of the lane waits. The entries behind the head are read again afterwards. */
  waitingUntil: Date | undefined;
  /** True if a load left this lane out while the lane was busy, so that PostgreSQL may have more entries of it. */
  unseen = false;
  /** True if it waits after a failure on our side. PostgreSQL does not know this wait. */
  isPostponed = false;

  constructor(name: string, { isTest, reviewId }: Entry) {
    const ordered = name === MAIN ? "main" : "review";
    this.kind = isTest ? "test" : ordered;
    this.reviewId = reviewId;
  }

  get queue(): readonly Entry[] {
    return this.#queue;
  }

  push(entry: Entry): void {
    this.#queue.push(entry);
    this.bytes += entry.bytes;
  }

  /** Removes and returns the first queued entry, which is under way from now on. */
  begin(): Entry | undefined {
    const entry = this.#queue.shift();
    if (entry === undefined) return undefined;
    this.sending = true;
    this.sent = entry.sequence;
    this.#bytesSent = entry.bytes;
    return entry;
  }

  /** Notes that no entry is under way any more. */
  end(): void {
    this.sending = false;
    this.bytes -= this.#bytesSent;
    this.#bytesSent = 0;
  }

  clear(): void {
    this.#queue = [];
    this.bytes = this.#bytesSent;
  }
}

export const MAIN = "main";

/**
 * Returns the name of the lane of an entry. Each test event has a separate lane, so that it neither waits nor delays
 * others (contract 6.12).
 */
export function laneName(ordering: Subscription["ordering"], entry: Entry): string {
  if (entry.isTest) return `test:${entry.sequence}`;
  // Events without a review share one lane.
  return ordering === "review" ? `review:${entry.reviewId}` : MAIN;
}

/** Whether an entry of the lane is queued, under way or uncommitted. A wait for a retry is not work. */
export function hasWork(lane: Lane): boolean {
  return lane.sending || lane.halted || lane.uncommitted > 0 || lane.queue.length > 0;
}

/** Counts the attempts of these lanes that are under way or wait for their commit. */
export function countUnrecorded(lanes: Iterable<Lane>): number {
  let count = 0;
  for (const { sending, uncommitted } of lanes) count += uncommitted + (sending ? 1 : 0);
  return count;
}

/** Whether the next entry of the lane has to wait for an entry that is under way or uncommitted. */
export function isBlocked(lane: Lane): boolean {
  return lane.sending || lane.halted || lane.uncommitted >= SEND_AHEAD;
}

/** Applies the decision about the attempt that was under way to its lane. */
export function applyDecision(lane: Lane, decision: Decision, now: Date): void {
  lane.end();
  lane.uncommitted += 1;
  if (decision.kind !== "delivered") lane.halted = true;
  if (decision.kind === "retry") lane.retryAt = addMs(now, decision.delayMs);
}
