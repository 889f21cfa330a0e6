import type { Db, Tx } from "../../db/client.ts";
import { isLockTimeout } from "../../db/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { unavailable } from "../lib/problem.ts";
import { Waiter } from "../lib/waiter.ts";

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

/** A transaction that is not admitted yet. */
interface Waiting {
  readonly partners: readonly number[];
  readonly waiter: Waiter;
  isAdmitted: boolean;
}

export function createWriterPool(
  db: Db,
  clock: Clock,
  { connections, share, waitMs }: WriterPoolOptions,
) {
  /** The partners of each running transaction. */
  const running = new Set<readonly number[]>();
  const waiting = new Set<Waiting>();
  /**
   * The monotonic time until which each partner is blocked after a lock timeout; a transaction that succeeds ends the
   * block earlier.
   */
  const blockedUntilMs = new Map<number, number>();

  const isBlocked = (partnerId: number) =>
    (blockedUntilMs.get(partnerId) ?? 0) > clock.monotonicMs();

  const hasRoom = (partnerId: number) => {
    const own = [...running].filter((partners) => partners.includes(partnerId));
    return own.length < (isBlocked(partnerId) ? 1 : share);
  };

  /**
   * Admits a transaction for all of its partners together or not at all: a transaction that took a share of one
   * partner while it waits for another partner would block the first partner.
   */
  const admit = (partners: readonly number[]) => {
    const isAdmitted = running.size < connections && partners.every(hasRoom);
    if (isAdmitted) running.add(partners);
    return isAdmitted;
  };

  const enter = async (partners: readonly number[]) => {
    // A transaction for several partners would hold the sequences of its other partners while it waits for the
    // blocked partner, so it is rejected.
    if (partners.length > 1 && partners.some(isBlocked)) throw unavailable();
    if (admit(partners)) return;
    const one: Waiting = { partners, waiter: new Waiter(), isAdmitted: false };
    waiting.add(one);
    await one.waiter.wait(clock, waitMs);
    waiting.delete(one);
    if (!one.isAdmitted) throw unavailable();
  };

  const settle = (one: Waiting, isAdmitted: boolean) => {
    waiting.delete(one);
    one.isAdmitted = isAdmitted;
    one.waiter.nudge();
  };

  const leave = (partners: readonly number[]) => {
    running.delete(partners);
    for (const one of waiting) if (admit(one.partners)) settle(one, true);
  };

  /** Blocks a partner after a lock timeout. With several partners it is unknown which sequence was locked. */
  const block = ([partner, ...others]: readonly number[]) => {
    if (partner === undefined || others.length > 0) return;
    blockedUntilMs.set(partner, clock.monotonicMs() + waitMs);
    // Waiting transactions of the partner would wait for the same lock, so they are rejected now.
    for (const one of waiting) if (one.partners.includes(partner)) settle(one, false);
  };

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
      await enter(partners);
      try {
        const result = await db.transaction(work, given);
        for (const one of partners) blockedUntilMs.delete(one);
        return result;
      } catch (error) {
        if (isLockTimeout(error)) block(partners);
        throw error;
      } finally {
        leave(partners);
      }
    },
    /**
     * Runs `work` in a transaction that waits for no sequence, so the transaction needs no admission. The caller runs
     * one such transaction at a time, on a connection that is reserved for it. Its first statements only read, so
     * they are sent with `begin`.
     */
    group: <T>(work: (tx: Tx) => Promise<T>): Promise<T> =>
      db.transaction(work, { readsFirst: true }),
    /** Runs a statement that waits for no sequence and is a transaction by itself, like that of `group`. */
    run: db.run,
    /** Whether a transaction recently timed out while it waited for the sequence of one of these partners. */
    isBlocked: (partnerIds: readonly number[]) => partnerIds.some(isBlocked),
  };
}
