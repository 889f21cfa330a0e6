import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import type { AttemptRecord } from "./attempt.ts";
import type { CommitFailure } from "./commit-failure.ts";
import type { DispatchStore } from "./store.ts";

export interface Pending {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  /** Called after the commit: whether the subscription still is active. */
  readonly done: (active: boolean) => void;
}

export interface CommitDeps {
  readonly store: Pick<DispatchStore, "commit">;
  readonly clock: Clock;
  readonly log: Log;
}

/** The first try comes after so long, each further one after twice as long. */
const FIRST_RETRY_MS = 100;
/** Locks are given back at some time; what Postgres refuses has to be mended by somebody. */
const LONGEST_RETRY_MS = { waits: 1_000, store: 1_000, records: 30_000 };

const MOST_AT_ONCE = 64;

interface Waiting {
  readonly id: string;
  /** In their order; the first ones are under way. */
  pending: Pending[];
  /** So many are tried at once: half as many after each failure, so that those before the one that fails are committed. */
  atOnce: number;
  delayMs: number;
  /** By the monotonic clock. */
  retryAtMs: number;
}

/**
 * The subscriptions whose records cannot be committed now: somebody holds their rows, or Postgres refuses a record. Each
 * is tried again for ever, in its order; nothing of it is left out. Their actors stop by themselves, because a lane
 * sends ahead of few commits.
 */
export class Apart {
  readonly #waiting = new Map<string, Waiting>();
  #running = false;
  readonly #deps: CommitDeps;
  readonly #try: (group: readonly Pending[]) => Promise<CommitFailure | undefined>;

  constructor(
    deps: CommitDeps,
    attempt: (group: readonly Pending[]) => Promise<CommitFailure | undefined>,
  ) {
    this.#deps = deps;
    this.#try = attempt;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Whether something of this shard is apart. */
  holds(shard: number): boolean {
    return this.#waiting.values().some(({ pending: [first] }) => first?.record.shard === shard);
  }

  /** Takes a record of a subscription that is apart; false if it is not. */
  take(one: Pending): boolean {
    const waiting = this.#waiting.get(one.record.subscriptionId);
    waiting?.pending.push(one);
    return waiting !== undefined;
  }

  /** Sets a subscription apart, with these records of it. */
  begin(group: readonly Pending[]): void {
    const id = group[0]?.record.subscriptionId;
    if (id === undefined) return;
    const atOnce = Math.ceil(group.length / 2);
    const retryAtMs = this.#deps.clock.monotonicMs() + FIRST_RETRY_MS;
    const waiting = { id, pending: [...group], atOnce, delayMs: FIRST_RETRY_MS, retryAtMs };
    this.#waiting.set(id, waiting);
    if (!this.#running) void this.#run();
  }

  clear(): void {
    this.#waiting.clear();
  }

  /** One at a time, so that however many they are, they take one connection. */
  async #run(): Promise<void> {
    this.#running = true;
    const { clock } = this.#deps;
    while (this.#waiting.size > 0) {
      const now = clock.monotonicMs();
      const due = [...this.#waiting.values()].filter(({ retryAtMs }) => retryAtMs <= now);
      for (const one of due) await this.#retry(one);
      if (due.length === 0) await clock.sleep(FIRST_RETRY_MS);
    }
    this.#running = false;
  }

  async #retry(one: Waiting): Promise<void> {
    const group = one.pending.slice(0, one.atOnce);
    const failure = await this.#try(group);
    // Thrown away meanwhile, because the lease was lost.
    if (this.#waiting.get(one.id) !== one) return;
    if (failure !== undefined) return this.#putOff(one, group, failure);
    one.pending.splice(0, group.length);
    one.atOnce = Math.min(2 * group.length, MOST_AT_ONCE);
    one.delayMs = FIRST_RETRY_MS;
    if (one.pending.length === 0) this.#waiting.delete(one.id);
  }

  #putOff(one: Waiting, group: readonly Pending[], failure: CommitFailure): void {
    if (failure === "records" && group.length > 1) {
      one.atOnce = Math.ceil(group.length / 2);
      return;
    }
    one.retryAtMs = this.#deps.clock.monotonicMs() + one.delayMs;
    one.delayMs = Math.min(2 * one.delayMs, LONGEST_RETRY_MS[failure]);
    const record = group[0]?.record;
    if (failure !== "records" || record === undefined) return;
    this.#deps.log.error("attempt.stuck", {
      subscription_id: one.id,
      event_id: record.eventId,
      sequence: record.sequence,
      waiting: one.pending.length,
    });
  }
}
