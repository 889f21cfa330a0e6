import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";

/**
 * The reason why the work for a group failed.
 *
 * - `waits`: another transaction has held a lock for longer than `lock_timeout`.
 * - `store`: PostgreSQL is out of reach, full or being changed, so any other group would fail, too.
 * - `refused`: an item of this group is the cause, as far as the error shows.
 */
export type Failure = "waits" | "store" | "refused";

/** SQLSTATE of a statement that waited for longer than `lock_timeout`. */
const LOCK_NOT_AVAILABLE = "55P03";
/** SQLSTATE of a statement that ran for longer than `statement_timeout`, for example because it reads too much. */
const QUERY_CANCELED = "57014";
/**
 * Classes of SQLSTATE that do not concern the rows of a statement: connection, transaction (a server that is read-only
 * after a failover), access, deadlock, missing columns during an upgrade, resources, operator.
 */
const OUTAGE_CLASSES = new Set(["08", "25", "28", "40", "42", "53", "55", "57"]);
/** The form of an SQLSTATE. No class begins with E, unlike the codes of socket errors. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

/**
 * Classifies an error. An error without a code comes from our own code, for example from the decoding of a damaged row.
 */
export function failureOf(error: unknown): Failure {
  const { code } = errorFields(error);
  if (typeof code !== "string") return "refused";
  if (!SQLSTATE.test(code)) return "store";
  if (code === LOCK_NOT_AVAILABLE) return "waits";
  if (code === QUERY_CANCELED) return "refused";
  return OUTAGE_CLASSES.has(code.slice(0, 2)) ? "store" : "refused";
}

export interface RunnerDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface Work<T, R> {
  /** Returns the key of an item. Items with the same key keep their order and are never split up. */
  readonly keyOf: (item: T) => string | number;
  /** Does the work for a group in one transaction. Must be repeatable, because a try that failed may have committed. */
  readonly run: (group: readonly T[]) => Promise<R>;
  /** Called with the result after each try that succeeded. */
  readonly done: (group: readonly T[], result: R) => void;
  /** Returns the log fields that identify an item. */
  readonly describe: (item: T) => Readonly<Record<string, unknown>>;
  /** Called with the first item of a quarantined key, after each try of the key. */
  readonly quarantined?: (item: T, failure: Failure | undefined) => void;
  /** The names of the log events for a failed try, and for a quarantined item that fails again. */
  readonly events: { readonly failed: string; readonly stuck: string };
  /** The pause in milliseconds before a group is retried that failed because PostgreSQL is out of reach. */
  readonly retryMs: number;
}

/** The pause in milliseconds before the first retry of a quarantined key. It doubles with each failure. */
const FIRST_RETRY_MS = 100;
/**
 * The longest pause in milliseconds between two retries of a quarantined key. Locks are released sooner or later, but
 * rejected items stay until an operator repairs them.
 */
const LONGEST_RETRY_MS = { waits: 1_000, store: 1_000, refused: 30_000 };

interface QuarantinedKey<T> {
  /** The quarantined items of the key in their order. */
  readonly pending: T[];
  /**
   * The number of items of the next try: one, and twice as many after each success, so that only rejected items stay.
   */
  size: number;
  delayMs: number;
  /** The time of the next try in milliseconds by the monotonic clock. */
  retryAtMs: number;
}

interface FailedTry {
  readonly failure: Failure;
  readonly error: unknown;
}

/**
 * Runs work for many items in one group, so that one failing item does not stop the others. A group that fails is
 * halved until a single failing key is left. That key is quarantined: it is retried individually, without an end,
 * after growing pauses, and its further items wait behind it. While PostgreSQL is out of reach a group is not split
 * but retried as a whole.
 */
export class GroupRunner<T, R> {
  readonly #quarantine = new Map<string | number, QuarantinedKey<T>>();
  #retrying = false;
  /** Ends the current work when `clear` aborts it. */
  #current = new AbortController();
  readonly #deps: RunnerDeps;
  readonly #work: Work<T, R>;

  constructor(deps: RunnerDeps, work: Work<T, R>) {
    this.#deps = deps;
    this.#work = work;
  }

  /** The number of quarantined keys. */
  get quarantined(): number {
    return this.#quarantine.size;
  }

  /** The number of quarantined items. */
  get waiting(): number {
    return this.#quarantine.values().reduce((sum, { pending }) => sum + pending.length, 0);
  }

  /** Whether the first item of any quarantined key matches. */
  hasQuarantined(fits: (item: T) => boolean): boolean {
    return this.#quarantine
      .values()
      .some(({ pending: [first] }) => first !== undefined && fits(first));
  }

  /**
   * Makes each quarantined key due immediately if its first item matches, even if a try of the key is under way and
   * fails.
   */
  retryNow(fits: (item: T) => boolean): void {
    for (const one of this.#quarantine.values()) {
      const [first] = one.pending;
      if (first === undefined || !fits(first)) continue;
      one.retryAtMs = 0;
      one.delayMs = FIRST_RETRY_MS;
    }
  }

