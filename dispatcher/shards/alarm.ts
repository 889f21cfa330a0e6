import { addMs, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import type { Schedule, Wake } from "../../src/outbox/schedule.ts";
import type { DispatchStore } from "../store/store.ts";
import { Sweeper } from "./sweeper.ts";

/** How many subscriptions are taken from a sorted set at once. */
const TAKE_LIMIT = 256;
/** How soon Redis is asked again when it did not answer. */
const REDIS_RETRY_MS = 1_000;
/**
 * How long the alarm sleeps at the most: when the clock of Postgres is set forward, what was planned is due sooner than
 * the sleep that began before ends.
 */
const MAX_SLEEP_MS = 200;
/** How long wakes that were heard stay in the sorted sets, so that many are removed by one command. */
const CLEAR_MS = 250;

interface AlarmDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly schedule: Schedule;
  readonly store: DispatchStore;
}

/** What the alarm asks and tells the process that it is part of. */
interface AlarmListener {
  /** Those that we hold, each with the claim that it is held by. */
  shards(): ReadonlyMap<number, unknown>;
  /** `isSwept`: a sweep has found it; nothing happened to it just now. */
  ring(wake: Wake, isSwept: boolean): void;
  /** A sweep of these shards has rung for all that it found due. */
  swept(shards: readonly number[]): void;
}

/**
 * Tells which subscription to look at, and when. It learns that from wakes as they are published, from the sorted sets
 * when their next score comes, and from the sweep, which needs nothing but Postgres.
 */
export class Alarm {
  readonly #deps: AlarmDeps;
  readonly #listener: AlarmListener;
  /** When each of our shards has to be looked at. These times hold even if the sorted sets are lost. */
  readonly #nextAt = new Map<number, Date>();
  readonly #take = new Waiter();
  readonly #sweeper: Sweeper;
  #heard: Wake[] = [];
  /** By subscription: wakes that were heard and are still in the sorted sets. */
  readonly #unclear = new Map<string, Wake>();

  constructor(deps: AlarmDeps, listener: AlarmListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#sweeper = new Sweeper(deps, {
      shards: () => listener.shards(),
      due: (wake) => listener.ring(wake, true),
      later: (shard, at) => this.#lookAt(shard, at),
      swept: (shards) => listener.swept(shards),
    });
  }

  /** How long the oldest due entry had waited at the last sweep. */
  get lagMs(): number {
    return this.#sweeper.lagMs;
  }

  async run(ended: AbortSignal): Promise<void> {
    ended.addEventListener("abort", () => this.#take.nudge());
    // If Redis cannot be reached yet, the sweep works meanwhile.
    void this.#deps.schedule
      .onWake((wake) => this.#hear(wake))
      .catch((error: unknown) => this.#deps.log.warn("schedule.unheard", errorFields(error)));
    await Promise.all([this.#takeLoop(ended), this.#sweeper.run(ended)]);
  }

  /** Looks at shards that were just claimed at once, because they may hold anything. */
  claimed(shards: readonly number[]): void {
    for (const shard of shards) this.#nextAt.set(shard, this.#deps.clock.now());
    this.#take.nudge();
    this.#sweeper.claimed(shards);
  }

  /** Plans a look at one of our own subscriptions. */
  async plan(wake: Wake, at: Date): Promise<void> {
    this.#lookAt(wake.shard, at);
    // Removed later, it would take the new look with it.
    if (this.#unclear.delete(wake.subscriptionId)) void this.#deps.schedule.clear([wake]);
    await this.#deps.schedule.plan([{ ...wake, at }]);
  }

  #hear(wake: Wake): void {
    if (!this.#listener.shards().has(wake.shard)) return;
    if (this.#heard.push(wake) === 1) queueMicrotask(() => this.#ringHeard());
  }

  #ringHeard(): void {
    const heard = this.#heard;
    this.#heard = [];
    if (this.#unclear.size === 0) void this.#clear();
    for (const wake of heard) {
      this.#unclear.set(wake.subscriptionId, wake);
      this.#listener.ring(wake, false);
    }
  }

  /** Removes what was heard from the sorted sets, which would tell the same again. A wake that is lost costs a sweep. */
  async #clear(): Promise<void> {
    await this.#deps.clock.sleep(CLEAR_MS);
    const heard = [...this.#unclear.values()];
    this.#unclear.clear();
    await this.#deps.schedule.clear(heard);
  }

  #lookAt(shard: number, at: Date): void {
    const planned = this.#nextAt.get(shard);
    if (planned !== undefined && planned <= at) return;
    this.#nextAt.set(shard, at);
    this.#take.nudge();
  }

  /** Takes what is due from each of our sets, then sleeps until the next score of any of them. */
  async #takeLoop(ended: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!ended.aborted) {
      const now = clock.now();
      let next = addMs(now, MAX_SLEEP_MS);
      const due: number[] = [];
      for (const [shard, at] of this.#nextAt) {
        if (!this.#listener.shards().has(shard)) this.#nextAt.delete(shard);
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
      for (const subscriptionId of due) this.#listener.ring({ subscriptionId, shard }, false);
      if (nextAt !== undefined) this.#lookAt(shard, nextAt);
    } catch (error) {
      this.#deps.log.warn("schedule.unreadable", { shard, ...errorFields(error) });
      this.#lookAt(shard, addMs(now, REDIS_RETRY_MS));
    }
  }
}
