import type { Db, Tx } from "../../db/client.ts";
import { isLockTimeout } from "../../db/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { unavailable } from "../lib/problem.ts";

/**
 * Runs the transactions that lock sequences, on separate connections. Writers of one partner wait for each other, so
 * each partner gets only a share of these connections: a partner with a locked sequence cannot block the others.
 */
export type WriterPool = ReturnType<typeof createWriterPool>;

interface WriterPoolOptions {
  /** The connections of the pool, except the one for batches. */
  readonly connections: number;
  /** The highest number of simultaneous transactions of a partner. */
  readonly share: number;
  readonly waitMs: number;
}

export function createWriterPool(db: Db, clock: Clock, options: WriterPoolOptions) {
  const admission = new AdmissionQueue(clock, options);
  return {
    /**
     * Runs `work` in a transaction, like `Db`, once all of these partners are within their share. Throws
     * `unavailable` if that takes too long. `readsFirst`: the first statements are sent with `begin`.
     */
    async transaction<T>(
      partnerIds: readonly number[],
      work: (tx: Tx) => Promise<T>,
      given?: { readonly readsFirst: boolean },
    ): Promise<T> {
      const partners = [...new Set(partnerIds)];
      await admission.enter(partners);
      try {
        const result = await db.transaction(work, given);
        admission.clearBlocked(partners);
        return result;
      } catch (error) {
        if (isLockTimeout(error)) admission.markBlocked(partners);
        throw error;
      } finally {
        admission.leave(partners);
      }
    },
    /**
     * Runs `work` in a transaction that waits for no sequence, so the transaction needs no admission. The caller runs
     * one such transaction at a time, on a connection that is reserved for it. Its first statements only read, so
     * they are sent with `begin`.
     */
    group: <T>(work: (tx: Tx) => Promise<T>): Promise<T> =>
      db.transaction(work, { readsFirst: true }),
    /** Whether a transaction recently timed out while it waited for the sequence of one of these partners. */
    isBlocked: (partnerIds: readonly number[]) =>
      partnerIds.some((one) => admission.isBlocked(one)),
  };
}

interface Waiting {
  readonly partners: readonly number[];
  readonly settle: (isAdmitted: boolean) => void;
}

class AdmissionQueue {
  readonly #clock: Clock;
  readonly #options: WriterPoolOptions;
  #free: number;
  readonly #running = new Map<number, number>();
  /**
   * The monotonic time until which each partner is blocked after a lock timeout; a transaction that succeeds ends the
   * block earlier.
   */
  readonly #blockedUntilMs = new Map<number, number>();
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock, options: WriterPoolOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#free = options.connections;
  }

  async enter(partners: readonly number[]): Promise<void> {
    // A transaction for several partners would hold the sequences of its other partners while it waits for the
    // blocked partner, so it is rejected.
    if (partners.length > 1 && partners.some((one) => this.isBlocked(one))) throw unavailable();
    if (this.#admit(partners)) return;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiting = { partners, settle: resolve };
    this.#waiting.add(waiting);
    const settled = new AbortController();
    void this.#clock.sleep(this.#options.waitMs, settled.signal).then(() => {
      if (this.#waiting.delete(waiting)) resolve(false);
    });
    const isAdmitted = await promise;
    settled.abort();
    if (!isAdmitted) throw unavailable();
  }

  leave(partners: readonly number[]): void {
    this.#free++;
    for (const one of partners) {
      const left = (this.#running.get(one) ?? 1) - 1;
      if (left > 0) this.#running.set(one, left);
      else this.#running.delete(one);
    }
    for (const waiting of this.#waiting) {
      if (this.#free === 0) return;
      if (!this.#admit(waiting.partners)) continue;
      this.#waiting.delete(waiting);
      waiting.settle(true);
    }
  }

  /** Blocks a partner after a lock timeout. With several partners it is unknown which sequence was locked. */
  markBlocked([partner, ...others]: readonly number[]): void {
    if (partner === undefined || others.length > 0) return;
    this.#blockedUntilMs.set(partner, this.#clock.monotonicMs() + this.#options.waitMs);
    // Waiting transactions of the partner would wait for the same lock, so they are rejected now.
    for (const waiting of this.#waiting)
      if (waiting.partners.includes(partner) && this.#waiting.delete(waiting))
        waiting.settle(false);
  }

  clearBlocked(partners: readonly number[]): void {
    for (const one of partners) this.#blockedUntilMs.delete(one);
  }

  isBlocked(partnerId: number): boolean {
    return (this.#blockedUntilMs.get(partnerId) ?? 0) > this.#clock.monotonicMs();
  }

  /**
   * Admits a transaction for all of its partners together or not at all: a transaction that took a share of one
   * partner while it waits for another partner would block the first partner.
   */
  #admit(partners: readonly number[]): boolean {
    if (this.#free === 0 || !partners.every((one) => this.#hasRoom(one))) return false;
    this.#free--;
    for (const one of partners) this.#running.set(one, (this.#running.get(one) ?? 0) + 1);
    return true;
  }

  #hasRoom(partnerId: number): boolean {
    const share = this.isBlocked(partnerId) ? 1 : this.#options.share;
    return (this.#running.get(partnerId) ?? 0) < share;
  }
}
