/*
 * The tables of the outbox that both stores must have. Subscriptions, events, reviews and dispatchers have the names of
 * the test, because each store has different ids. Instants are ms since the start of the test.
 */

export interface QueuedEntry {
  readonly sequence: number;
  /** The entry is in the log after the offset; otherwise it has a row of `outbox`. */
  readonly isLogged: boolean;
  readonly event: string;
  readonly isTest: boolean;
  readonly review: string | null;
  readonly round: number;
  readonly attempt: number;
  readonly dueAtMs: number | null;
  readonly recordedAtMs: number;
}

export interface EndedEntry {
  readonly sequence: number;
  readonly event: string;
  readonly round: number;
  readonly state: "delivered" | "failed" | "skipped";
  /** The reason of a skip. */
  readonly reason: "deleted" | "skipped" | null;
  readonly skippedAtMs: number | null;
}

export interface AttemptEntry {
  readonly sequence: number;
  readonly round: number;
  readonly attempt: number;
  readonly outcome: "delivered" | "retry" | "failed" | "interrupted";
  readonly nextAttemptAtMs: number | null;
}

export interface SubscriptionState {
  readonly name: string;
  readonly state: "active" | "disabled" | "deleted";
  readonly failures: number;
  readonly ordering: "subscription" | "review";
  readonly sequenceHeaders: boolean;
  readonly nextBatchAtMs: number | null;
  readonly lastBatchAtMs: number | null;
  /** The last assigned sequence; null once nothing can be appended any more. */
  readonly lastSequence: number | null;
  /** The offset of its log. */
  readonly settledThrough: number;
  readonly skippedThrough: number;
  /** The number of each event of the log, in its order. */
  readonly numbers: readonly { readonly event: string; readonly number: number }[];
  readonly queued: readonly QueuedEntry[];
  readonly ended: readonly EndedEntry[];
  readonly attempts: readonly AttemptEntry[];
  /** The events that wait for the next batch, in the order of their recording. */
  readonly waiting: readonly string[];
}

interface ShardState {
  readonly shard: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly unclean: boolean;
}

export interface TablesState {
  /** The subscriptions, sorted by name. */
  readonly subscriptions: readonly SubscriptionState[];
  readonly dispatchers: readonly string[];
  /** All shards that were claimed at least once. */
  readonly shards: readonly ShardState[];
}

/** Sorts the rows of a table, because stores return them in different orders. */
export function inOrder<Row>(rows: Iterable<Row>, keyOf: (row: Row) => string): Row[] {
  return [...rows].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

export function bySequence(row: {
  readonly sequence: number;
  readonly round?: number;
  readonly attempt?: number;
  readonly outcome?: string;
  readonly nextAttemptAtMs?: number | null;
}): string {
  const { sequence, round = 0, attempt = 0, outcome = "", nextAttemptAtMs = 0 } = row;
  return `${String(sequence).padStart(9, "0")} ${round} ${attempt} ${outcome} ${nextAttemptAtMs}`;
}
