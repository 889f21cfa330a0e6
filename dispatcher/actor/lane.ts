import { addMs } from "../../src/lib/clock.ts";
import type { Decision } from "./decide.ts";
import type { Entry, Subscription } from "./event.ts";

/**
 * A lane with this many uncommitted outcomes sends nothing more (contract 7.4). So while an entry is under way, at most
 * one fewer wait for their commit, and a crash repeats no more entries than this.
 */
export const SEND_AHEAD = 16;

/**
 * The most attempts of one subscription, over all its lanes, that may be without a record: under way, or waiting for
 * their commit (contract 7.4). With lanes by review SEND_AHEAD alone bounds nothing, because each review has a lane: while
 * the commits of a subscription are held up it would send all that it has, and a crash would repeat it.
 */
export const MAX_UNRECORDED = 128;

/** Entries that go strictly one after the other: all of a subscription, those of one review, or one test event. */
export class Lane {
  readonly kind: "main" | "review" | "test";
  readonly reviewId: number | null;
  readonly queue: Entry[] = [];
  sending = false;
  /** The sequence of the entry under way, or of the last one that was. */
  sent = 0;
  /** How many of its entries were answered and are not yet committed. */
  uncommitted = 0;
  /** The last answer was no 2xx: nothing is sent before that outcome is committed. */
  halted = false;
  /** When the entry that halted it is tried again, if it is. */
  retryAt: Date | undefined;
  /** The head waits for its retry until then; what stands behind it is read again afterwards. */
  waitingUntil: Date | undefined;
  /** A load left this lane out while it was busy: Postgres may hold more of it. */
  unseen = false;

  constructor(name: string, { isTest, reviewId }: Entry) {
    const ordered = name === MAIN ? "main" : "review";
    this.kind = isTest ? "test" : ordered;
    this.reviewId = reviewId;
  }
}

export const MAIN = "main";

/**
 * The lane of an entry. A test event has one of its own, so that it is never stuck and never delays (contract 6.12).
 */
export function laneName(ordering: Subscription["ordering"], entry: Entry): string {
  if (entry.isTest) return `test:${entry.sequence}`;
  // Events without a review share one lane.
  return ordering === "review" ? `review:${entry.reviewId}` : MAIN;
}

/** Whether anything is queued, under way or uncommitted; waiting for a retry is not work. */
export function hasWork(lane: Lane): boolean {
  return lane.sending || lane.halted || lane.uncommitted > 0 || lane.queue.length > 0;
}

/** How many attempts of these lanes are under way or wait for their commit. */
export function countUnrecorded(lanes: Iterable<Lane>): number {
  let count = 0;
  for (const { sending, uncommitted } of lanes) count += uncommitted + (sending ? 1 : 0);
  return count;
}

/** Whether its next entry has to wait for what is under way or uncommitted. */
export function isBlocked(lane: Lane): boolean {
  return lane.sending || lane.halted || lane.uncommitted >= SEND_AHEAD;
}

/** Takes in what was decided of the entry under way. */
export function takeDecision(lane: Lane, decision: Decision, now: Date): void {
  lane.sending = false;
  lane.uncommitted += 1;
  if (decision.kind !== "delivered") lane.halted = true;
  if (decision.kind === "retry") lane.retryAt = addMs(now, decision.delayMs);
}
