import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";

/**
 * Why the work for a group failed.
 *
 * - `waits`: another transaction has held a lock for longer than `lock_timeout`.
 * - `store`: Postgres is out of reach, full or being changed, so any other group would fail, too.
 * - `refused`: something in this group is the cause, as far as the error tells.
 */
export type Failure = "waits" | "store" | "refused";

/** SQLSTATE of a statement that waited for longer than `lock_timeout`. */
const LOCK_NOT_AVAILABLE = "55P03";
/** SQLSTATE of a statement that ran for longer than `statement_timeout`, as one does that has too much to read. */
const QUERY_CANCELED = "57014";
/**
 * Classes of SQLSTATE that are not about the rows of a statement: connection, transaction (a server that is read-only
 * after a failover), access, deadlock, columns that are missing during an upgrade, resources, operator.
 */
const STORE_CLASSES = new Set(["08", "25", "28", "40", "42", "53", "55", "57"]);
/** No class begins with E, which the codes of socket errors do. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

/** Classifies an error. One without a code comes from our own code, for example from reading a row that is damaged. */
export function failureOf(error: unknown): Failure {
  const { code } = errorFields(error);
  if (typeof code !== "string") return "refused";
  if (!SQLSTATE.test(code)) return "store";
  if (code === LOCK_NOT_AVAILABLE) return "waits";
  if (code === QUERY_CANCELED) return "refused";
  return STORE_CLASSES.has(code.slice(0, 2)) ? "store" : "refused";
}

export interface RunnerDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface Work<T, R> {
  /** Items with the same key stay in their order. A group is never split between them. */
  readonly keyOf: (item: T) => string | number;
  /** Does the work for a group in one transaction. An earlier try may have been committed unnoticed. */
  readonly run: (group: readonly T[]) => Promise<R>;
  /** Called with the result after each try that succeeded. */
  readonly done: (group: readonly T[], result: R) => void;
  /** Fields that name an item in the log. */
  readonly describe: (item: T) => Readonly<Record<string, unknown>>;
  /** Log events: a try failed; a quarantined item was refused again. */
  readonly events: { readonly failed: string; readonly stuck: string };
  /** The pause before a group is tried again that failed because of the store. */
  readonly retryMs: number;
}

/** The pause before the first try in quarantine. It doubles with each failure. */
const FIRST_RETRY_MS = 100;
/** The longest pause. Locks are released by themselves; what Postgres refuses, somebody has to repair. */
const LONGEST_RETRY_MS = { waits: 1_000, store: 1_000, refused: 30_000 };

interface Quarantined<T> {
  /** In their order. */
  readonly pending: T[];
  /** How many of them the next try takes: one, and twice as many after each success, so that only a refused one is stuck. */
  size: number;
  delayMs: number;
  /** By the monotonic clock. */
  retryAtMs: number;
}

interface Failed {
  readonly failure: Failure;
  readonly error: unknown;
}

/**
 * Does work for many items at once, so that one item that fails does not stop the others. A group that fails is halved
 * until the key that it fails for is alone. That key is quarantined: it is retried alone, for ever, after pauses that
 * grow, and further items of it wait behind it. While Postgres is out of reach a group stays whole and is tried again.
 */
export class GroupRunner<T, R> {
  readonly #quarantine = new Map<string | number, Quarantined<T>>();
  #retrying = false;
  /** Ended by `clear`. */
  #current = new AbortController();
  readonly #deps: RunnerDeps;
  readonly #work: Work<T, R>;

  constructor(deps: RunnerDeps, work: Work<T, R>) {
    this.#deps = deps;
    this.#work = work;
  }

  /** How many keys are quarantined. */
  get quarantined(): number {
    return this.#quarantine.size;
  }

  /** How many items wait in quarantine. */
  get waiting(): number {
    return this.#quarantine.values().reduce((sum, { pending }) => sum + pending.length, 0);
  }

  /** Whether the first item of any quarantined key fits. */
  hasQuarantined(fits: (item: T) => boolean): boolean {
    return this.#quarantine
      .values()
      .some(({ pending: [first] }) => first !== undefined && fits(first));
  }

  /** Makes each quarantined key due whose first item fits, also one whose try is under way and fails. */
  retryNow(fits: (item: T) => boolean): void {
    for (const one of this.#quarantine.values()) {
      const [first] = one.pending;
      if (first === undefined || !fits(first)) continue;
      one.retryAtMs = 0;
      one.delayMs = FIRST_RETRY_MS;
    }
  }

