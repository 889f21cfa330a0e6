import type { Entry, Subscription } from "./entry.ts";

/** Entries that go strictly one after the other: all of a subscription, those of one review, or one test event. */
export interface Lane {
  readonly kind: "main" | "review" | "test";
  readonly reviewId: number | null;
  readonly queue: Entry[];
  sending: boolean;
  /** Answered, not yet committed. */
  uncommitted: number;
  /** After anything but a 2xx, nothing is sent before that is committed. */
  halted: boolean;
  /** The head waits for its retry until then; what stands behind it is read again afterwards. */
  waitingUntil: Date | undefined;
  /** A load left this lane out while it was busy: there may be more of it. */
  unseen: boolean;
}

export const MAIN = "main";

/** Where an entry goes: a test event has a lane of its own, so that it is never stuck and never delays (decisions.md 3). */
export function laneName(ordering: Subscription["ordering"], entry: Entry): string {
  if (entry.isTest) return `test:${entry.sequence}`;
  // Events without a review share one lane.
  return ordering === "review" ? `review:${entry.reviewId}` : MAIN;
}

export function createLane(name: string, entry: Entry): Lane {
  return {
    kind: kindOf(name, entry),
    reviewId: entry.reviewId,
    queue: [],
    sending: false,
    uncommitted: 0,
    halted: false,
    waitingUntil: undefined,
    unseen: false,
  };
}

function kindOf(name: string, entry: Entry): Lane["kind"] {
  if (entry.isTest) return "test";
  return name === MAIN ? "main" : "review";
}

/** Whether anything is queued, under way or uncommitted; waiting for a retry is not work. */
export function hasWork(lane: Lane): boolean {
  return lane.sending || lane.halted || lane.uncommitted > 0 || lane.queue.length > 0;
}