  /** Runs the work. Resolves when each item has succeeded or is quarantined, or after `clear`. */
  async run(items: readonly T[]): Promise<void> {
    const { signal } = this.#current;
    const group = items.filter((item) => !this.#join(item));
    // Halves that have not failed yet go first, because a failing try may take until its timeout.
    const groups = group.length === 0 ? [] : [group];
    for (let next = groups.shift(); next !== undefined; next = groups.shift()) {
      const failed = await this.#try(next);
      if (failed?.failure === "store") await this.#deps.clock.sleep(this.#work.retryMs, signal);
      if (signal.aborted) return;
      if (failed === undefined) continue;
      const [first, second] = halvesOf(next, this.#work.keyOf);
      if (failed.failure === "store") groups.unshift(next);
      else if (second.length === 0) this.#begin(first);
      else groups.push(first, second);
    }
  }

  /** Forgets all items, because their results are not needed any more. */
  clear(): void {
    this.#quarantine.clear();
    this.#current.abort("cleared");
    this.#current = new AbortController();
  }

  #join(item: T): boolean {
    return joinPending(this.#quarantine.get(this.#work.keyOf(item)), item);
  }

  async #try(group: readonly T[]): Promise<FailedTry | undefined> {
    let result: R;
    try {
      result = await this.#work.run(group);
    } catch (error) {
      const failure = failureOf(error);
      const fields = { items: group.length, failure, ...errorFields(error) };
      this.#deps.log.warn(this.#work.events.failed, fields);
      return { failure, error };
    }
    this.#work.done(group, result);
    return undefined;
  }

  /** Quarantines the key that these items share. */
  #begin(items: readonly T[]): void {
    const pending = items.filter((item) => !this.#join(item));
    const [first] = pending;
    if (first === undefined) return;
    this.#quarantine.set(this.#work.keyOf(first), {
      pending,
      size: 1,
      delayMs: FIRST_RETRY_MS,
      retryAtMs: this.#deps.clock.monotonicMs() + FIRST_RETRY_MS,
    });
    if (!this.#retrying) void this.#retryAll();
  }

  /** Retries one key at a time, so that any number of keys uses one connection. */
  async #retryAll(): Promise<void> {
    this.#retrying = true;
    const { clock } = this.#deps;
    while (this.#quarantine.size > 0) {
      const now = clock.monotonicMs();
      const due = [...this.#quarantine].filter(([, { retryAtMs }]) => retryAtMs <= now);
      for (const [key, one] of due) await this.#retry(key, one);
      if (due.length === 0) await clock.sleep(FIRST_RETRY_MS);
    }
    this.#retrying = false;
  }

  async #retry(key: string | number, one: QuarantinedKey<T>): Promise<void> {
    if (this.#quarantine.get(key) !== one) return;
    const group = one.pending.slice(0, one.size);
    const failed = await this.#try(group);
    // The key may be gone, because `clear` was called during the try.
    if (this.#quarantine.get(key) !== one) return;
    const [item] = group;
    if (item !== undefined) this.#work.quarantined?.(item, failed?.failure);
    if (failed !== undefined) return this.#putOff(one, failed, group.length);
    one.pending.splice(0, group.length);
    one.size = 2 * group.length;
    one.delayMs = FIRST_RETRY_MS;
    if (one.pending.length === 0) this.#quarantine.delete(key);
  }

  /** Postpones a quarantined key after a failed try of `tried` items. */
  #putOff(one: QuarantinedKey<T>, { failure, error }: FailedTry, tried: number): void {
    one.size = 1;
    // Any of several items may be rejected, so the first item is retried alone immediately.
    if (failure === "refused" && tried > 1) return;
    one.retryAtMs = this.#deps.clock.monotonicMs() + one.delayMs;
    one.delayMs = Math.min(2 * one.delayMs, LONGEST_RETRY_MS[failure]);
    const [first] = one.pending;
    if (failure !== "refused" || first === undefined) return;
    const fields = { ...this.#work.describe(first), waiting: one.pending.length };
    this.#deps.log.error(this.#work.events.stuck, { ...fields, ...errorFields(error) });
  }
}

/**
 * Adds an item to the quarantined items of its key, unless it is among them already. Returns false if the key is not
 * quarantined.
 */
export function joinPending<T>(known: QuarantinedKey<T> | undefined, item: T): boolean {
  if (known !== undefined && !known.pending.includes(item)) known.pending.push(item);
  return known !== undefined;
}

/** Splits a group by keys into two halves, each in order. The second half is empty for a single key. */
export function halvesOf<T>(
  group: readonly T[],
  keyOf: (item: T) => string | number,
): readonly [T[], T[]] {
  const keys = [...new Set(group.map(keyOf))];
  const firsts = new Set(keys.slice(0, Math.ceil(keys.length / 2)));
  const isFirst = (item: T) => firsts.has(keyOf(item));
  return [group.filter(isFirst), group.filter((item) => !isFirst(item))];
}
