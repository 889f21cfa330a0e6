import { addMs, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import type { Schedule, Wake } from "../../src/outbox/schedule.ts";
import { GroupRunner } from "../store/group-runner.ts";
import type { DispatchStore } from "../store/store.ts";
import { SWEEP_MS, type SweptSubscription } from "../store/sweep.ts";

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

interface SweeperDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly schedule: Pick<Schedule, "plan">;
  readonly store: Pick<DispatchStore, "sweep">;
}

export interface SweeperListener {
  /** Those that we hold, each with the claim that it is held by. */
  shards(): ReadonlyMap<number, unknown>;
  /** There is something to do for it. */
  due(wake: Wake): void;
  /** There will be something to do in this shard. */
  later(shard: number, at: Date): void;
  /** All that is due in these shards was told. */
  swept(shards: readonly number[]): void;
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
