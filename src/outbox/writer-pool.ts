import type { Db, Tx } from "../../db/client.ts";
import { isLockTimeout } from "../../db/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { unavailable } from "../lib/problem.ts";

/**
 * The transactions that take the sequence of a subscription, on connections of their own. Whoever appends for a partner
 * waits for the partner's other appends, so that of these connections a partner has a share alone: one whose sequence
 * is held keeps the others from nothing.
 */
export type WriterPool = ReturnType<typeof createWriterPool>;

interface WriterPoolOptions {
  /** All of the pool's but that of the groups. */
  readonly connections: number;
  /** Of one partner. */
  readonly share: number;
  readonly waitMs: number;
}

export function createWriterPool(db: Db, clock: Clock, options: WriterPoolOptions) {
  const admission = new AdmissionQueue(clock, options);
  return {
    /**
     * Runs `work` in a transaction, as `Db` does, once all of these partners have room. Throws `unavailable` if they have
     * none in time. `readsFirst`: its first statements are sent with the begin.
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
     * Runs `work` in a transaction that waits for no sequence, so it needs no room. The caller runs one at a time, on a
     * connection that is kept for it. It reads before it writes: its first statements are sent with the begin.
     */
    group: <T>(work: (tx: Tx) => Promise<T>): Promise<T> =>
      db.transaction(work, { readsFirst: true }),
    /** Whether a transaction waited in vain for the sequence of one of these partners, a short time ago. */
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
  readonly #under = new Map<number, number>();
  /** Of these somebody waited in vain for a lock, until when that counts if nobody comes through. */
  readonly #stuckUntilMs = new Map<number, number>();
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock, options: WriterPoolOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#free = options.connections;
  }

  async enter(partners: readonly number[]): Promise<void> {
    // Whoever appends for several would hold the sequences of the others while it waits for the stuck one.
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
      const left = (this.#under.get(one) ?? 1) - 1;
      if (left > 0) this.#under.set(one, left);
      else this.#under.delete(one);
    }
    for (const waiting of this.#waiting) {
      if (this.#free === 0) return;
      if (!this.#admit(waiting.partners)) continue;
      this.#waiting.delete(waiting);
      waiting.settle(true);
    }
  }

  /** Nobody knows for whose sequence it was if they are several. */
  markBlocked([partner, ...others]: readonly number[]): void {
    if (partner === undefined || others.length > 0) return;
    this.#stuckUntilMs.set(partner, this.#clock.monotonicMs() + this.#options.waitMs);
    // They would wait for the same lock.
    for (const waiting of this.#waiting)
      if (waiting.partners.includes(partner) && this.#waiting.delete(waiting))
        waiting.settle(false);
  }

  clearBlocked(partners: readonly number[]): void {
    for (const one of partners) this.#stuckUntilMs.delete(one);
  }

  isBlocked(partnerId: number): boolean {
    return (this.#stuckUntilMs.get(partnerId) ?? 0) > this.#clock.monotonicMs();
  }

  /** All of them at once or none: whoever held room of one while waiting for another would hold it back. */
  #admit(partners: readonly number[]): boolean {
    if (this.#free === 0 || !partners.every((one) => this.#hasRoom(one))) return false;
    this.#free--;
    for (const one of partners) this.#under.set(one, (this.#under.get(one) ?? 0) + 1);
    return true;
  }

  #hasRoom(partnerId: number): boolean {
    const share = this.isBlocked(partnerId) ? 1 : this.#options.share;
    return (this.#under.get(partnerId) ?? 0) < share;
  }
}
