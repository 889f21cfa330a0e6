import { addMs } from "../../src/lib/clock.ts";
import { errorFields } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import { type DueTimes, SHARDS, type Wake } from "../../src/outbox/schedule.ts";
import type { DispatchStore } from "../store/store.ts";
import { GroupRunner, type RunnerDeps } from "../store/group-runner.ts";
import { SWEEP_MS, type SweptSubscription } from "../store/sweep.ts";

/** The most subscriptions that one command takes from a sorted set. */
const TAKE_LIMIT = 256;
/** The pause in milliseconds before Redis is queried again after a failure. */
const REDIS_RETRY_MS = 1_000;
/**
 * The longest sleep of the scheduler in milliseconds while wakes are planned. It is short, because planned wakes become
 * due earlier if the clock of PostgreSQL is set forward.
 */
const MAX_SLEEP_MS = 200;
/** The time in milliseconds that received wakes stay in the sorted sets, so that one command removes many of them. */
const CLEAR_MS = 250;

export type ScheduleEvent =
  /** A subscription may have entries to send. `isSwept`: a sweep found the subscription; otherwise a wake named it. */
  | { readonly kind: "woken"; readonly wake: Wake; readonly isSwept: boolean }
  /** A process has queued a mail. */
  | { readonly kind: "mailer_woken" }
  /** A sweep has reported every due subscription of these shards. */
  | { readonly kind: "shards_swept"; readonly shards: readonly number[] };

/**
 * The most shards of one query, because the whole result of a query is kept in memory. If the last sweep of all shards
 * has found fewer than `FEW_SUBSCRIPTIONS` subscriptions, one query sweeps all shards.
 */
const SHARDS_PER_QUERY = 16;
const FEW_SUBSCRIPTIONS = 256;
/**
 * The number of subscriptions that one quick query reads of each claimed shard, before the full sweep of these shards.
 */
const CLAIMED_FIRST = 16;
/** The pause in milliseconds before a query is retried that failed because PostgreSQL is out of reach. */
const RETRY_MS = 1_000;

/** The result of a sweep query, with the claims under which its shards were held when it began. */
interface FoundSubscriptions {
  readonly claims: ReadonlyMap<number, unknown>;
  readonly subscriptions: readonly SweptSubscription[];
}

const restMs = () => SWEEP_MS;

interface SchedulerDeps extends RunnerDeps {
  /** The held shards, each with the claim under which it is held. */
  readonly holdings: { readonly shards: ReadonlyMap<number, unknown> };
  readonly schedule: DueTimes;
  readonly store: Pick<DispatchStore, "sweep">;
}

/**
 * Decides which subscription is woken, and when. It has three sources: wakes as they are published, the sorted sets in
 * Redis when their next score is due, and the sweep, which needs PostgreSQL only.
 *
 * The sweep finds the due subscriptions in PostgreSQL, in case a wake was lost or Redis is empty, and rebuilds the
 * sorted sets. A shard that cannot be swept is quarantined (`GroupRunner`), and the others are swept without it.
 */
