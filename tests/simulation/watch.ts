import type { LoadRequest } from "../../dispatcher/actor/event.ts";
import type { PostResult } from "../../dispatcher/delivery/deliver.ts";
import { entryOf } from "./log.ts";
import type { Process } from "./process.ts";
import type { LaneKey } from "../verdicts/lanes.ts";
import { SequenceChecker } from "../verdicts/sequence-checker.ts";
import type { Ordering, OutboxRow, SettledRow, SubscriptionRow } from "./tables.ts";

/** One POST as observed on the network. */
export interface Post {
  readonly process: Process;
  readonly dispatcherId: string;
  readonly subscription: SubscriptionRow;
  /** The entry in PostgreSQL at the start of the POST. */
  readonly entry: OutboxRow;
  readonly attempt: number;
  /** Whether the body names a person. */
  readonly isNamed: boolean;
  /** The ordering in the settings of the POST, and whether they ask for the sequence headers. */
  readonly ordering: Ordering;
  readonly isNumbered: boolean;
  /** The sequence headers; undefined without them. */
  readonly place: Place | undefined;
  readonly startedMs: number;
  readonly startedWallMs: number;
  readonly startedMonotonicMs: number;
  /** The time of the first byte; undefined before that. */
  leftMs: number | undefined;
  ended: boolean;
  endedMs: number;
  endedMonotonicMs: number;
  /** The record of the POST is committed. */
  recorded: boolean;
  /** Whose failure it is, where the rule of the contract leaves no doubt (7.8). */
  blame: "ours" | "theirs" | undefined;
  /** The result that the process got. */
  outcome: PostResult["kind"] | undefined;
}

/** The values of `X-SVC-Sequence` and `X-SVC-Settled`. */
export interface Place {
  readonly number: number;
  readonly settled: number;
}

interface WatchedWindow {
  readonly id: string;
  readonly openedMs: number;
  readonly seen: Set<number | null>;
  last: OutboxRow | undefined;
}

interface Read {
  /** The time of the statement that read settings and entries. */
  readonly snapshotMs: number;
  readonly handedMs: number;
}

/** The observations of the monitor about one subscription. */
export interface Watch {
  readonly inFlight: Set<Post>;
  /** All POSTs by sequence. */
  readonly posts: Map<number, Post[]>;
  /** The dispatcher ids that got a 2xx, by sequence. */
  readonly acceptedBy: Map<number, Set<string>>;
  /** The time of the first 2xx, by sequence. */
  readonly firstAccepted: Map<number, number>;
  /** The events in the order of their commits with their sequences, and the number of each. */
  readonly recordedEvents: Pick<OutboxRow, "eventId" | "sequence">[];
  readonly numbers: Map<string, number>;
  /** The number up to which every event was seen to be settled. */
  settledNumber: number;
  /** What the receiver knows from the sequence headers of the POSTs that it accepted, and the events of these. */
  readonly receiver: SequenceChecker;
  readonly received: Set<string>;
  /** The entries that another process sent again, by dispatcher id and lane. */
  readonly repeated: Map<string, Set<number>>;
  /** The POSTs that were sent and whose records are not committed, by dispatcher id. */
  readonly unrecorded: Map<string, Set<Post>>;
  /** The time of the read and of the response of the last load of each process. */
  readonly settings: Map<Process, Read>;
  /** The time of the response of the last load of each process that had not seen the last erasure. */
  readonly outlivedMs: Map<Process, number>;
  /** The first load that found the subscription active, by dispatcher id and claim. */
  readonly firstLoaded: Map<string, LoadRequest>;
  /** The last entry of the main lane that was sent, by dispatcher id. */
  readonly lastPosted: Map<string, number>;
  /** The expected failure counter, from a replay of the outcomes one by one. */
  failures: number;
  disabled: boolean;
  /** The time at which the last POST ended or the last outcome was committed. */
  progressMs: number;
  /**
   * The time of the last progress by lane, and the last time at which all requests that a subscription may have at once
   * were under way.
   */
  readonly laneProgressMs: Map<LaneKey, number>;
  saturatedMs: number;
  /** The last time at which all tests that a subscription may have at once were under way. */
  testsSaturatedMs: number;
  /** The events that a batch must have, and those that a batch had. */
  readonly expected: Set<string>;
  readonly dispatched: Set<string>;
  /** The ids of the committed records. */
  readonly recorded: Set<string>;
  /** The number of attempts in the tables that were checked against the records, and the iterator over the others. */
  checked: number;
  unchecked: Iterator<string, undefined> | undefined;
  /** The entries that a crashed holder of the shard may have sent, so that a record may be flagged. */
  readonly mayRepeat: Set<number>;
  /** The attempts that a record has flagged as possible repeats. */
  readonly flagged: Set<string>;
  /**
   * The time at which the lease of a holder of its shard last expired, and whether the subscription was active then.
   */
  expiredMs: number;
  wasActive: boolean;
  /** The time at which events last became entries of a batch: nothing is sent until all of them are. */
  dispatchedMs: number;
  /** The reviews and the last entry of the last batch so far. */
  window: WatchedWindow | undefined;
  /** The time at which each event began to wait for a batch. */
  readonly batchedMs: Map<string, number>;
  /** The last sequence of the latest skip, and its time. */
  skippedThrough: number;
  skippedMs: number;
  /** The time of the last erasure of events of its partner. */
  erasedMs: number;
  /** The time until which its commits failed, and a while to catch up. */
  hinderedMs: number;
  /** The time of the last change of the ordering; minus infinity without one. */
  reorderedMs: number;
}

export function createWatch(): Watch {
  return {
    inFlight: new Set(),
    posts: new Map(),
    acceptedBy: new Map(),
    firstAccepted: new Map(),
    recordedEvents: [],
    numbers: new Map(),
    settledNumber: 0,
    receiver: new SequenceChecker(),
    received: new Set(),
    repeated: new Map(),
    unrecorded: new Map(),
    settings: new Map(),
    outlivedMs: new Map(),
    firstLoaded: new Map(),
    lastPosted: new Map(),
    failures: 0,
    disabled: false,
    progressMs: 0,
    laneProgressMs: new Map(),
    saturatedMs: 0,
    testsSaturatedMs: 0,
    expected: new Set(),
    dispatched: new Set(),
    recorded: new Set(),
    checked: 0,
    unchecked: undefined,
    mayRepeat: new Set(),
    flagged: new Set(),
    expiredMs: Number.POSITIVE_INFINITY,
    wasActive: true,
    dispatchedMs: 0,
    window: undefined,
    batchedMs: new Map(),
    skippedThrough: 0,
    skippedMs: 0,
    erasedMs: Number.NEGATIVE_INFINITY,
    hinderedMs: 0,
    reorderedMs: Number.NEGATIVE_INFINITY,
  };
}

/** Returns the queued entry of an event, or its last one that has ended. */
export function findEntry(
  subscription: SubscriptionRow,
  eventId: string,
  { skippedThrough }: Watch,
): OutboxRow | undefined {
  let last: SettledRow | undefined;
  for (const sequence of subscription.sequencesOf.get(eventId) ?? []) {
    const row = entryOf(subscription, sequence);
    if (row !== undefined && sequence > skippedThrough) return row;
    const settled = subscription.settled.get(sequence);
    if (settled !== undefined && settled.settledMs >= (last?.settledMs ?? 0)) last = settled;
  }
  return last;
}