  /** Resolves when each item has succeeded or is quarantined, or after `clear`. */
  async run(items: readonly T[]): Promise<void> {
    const { signal } = this.#current;
    const group = items.filter((item) => !this.#join(item));
    // The halves that did not fail yet go first, because a try that fails may take until its time-out.
    const groups = group.length === 0 ? [] : [group];
    for (let next = groups.shift(); next !== undefined; next = groups.shift()) {
      const failed = await this.#tryWhileAway(next, signal);
      if (signal.aborted) return;
      if (failed === undefined) continue;
      const [first, second] = halvesOf(next, this.#work.keyOf);
      if (second.length === 0) this.#begin(first);
      else groups.push(first, second);
    }
  }

  /** Forgets all items: nobody waits for them any more. */
  clear(): void {
    this.#quarantine.clear();
    this.#current.abort("cleared");
    this.#current = new AbortController();
  }

  #join(item: T): boolean {
    return joinPending(this.#quarantine.get(this.#work.keyOf(item)), item);
  }

  async #tryWhileAway(group: readonly T[], signal: AbortSignal): Promise<Failed | undefined> {
    let failed = await this.#try(group);
    while (failed?.failure === "store" && !signal.aborted) {
      await this.#deps.clock.sleep(this.#work.retryMs, signal);
      if (!signal.aborted) failed = await this.#try(group);
    }
    return failed;
  }

  async #try(group: readonly T[]): Promise<Failed | undefined> {
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

  /** Quarantines the key of these items. */
  #begin(items: readonly T[]): void {
    const rest = items.filter((item) => !this.#join(item));
    const [first] = rest;
    if (first === undefined) return;
    this.#quarantine.set(this.#work.keyOf(first), {
      pending: [...rest],
      size: 1,
      delayMs: FIRST_RETRY_MS,
      retryAtMs: this.#deps.clock.monotonicMs() + FIRST_RETRY_MS,
    });
    if (!this.#retrying) void this.#retryAll();
  }

  /** Retries one key at a time, so that any number of them takes one connection. */
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

  async #retry(key: string | number, one: Quarantined<T>): Promise<void> {
    if (this.#quarantine.get(key) !== one) return;
    const group = one.pending.slice(0, one.size);
    const failed = await this.#try(group);
    // `clear` may have been called during the try.
    if (this.#quarantine.get(key) !== one) return;
    if (failed !== undefined) return this.#putOff(one, failed, group.length);
    one.pending.splice(0, group.length);
    one.size = 2 * group.length;
    one.delayMs = FIRST_RETRY_MS;
    if (one.pending.length === 0) this.#quarantine.delete(key);
  }

  /** After a try of so many items. */
  #putOff(one: Quarantined<T>, { failure, error }: Failed, tried: number): void {
    one.size = 1;
    // Any of them may be refused: the first is tried alone at once.
    if (failure === "refused" && tried > 1) return;
    one.retryAtMs = this.#deps.clock.monotonicMs() + one.delayMs;
    one.delayMs = Math.min(2 * one.delayMs, LONGEST_RETRY_MS[failure]);
    const [first] = one.pending;
    if (failure !== "refused" || first === undefined) return;
    const fields = { ...this.#work.describe(first), waiting: one.pending.length };
    this.#deps.log.error(this.#work.events.stuck, { ...fields, ...errorFields(error) });
  }
}

/** Adds an item to those of its key that are quarantined, unless it waits there already; false if none is. */
export function joinPending<T>(known: Quarantined<T> | undefined, item: T): boolean {
  if (known !== undefined && !known.pending.includes(item)) known.pending.push(item);
  return known !== undefined;
}

/** The items of half of the keys, and those of the other half, each in order; the second is empty for a single key. */
export function halvesOf<T>(
  group: readonly T[],
  keyOf: (item: T) => string | number,
): readonly [T[], T[]] {
  const keys = [...new Set(group.map(keyOf))];
  const firsts = new Set(keys.slice(0, Math.ceil(keys.length / 2)));
  const isFirst = (item: T) => firsts.has(keyOf(item));
  return [group.filter(isFirst), group.filter((item) => !isFirst(item))];
}