export class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #report: (event: ScheduleEvent) => void;
  /** The time at which the sorted set of each shard is read next. It is kept in memory in case Redis loses the sets. */
  readonly #nextAt = new Map<number, Date>();
  readonly #take = new Waiter();
  /** Received wakes that are still in the sorted sets, by subscription. */
  readonly #uncleared = new Map<string, Wake>();
  /** Ends the waits between sweeps of all shards, and those between sweeps of claimed shards. */
  readonly #sweep = new Waiter();
  readonly #claim = new Waiter();
  /** Shards that were not swept since they were claimed. */
  readonly #claimed = new Set<number>();
  readonly #runner: GroupRunner<number, FoundSubscriptions>;
  /** Writes of swept wakes to Redis that are under way. */
  #planning: Promise<void>[] = [];
  /** The longest wait of a due entry in milliseconds since the last sweep of all shards ended. */
  #longestMs = 0;
  /** The number of subscriptions that the last sweep of all shards has found, at first unknown. */
  #found = Infinity;
  /** The longest wait of a due entry in milliseconds that the last sweep of all shards found. */
  lagMs = 0;

  constructor(deps: SchedulerDeps, report: (event: ScheduleEvent) => void) {
    this.#deps = deps;
    this.#report = report;
    this.#runner = new GroupRunner(deps, {
      keyOf: (shard) => shard,
      run: (shards) => this.#find(shards),
      done: (_, { claims, subscriptions }) => {
        this.#reportFound(subscriptions);
        // Leaves out shards that were lost during the query, even if they were claimed again, because their new claims
        // were not swept.
        const { shards } = deps.holdings;
        const swept = [...claims.keys()].filter((id) => shards.get(id) === claims.get(id));
        report({ kind: "shards_swept", shards: swept });
      },
      describe: (shard) => ({ shard }),
      events: { failed: "sweep.failed", stuck: "sweep.stuck" },
      retryMs: RETRY_MS,
    });
  }

  async run(ended: AbortSignal): Promise<void> {
    const { log, schedule } = this.#deps;
    ended.addEventListener("abort", () => this.#take.nudge());
    // Until Redis can be reached, the sweep finds the due subscriptions.
    void schedule
      .onWake(
        (wake) => this.#receive(wake),
        () => this.#report({ kind: "mailer_woken" }),
      )
      .catch((error: unknown) => log.warn("schedule.subscribe_failed", errorFields(error)));
    await Promise.all([this.#takeLoop(ended), this.#sweepLoops(ended)]);
  }

  /**
   * Reads the sorted sets of shards that were just claimed, and sweeps the shards, because they may have any number
   * of due subscriptions.
   */
  claimed(shards: readonly number[]): void {
    for (const shard of shards) {
      this.#nextAt.set(shard, this.#deps.clock.now());
      this.#claimed.add(shard);
    }
    this.#take.nudge();
    this.#claim.nudge();
  }

  /** Plans a wake for a subscription of a held shard. */
  async plan(wake: Wake, at: Date): Promise<void> {
    this.#takeAt(wake.shard, at);
    // The received wake is cleared now, because a later removal would take the new wake with it.
    if (this.#uncleared.delete(wake.subscriptionId)) void this.#deps.schedule.clear([wake]);
    await this.#deps.schedule.plan([{ ...wake, at }]);
  }

  #receive(wake: Wake): void {
    if (!this.#deps.holdings.shards.has(wake.shard)) return;
    if (this.#uncleared.size === 0) void this.#clear();
    this.#uncleared.set(wake.subscriptionId, wake);
    this.#report({ kind: "woken", wake, isSwept: false });
  }

  /**
   * Removes received wakes from the sorted sets, which would report them again. A wake that is lost here comes with
   * the next sweep. The next holder of a shard may have planned its retries there, so they are left to it.
   */
  async #clear(): Promise<void> {
    await this.#deps.clock.sleep(CLEAR_MS);
    const { holdings, schedule } = this.#deps;
    const received = [...this.#uncleared.values()];
    this.#uncleared.clear();
    await schedule.clear(received.filter(({ shard }) => holdings.shards.has(shard)));
  }

  /** Plans a read of the shard's sorted set at `at`, unless an earlier read is planned already. */
  #takeAt(shard: number, at: Date): void {
    const planned = this.#nextAt.get(shard);
    if (planned !== undefined && planned <= at) return;
    this.#nextAt.set(shard, at);
    this.#take.nudge();
  }

  /** Takes the due wakes from each sorted set, then sleeps until the next score of any of them. */
  async #takeLoop(ended: AbortSignal): Promise<void> {
    const { clock, holdings } = this.#deps;
    while (!ended.aborted) {
      const now = clock.now();
      let next = addMs(now, this.#nextAt.size > 0 ? MAX_SLEEP_MS : SWEEP_MS);
      const due: number[] = [];
      for (const [shard, at] of this.#nextAt) {
        if (!holdings.shards.has(shard)) this.#nextAt.delete(shard);
        else if (at <= now) due.push(shard);
        else if (at < next) next = at;
      }
      await Promise.all(due.map((shard) => this.#takeDue(shard, now)));
      if (due.length === 0) await this.#take.wait(clock, next.getTime() - now.getTime());
    }
  }

  async #takeDue(shard: number, now: Date): Promise<void> {
    this.#nextAt.delete(shard);
    try {
      const { due, nextAt } = await this.#deps.schedule.takeDue(shard, now, TAKE_LIMIT);
      for (const subscriptionId of due)
        this.#report({ kind: "woken", wake: { subscriptionId, shard }, isSwept: false });
      if (nextAt !== undefined) this.#takeAt(shard, nextAt);
    } catch (error) {
      this.#deps.log.warn("schedule.read_failed", { shard, ...errorFields(error) });
      this.#takeAt(shard, addMs(now, REDIS_RETRY_MS));
    }
  }

  /**
   * Sweeps all shards every `SWEEP_MS`. Shards that were just claimed are swept at the same time and do not wait for
   * it.
   */
  async #sweepLoops(ended: AbortSignal): Promise<void> {
    ended.addEventListener("abort", () => this.#runner.clear());
    const often = { clock: this.#deps.clock, ended };
    const sweepAll = async () => {
      const perQuery = this.#found < FEW_SUBSCRIPTIONS ? SHARDS : SHARDS_PER_QUERY;
      this.#found = 0;
      await this.#sweepShards(new Set(this.#deps.holdings.shards.keys()), { perQuery, ended });
      this.lagMs = this.#longestMs;
      this.#longestMs = 0;
    };
    await Promise.all([
      // This loop begins after `SWEEP_MS`, because the claim of a shard already causes its first sweep.
      often.clock.sleep(SWEEP_MS, ended).then(() => this.#sweep.repeat(often, restMs, sweepAll)),
      this.#claim.repeat(often, restMs, async () => {
        await this.#sweepFirst([...this.#claimed]);
        await this.#sweepShards(this.#claimed, { perQuery: SHARDS_PER_QUERY, ended });
      }),
    ]);
  }

  /** Sweeps these shards and removes each of them from the set. */
  async #sweepShards(
    left: Set<number>,
    { perQuery, ended }: { readonly perQuery: number; readonly ended: AbortSignal },
  ): Promise<void> {
    while (left.size > 0 && !ended.aborted) {
      const some = [...left].slice(0, perQuery);
      for (const shard of some) left.delete(shard);
      await this.#runner.run(some);
    }
    await Promise.all(this.#planning.splice(0));
  }

  /**
   * Finds the first subscriptions of each of these shards, which no dispatcher has served for seconds, so that
   * deliveries of each shard start immediately. The full sweep that follows also covers a failure here.
   */
  async #sweepFirst(shards: readonly number[]): Promise<void> {
    try {
      this.#reportFound((await this.#find(shards, CLAIMED_FIRST)).subscriptions);
    } catch (error) {
      this.#deps.log.warn("sweep.failed", errorFields(error));
    }
  }

  /** Finds the due subscriptions of those shards that are still held. */
  async #find(shards: readonly number[], limit?: number): Promise<FoundSubscriptions> {
    const held = this.#deps.holdings.shards;
    const claims = new Map(shards.filter((id) => held.has(id)).map((id) => [id, held.get(id)]));
    if (claims.size === 0) return { claims, subscriptions: [] };
    return { claims, subscriptions: await this.#deps.store.sweep([...claims.keys()], limit) };
  }

  /** Reports the due subscriptions, and plans wakes in Redis for those that are due later. */
  #reportFound(found: readonly SweptSubscription[]): void {
    const now = this.#deps.clock.now();
    const later: (Wake & { at: Date })[] = [];
    this.#found += found.length;
    for (const { subscriptionId, shard, dueInMs, waitedMs } of found) {
      this.#longestMs = Math.max(this.#longestMs, waitedMs ?? 0);
      const wake = { subscriptionId, shard };
      if (dueInMs <= 0) this.#report({ kind: "woken", wake, isSwept: true });
      else later.push({ ...wake, at: addMs(now, Math.ceil(dueInMs)) });
    }
    for (const { shard, at } of later) this.#takeAt(shard, at);
    this.#planning.push(this.#deps.schedule.plan(later));
  }
}
