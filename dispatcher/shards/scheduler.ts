import { addMs } from "../../src/lib/clock.ts";
import { errorFields } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import type { Schedule, Wake } from "../../src/outbox/schedule.ts";
import type { DispatchStore } from "../store/store.ts";
import { GroupRunner, type RunnerDeps } from "../store/group-runner.ts";
import { SWEEP_MS, type SweptSubscription } from "../store/sweep.ts";

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

type AlarmDeps = SweeperDeps & { readonly schedule: Schedule };

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
      ...listener,
      due: (wake) => listener.ring(wake, true),
      later: (shard, at) => this.#lookAt(shard, at),
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

/** What one query finds is in memory as a whole. */
const SHARDS_PER_QUERY = 16;
/** Of each shard that was just claimed, the subscriptions that one quick query finds before all others. */
const CLAIMED_FIRST = 16;
/** How long a query is left alone that failed because Postgres is out of reach. */
const RETRY_MS = 1_000;

/** The shards of a query, each with the claim that it is held by, and what was found in them. */
interface Found {
  readonly claims: ReadonlyMap<number, unknown>;
  readonly subscriptions: readonly SweptSubscription[];
}

const restMs = () => SWEEP_MS;

interface SweeperDeps extends RunnerDeps {
  readonly schedule: Pick<Schedule, "plan">;
  readonly store: Pick<DispatchStore, "sweep">;
}

export interface SweeperListener extends Pick<AlarmListener, "shards" | "swept"> {
  /** There is something to do for it. */
  due(wake: Wake): void;
  /** There will be something to do in this shard. */
  later(shard: number, at: Date): void;
}

/**
 * Finds in Postgres what a lost wake or an empty Redis would have announced, and rebuilds the sorted sets. A shard that
 * cannot be swept is quarantined (`GroupRunner`), and the others are swept without it.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;
  readonly #listener: SweeperListener;
  readonly #waiter = new Waiter();
  readonly #claim = new Waiter();
  /** Those that were not swept since they were claimed. */
  readonly #claimed = new Set<number>();
  readonly #runner: GroupRunner<number, Found>;
  /** Writes to Redis that are under way. */
  #planning: Promise<void>[] = [];
  /** How long the oldest due entry had waited that was found since the last sweep of all shards ended. */
  #longestMs = 0;
  /** The same when all shards were swept last. */
  lagMs = 0;

  constructor(deps: SweeperDeps, listener: SweeperListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#runner = new GroupRunner(deps, {
      keyOf: (shard) => shard,
      run: (shards) => this.#find(shards),
      done: (_, found) => {
        this.#tell(found.subscriptions);
        this.#swept(found.claims);
      },
      describe: (shard) => ({ shard }),
      events: { failed: "sweep.failed", stuck: "sweep.stuck" },
      retryMs: RETRY_MS,
    });
  }

  /** Has shards swept at once that were just claimed, because they may hold anything. */
  claimed(shards: readonly number[]): void {
    for (const shard of shards) this.#claimed.add(shard);
    this.#claim.nudge();
  }

  /** Sweeps all shards again and again; what is claimed meanwhile does not wait for that. */
  async run(ended: AbortSignal): Promise<void> {
    ended.addEventListener("abort", () => this.#runner.clear());
    const often = { clock: this.#deps.clock, ended };
    const sweepAll = async () => {
      await this.#sweep(new Set(this.#listener.shards().keys()), ended);
      this.lagMs = this.#longestMs;
      this.#longestMs = 0;
    };
    await Promise.all([
      // What is claimed first is swept by its claim.
      often.clock.sleep(SWEEP_MS, ended).then(() => this.#waiter.repeat(often, restMs, sweepAll)),
      this.#claim.repeat(often, restMs, async () => {
        await this.#sweepFirst([...this.#claimed]);
        await this.#sweep(this.#claimed, ended);
      }),
    ]);
  }

  /** Sweeps these shards, and leaves none of them. */
  async #sweep(left: Set<number>, ended: AbortSignal): Promise<void> {
    while (left.size > 0 && !ended.aborted) {
      const some = [...left].slice(0, SHARDS_PER_QUERY);
      for (const shard of some) left.delete(shard);
      await this.#runner.run(some);
    }
    await Promise.all(this.#planning.splice(0));
  }

  /**
   * Finds the first subscriptions of each of these shards, where nobody has looked for seconds: something of each shard
   * is delivered again at once. If it fails, the sweep behind it finds them.
   */
  async #sweepFirst(shards: readonly number[]): Promise<void> {
    try {
      this.#tell((await this.#find(shards, CLAIMED_FIRST)).subscriptions);
    } catch (error) {
      this.#deps.log.warn("sweep.failed", errorFields(error));
    }
  }

  /** Finds what is due in those of the shards that are held. */
  async #find(shards: readonly number[], limit?: number): Promise<Found> {
    const held = this.#listener.shards();
    const claims = new Map(shards.filter((id) => held.has(id)).map((id) => [id, held.get(id)]));
    if (claims.size === 0) return { claims, subscriptions: [] };
    return { claims, subscriptions: await this.#deps.store.sweep([...claims.keys()], limit) };
  }

  /** Tells what was found. Redis hears of what is due later. */
  #tell(found: readonly SweptSubscription[]): void {
    const now = this.#deps.clock.now();
    const later: (Wake & { at: Date })[] = [];
    for (const { subscriptionId, shard, dueInMs, waitedMs } of found) {
      this.#longestMs = Math.max(this.#longestMs, waitedMs ?? 0);
      const wake = { subscriptionId, shard };
      if (dueInMs <= 0) this.#listener.due(wake);
      else later.push({ ...wake, at: addMs(now, Math.ceil(dueInMs)) });
    }
    for (const { shard, at } of later) this.#listener.later(shard, at);
    this.#planning.push(this.#deps.schedule.plan(later));
  }

  /** All was told of these shards; one that was lost and claimed anew meanwhile was not swept under that claim. */
  #swept(claims: ReadonlyMap<number, unknown>): void {
    const present = this.#listener.shards();
    this.#listener.swept([...claims.keys()].filter((id) => present.get(id) === claims.get(id)));
  }
}
