import type { Db, Tx } from "../../db/client.ts";
import { isLockTimeout } from "../../db/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { unavailable } from "../lib/problem.ts";
import { Waiter } from "../lib/waiter.ts";

/**
 * Runs the transactions that lock sequences, on database connections of their own. Writers of one partner wait for each
 * other, so each partner may use only a share of these connections. Thus a partner whose sequence is locked cannot
 * block the others.
 */
export type WriterPool = ReturnType<typeof createWriterPool>;

interface WriterPoolOptions {
  /** Number of database connections in the pool, without the one that `group` uses. */
  readonly connections: number;
  /** Maximum number of concurrent transactions per partner. */
  readonly share: number;
  readonly waitMs: number;
}

/** A transaction that is not admitted yet. */
interface WaitingTransaction {
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
  const waiting = new Set<WaitingTransaction>();
  /**
   * The monotonic time until which each partner is blocked after a lock timeout; a successful transaction of the
   * partner ends the block earlier.
   */
  const blockedUntilMs = new Map<number, number>();

  const isBlocked = (partnerId: number) =>
    (blockedUntilMs.get(partnerId) ?? 0) > clock.monotonicMs();

  const hasRoom = (partnerId: number) => {
    const own = [...running].filter((partners) => partners.includes(partnerId));
    return own.length < (isBlocked(partnerId) ? 1 : share);
  };

  /**
   * Admits a transaction for all of its partners at once, or not at all. If it used the share of one partner while it
   * waits for another, it would block the first partner.
   */
  const admit = (partners: readonly number[]) => {
    const isAdmitted = running.size < connections && partners.every(hasRoom);
    if (isAdmitted) running.add(partners);
    return isAdmitted;
  };

  const enter = async (partners: readonly number[]) => {
    // A transaction for several partners is rejected if one of them is blocked. It would hold the sequences of the
    // other partners while it waits for the sequence of that partner.
    if (partners.length > 1 && partners.some(isBlocked)) throw unavailable();
    if (admit(partners)) return;
    const one: WaitingTransaction = { partners, waiter: new Waiter(), isAdmitted: false };
    waiting.add(one);
    await one.waiter.wait(clock, waitMs);
    waiting.delete(one);
    if (!one.isAdmitted) throw unavailable();
  };

  const settle = (one: WaitingTransaction, isAdmitted: boolean) => {
    waiting.delete(one);
    one.isAdmitted = isAdmitted;
    one.waiter.nudge();
  };

  const leave = (partners: readonly number[]) => {
    running.delete(partners);
    for (const one of waiting) if (admit(one.partners)) settle(one, true);
  };

  /**
   * Blocks a partner after a lock timeout. Does nothing for several partners, because the partner of the locked
   * sequence is unknown.
   */
  const block = ([partner, ...others]: readonly number[]) => {
    if (partner === undefined || others.length > 0) return;
    blockedUntilMs.set(partner, clock.monotonicMs() + waitMs);
    // Waiting transactions of the partner would wait for the same lock, so they are rejected now.
    for (const one of waiting) if (one.partners.includes(partner)) settle(one, false);
  };

  return {
    /**
     * Runs `work` in a transaction as soon as each of these partners has room in its share. Throws `unavailable` if
     * that takes longer than `waitMs`. With `readsFirst`, the first statements only read and are sent together with
     * `begin`.
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
     * Runs `work` in a transaction that never waits for a sequence, so it needs no admission. The caller runs one such
     * transaction at a time, on a database connection that is reserved for it. Its first statements only read, so they
     * are sent together with `begin`.
     */
    group: <T>(work: (tx: Tx) => Promise<T>): Promise<T> =>
      db.transaction(work, { readsFirst: true }),
    /**
     * Runs a statement that is a transaction of its own and never waits for a sequence, like the transaction of
     * `group`.
     */
    run: db.run,
    /** Whether a transaction recently timed out while it waited for the sequence of one of these partners. */
    isBlocked: (partnerIds: readonly number[]) => partnerIds.some(isBlocked),
  };
}
