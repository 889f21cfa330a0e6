import type { LoadRequest } from "../../dispatcher/actor/event.ts";
import type { PostResult } from "../../dispatcher/delivery/deliver.ts";
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
  readonly startedMonotonicMs: number;
  /** When its first byte left; undefined until then. */
  leftMs: number | undefined;
  ended: boolean;
  endedMs: number;
  endedMonotonicMs: number;
  /** Its record was committed. */
  recorded: boolean;
  /** The outcome that the process was told. */
  outcome: PostResult["kind"] | undefined;
}

interface WatchedWindow {
  readonly id: string;
  readonly openedMs: number;
  readonly seen: Set<number | null>;
  last: OutboxRow | undefined;
}

interface Read {
  /** When the statement was carried out that settings and entries come from. */
  readonly snapshotMs: number;
  readonly handedMs: number;
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
  /** By dispatcher id: the POSTs that have left and whose records are not committed. */
  readonly unrecorded: Map<string, Set<Post>>;
  /** Of the last load of each process: when Postgres was read, and when the answer came. */
  readonly settings: Map<Process, Read>;
  /** By dispatcher id and claim: the last load that found it active. */
  readonly firstLoaded: Map<string, LoadRequest>;
  /** By dispatcher id: the last entry that it sent from the main lane. */
  readonly lastPosted: Map<string, number>;
  /** What the counter should be: the monitor replays outcomes one by one. */
  failures: number;
  disabled: boolean;
  /** When the last POST ended or the last outcome was committed. */
  progressMs: number;
  /** The same by lane; and when all requests that a subscription may have at once were last under way. */
  readonly laneProgressMs: Map<LaneKey, number>;
  crowdedMs: number;
  /** The same for its tests. */
  testsCrowdedMs: number;
  /** Events that a batch is to have, and those that one had. */
  readonly expected: Set<string>;
  readonly dispatched: Set<string>;
  /** The records that were committed, by id. */
  readonly recorded: Set<string>;
  /** How many attempts in the tables were held against them, and the others. */
  checked: number;
  unchecked: Iterator<string, undefined> | undefined;
  /** The entries that a dead holder of the shard may have sent, and a record may say so of. */
  readonly mayRepeat: Set<number>;
  /** The attempts of which a record said so. */
  readonly told: Set<string>;
  /** When a holder of its shard was last buried, and whether it was active then. */
  buriedMs: number;
  wasActive: boolean;
  /** When events were last made entries of a batch: nothing is sent until all of them are. */
  dispatchedMs: number;
  /** Of the last batch: its reviews and its last entry so far. */
  window: WatchedWindow | undefined;
  /** When each event began to wait for a batch. */
  readonly batchedMs: Map<string, number>;
  /** Up to which sequence all was skipped, and when. */
  skippedThrough: number;
  skippedMs: number;
  /** Until when its commits could not be made, and a while to make up for it. */
  hinderedMs: number;
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
    unrecorded: new Map(),
    settings: new Map(),
    firstLoaded: new Map(),
    lastPosted: new Map(),
    failures: 0,
    disabled: false,
    progressMs: 0,
    laneProgressMs: new Map(),
    crowdedMs: 0,
    testsCrowdedMs: 0,
    expected: new Set(),
    dispatched: new Set(),
    recorded: new Set(),
    checked: 0,
    unchecked: undefined,
    mayRepeat: new Set(),
    told: new Set(),
    buriedMs: Number.POSITIVE_INFINITY,
    wasActive: true,
    dispatchedMs: 0,
    window: undefined,
    batchedMs: new Map(),
    skippedThrough: 0,
    skippedMs: 0,
    hinderedMs: 0,
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

/** A test, all entries together, or those of a review or of none. */
export type LaneKey = `test ${number}` | "main" | number | null;

export function laneOf(ordering: Ordering, entry: OutboxRow): LaneKey {
  if (entry.isTest) return `test ${entry.sequence}`;
  return ordering === "subscription" ? "main" : entry.reviewId;
}
