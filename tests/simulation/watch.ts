import type { Outcome } from "../../dispatcher/delivery/deliver.ts";
import type { Process } from "./process.ts";
import type { Ordering, OutboxRow, SubscriptionRow } from "./tables.ts";

/** One POST, as the network saw it. */
export interface Post {
  readonly process: Process;
  readonly dispatcherId: string;
  readonly subscription: SubscriptionRow;
  /** The entry as it stood in Postgres when the POST began. */
  readonly entry: OutboxRow;
  readonly attempt: number;
  /** The ordering of the settings that it was made with. */
  readonly ordering: Ordering;
  readonly startedMs: number;
  readonly startedWallMs: number;
  /** When its first byte left; undefined until then. */
  leftMs: number | undefined;
  ended: boolean;
  endedWallMs: number;
  /** The outcome that the process was told. */
  outcome: Outcome["kind"] | undefined;
}

/** What the monitor remembers of one subscription. */
export interface Watch {
  readonly inFlight: Set<Post>;
  /** By sequence. */
  readonly posts: Map<number, Post[]>;
  /** The dispatcher ids that were told of a 2xx, by sequence. */
  readonly acceptedBy: Map<number, Set<string>>;
  /** When a receiver first answered 2xx, by sequence. */
  readonly firstAccepted: Map<number, number>;
  /** By dispatcher id and lane: the entries that somebody else sent again. */
  readonly repeated: Map<string, Set<number>>;
  /** Of the last load of each process: when Postgres was read, and when the answer came. */
  readonly settings: Map<Process, { readonly snapshotMs: number; readonly handedMs: number }>;
  /** By dispatcher id: the last entry that it sent from the main lane. */
  readonly lastPosted: Map<string, number>;
  /** What the counter should be: the monitor replays outcomes one by one. */
  failures: number;
  disabled: boolean;
  /** When the last POST ended or the last outcome was committed. */
  progressMs: number;
  /** The same by lane; and when all requests that a subscription may have at once were last under way. */
  readonly laneProgressMs: Map<string, number>;
  crowdedMs: number;
  /** The same for its tests. */
  testsCrowdedMs: number;
  /** Events that a batch is to have, and those that one had. */
  readonly expected: Set<string>;
  readonly dispatched: Set<string>;
  /** When the ordering last changed; minus infinity if it never did. */
  reorderedMs: number;
}

export function createWatch(): Watch {
  return {
    inFlight: new Set(),
    posts: new Map(),
    acceptedBy: new Map(),
    firstAccepted: new Map(),
    repeated: new Map(),
    settings: new Map(),
    lastPosted: new Map(),
    failures: 0,
    disabled: false,
    progressMs: 0,
    laneProgressMs: new Map(),
    crowdedMs: 0,
    testsCrowdedMs: 0,
    expected: new Set(),
    dispatched: new Set(),
    reorderedMs: Number.NEGATIVE_INFINITY,
  };
}

/** Whether two entries of a subscription go one after the other. */
export function shareLane(
  ordering: Ordering,
  a: Pick<OutboxRow, "isTest" | "sequence" | "reviewId">,
  b: Pick<OutboxRow, "isTest" | "sequence" | "reviewId">,
): boolean {
  if (a.isTest || b.isTest) return a.sequence === b.sequence;
  return ordering === "subscription" || a.reviewId === b.reviewId;
}

export function laneOf(ordering: Ordering, entry: OutboxRow): string {
  if (entry.isTest) return `test ${entry.sequence}`;
  return ordering === "subscription" ? "main" : `review ${entry.reviewId}`;
}
