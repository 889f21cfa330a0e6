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
  readonly recordedAtMs: number;
}

export interface OutboxRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly isTest: boolean;
  readonly history: HistoryRow | undefined;
  readonly reviewId: number | null;
  readonly round: number;
  attempt: number;
  dueAtMs: number | null;
  readonly recordedAtMs: number;
  /** When it was committed, in virtual time, for the bounds on lateness. */
  readonly visibleMs: number;
}

/** An entry that was read from the log has no row of its own yet. */
export type QueuedRow = OutboxRow & { readonly isLogged: boolean };

/** How an entry ends. */
export type End =
  | { readonly state: "delivered" | "failed"; readonly reason: null }
  | { readonly state: "skipped"; readonly reason: "deleted" | "skipped" };

export type SettledRow = OutboxRow & End & { readonly settledMs: number };

export interface AttemptRow {
  readonly sequence: number;
  readonly round: number;
  readonly attempt: number;
  readonly outcome: Decision["kind"];
  readonly nextAttemptAtMs: number | null;
}

export type Ordering = "subscription" | "review";

/** A row of batch_windows. */
export interface WindowRow {
  readonly id: string;
  readonly openedAtMs: number;
  readonly through: number;
  /** Whose events the last chunk ended with. */
  readonly reviewId: number | null;
}

export interface SubscriptionRow {
  readonly id: string;
  readonly partnerId: number;
  readonly shard: number;
  readonly host: string;
  readonly kind: "immediate" | "batch";
  readonly createdAtMs: number;
  /** Counts the changes of its settings; part of the URL, so that a POST shows which ones it was made with. */
  version: number;
  /** The ordering of each version. */
  readonly orderings: Ordering[];
  ordering: Ordering;
  state: "active" | "disabled" | "deleted";
  /** When the state last changed, in virtual time. */
  changedMs: number;
  failures: number;
  intervalHours: number;
  lastBatchAtMs: number | null;
  nextBatchAtMs: number | null;
  lastSequence: number;
  /** The last number that an event of the log has. */
  lastLogged: number;
  /** Whether its row of outbox_sequences is there: entries can be appended. */
  open: boolean;
  /** The events of review_history that have a sequence, in its order. None ever leaves. */
  readonly log: OutboxRow[];
  /** The rows of outbox, in the order of their sequences. */
  readonly outbox: OutboxRow[];
  /** Its row of outbox_offsets. */
  settledThrough: number;
  skippedThrough: number;
  /** All the sequences that an event ever had, in the order in which they were committed. */
  readonly sequencesOf: Map<string, number[]>;
  readonly settled: Map<number, SettledRow>;
  /** By id. */
  readonly attempts: Map<string, AttemptRow>;
  batch: HistoryRow[];
  window: WindowRow | undefined;
  readonly sequenceLock: Lock;
  /** Until when somebody else holds its rows, in virtual time. */
  lockedUntilMs: number;
  /** Until when its entries cannot be read, in virtual time. */
  unreadableUntilMs: number;
  /** The sequence whose records Postgres refuses, until it is mended. */
  refused: number | undefined;
}

export interface DispatcherRow {
  readonly id: string;
  readonly process: Process;
  renewedMs: number;
  /** Statements that hold the row for key share. */
  holders: number;
}

/** The rows of the simulated Postgres. Only committed state is in here; what a transaction prepares, it keeps to itself. */
export class Tables {
  readonly subscriptions = new Map<string, SubscriptionRow>();
  readonly dispatchers = new Map<string, DispatcherRow>();
  /** Who holds each shard, and how often it has been claimed. */
  readonly owners: (string | null)[] = Array.from({ length: SHARDS }, () => null);
  readonly epochs: number[] = Array.from({ length: SHARDS }, () => 0);
  readonly orphaned: boolean[] = Array.from({ length: SHARDS }, () => false);
  /** When each shard was last claimed, in virtual time. */
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

  /** The subscription that fills the slot; undefined if it is free. */
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
    "id" | "partnerId" | "shard" | "host" | "kind" | "createdAtMs" | "ordering" | "intervalHours"
  > & { nextBatchAtMs: number | null },
): SubscriptionRow {
  return {
    ...fields,
    version: 0,
    orderings: [fields.ordering],
    state: "active",
    changedMs: 0,
    failures: 0,
    lastBatchAtMs: null,
    lastSequence: 0,
    lastLogged: 0,
    open: true,
    log: [],
    outbox: [],
    settledThrough: 0,
    skippedThrough: 0,
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
