import type { Decision } from "../../dispatcher/actor/decide.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import type { Process } from "./process.ts";

/** A row lock: first come, first served. */
class Lock {
  #held = false;
  readonly #waiting: (() => void)[] = [];

  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#held) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    this.#held = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#held = false;
      else next();
    }
  }
}

export interface HistoryRow {
  readonly id: number;
  readonly eventId: string;
  readonly partnerId: number;
  readonly reviewId: number | null;
  readonly inBatch: boolean;
  /** The size of its JSON. */
  readonly bytes: number;
  readonly recordedAtMs: number;
}

export interface OutboxRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly isTest: boolean;
  /** For an event of the log, how many sequences before it belong to no event of the log. */
  readonly unlogged?: number;
  readonly history: HistoryRow | undefined;
  readonly reviewId: number | null;
  readonly round: number;
  attempt: number;
  dueAtMs: number | null;
  /** The due time of an entry of the same review that waits, as far as it was noted. */
  behindUntilMs?: number;
  readonly recordedAtMs: number;
  /** The virtual time of the commit, for the limits on lateness. */
  readonly visibleMs: number;
}

/** An entry from the log may have no row yet. */
export type QueuedRow = OutboxRow & {
  readonly isLogged: boolean;
  /** Whether the load shows only this row of its review. */
  readonly isFirstOnly?: boolean;
};

/** The end of an entry. */
export type End =
  | { readonly state: "delivered" | "failed"; readonly reason: null }
  | { readonly state: "skipped"; readonly reason: "deleted" | "skipped" };

export type SettledRow = OutboxRow & End & { readonly settledMs: number };

export interface AttemptRow {
  readonly eventId: string;
  readonly sequence: number;
  readonly round: number;
  readonly attempt: number;
  readonly outcome: Decision["kind"];
  readonly nextAttemptAtMs: number | null;
  /** Whether the response names the person of the event: receivers echo what they get. */
  isNamed: boolean;
}

export type Ordering = "subscription" | "review";

/** A row of batch_windows. */
export interface WindowRow {
  readonly id: string;
  readonly openedAtMs: number;
  readonly through: number;
  /** The review in which the last chunk ended. */
  readonly reviewId: number | null;
}

export interface SubscriptionRow {
  readonly id: string;
  readonly partnerId: number;
  readonly shard: number;
  readonly host: string;
  readonly kind: "immediate" | "batch";
  readonly createdAtMs: number;
  /** Counts the changes of the settings. The URL contains it, so that a POST shows its settings. */
  version: number;
  /** The ordering of each version. */
  readonly orderings: Ordering[];
  ordering: Ordering;
  /** Whether POSTs have the sequence headers, now and in each version. */
  sequenceHeaders: boolean;
  readonly headersOf: boolean[];
  state: "active" | "disabled" | "deleted";
  /** The virtual time of the last change of the state. */
  changedMs: number;
  failures: number;
  intervalHours: number;
  lastBatchAtMs: number | null;
  nextBatchAtMs: number | null;
  lastSequence: number;
  /** The last sequence of a log event. */
  lastLogged: number;
  /** How many sequences up to `lastLogged` belong to no event of the log. */
  unlogged: number;
  /** Whether the row of outbox_sequences exists, so that entries can be appended. */
  open: boolean;
  /** The events of review_history with a sequence, in its order. None is ever removed. */
  readonly log: OutboxRow[];
  /** The rows of outbox in the order of their sequences. */
  readonly outbox: OutboxRow[];
  /** The row of outbox_offsets. */
  settledThrough: number;
  skippedThrough: number;
  erasures: number;
  /** All sequences that an event ever had, in the order of their commits. */
  readonly sequencesOf: Map<string, number[]>;
  readonly settled: Map<number, SettledRow>;
  /** The attempts by id. */
  readonly attempts: Map<string, AttemptRow>;
  batch: HistoryRow[];
  window: WindowRow | undefined;
  readonly sequenceLock: Lock;
  /** The virtual time until which another client locks its rows. */
  lockedUntilMs: number;
  /** The virtual time until which its entries cannot be read. */
  unreadableUntilMs: number;
  /** The sequence whose records PostgreSQL rejects until it is repaired. */
  refused: number | undefined;
}

export interface DispatcherRow {
  readonly id: string;
  readonly process: Process;
  renewedMs: number;
  /** The number of statements that lock the row for key share. */
  holders: number;
}

/** The committed rows of the simulated PostgreSQL. The changes of an open transaction are kept elsewhere. */
export class Tables {
  readonly subscriptions = new Map<string, SubscriptionRow>();
  readonly dispatchers = new Map<string, DispatcherRow>();
  /** The holder of each shard, and the number of its claims. */
  readonly owners: (string | null)[] = Array.from({ length: SHARDS }, () => null);
  readonly epochs: number[] = Array.from({ length: SHARDS }, () => 0);
  readonly unclean: boolean[] = Array.from({ length: SHARDS }, () => false);
  /** The virtual time at which each event was erased. An event that is not erased names a person. */
  readonly erasedMs = new Map<string, number>();
  /** The virtual time of the last claim of each shard. */
  readonly claimedMs: number[] = Array.from({ length: SHARDS }, () => 0);
  #historyId = 0;

  nextHistoryId(): number {
    return ++this.#historyId;
  }

  subscription(id: string): SubscriptionRow {
    const row = this.subscriptions.get(id);
    if (row === undefined) throw new Error(`No subscription ${id}`);
    return row;
  }

  /** Returns the subscription of a slot; undefined if the slot is free. */
  slot(partnerId: number, kind: SubscriptionRow["kind"]): SubscriptionRow | undefined {
    for (const row of this.subscriptions.values())
      if (row.partnerId === partnerId && row.kind === kind && row.state !== "deleted") return row;
    return undefined;
  }

  deleteDispatcher(id: string): void {
    this.dispatchers.delete(id);
    this.owners.forEach((owner, shard) => {
      if (owner === id) this.owners[shard] = null;
    });
  }
}

export function newSubscription(
  fields: Pick<
    SubscriptionRow,
    | "id"
    | "partnerId"
    | "shard"
    | "host"
    | "kind"
    | "createdAtMs"
    | "ordering"
    | "sequenceHeaders"
    | "intervalHours"
  > & { nextBatchAtMs: number | null },
): SubscriptionRow {
  return {
    ...fields,
    version: 0,
    orderings: [fields.ordering],
    headersOf: [fields.sequenceHeaders],
    state: "active",
    changedMs: 0,
    failures: 0,
    lastBatchAtMs: null,
    lastSequence: 0,
    lastLogged: 0,
    unlogged: 0,
    open: true,
    log: [],
    outbox: [],
    settledThrough: 0,
    skippedThrough: 0,
    erasures: 0,
    sequencesOf: new Map(),
    settled: new Map(),
    attempts: new Map(),
    batch: [],
    window: undefined,
    sequenceLock: new Lock(),
    lockedUntilMs: 0,
    unreadableUntilMs: 0,
    refused: undefined,
  };
}

/** The id of the history row in the body of an event that is not erased. It stands for the name of a person. */
export const NAMED = 1;

/** Whether the body of a POST names a person. */
export const isNamed = (body: string): boolean => body.endsWith(`"review_history_id":${NAMED}}`);
