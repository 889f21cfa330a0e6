import { addMs, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import type { Schedule, Wake } from "../../src/outbox/schedule.ts";
import type { DispatchStore } from "../store/store.ts";
import { SWEEP_MS, type SweptSubscription } from "../store/sweep.ts";

/** How much of the shards a query looks at. */
interface Extent {
  readonly shards: number;
  /** Of each shard, those that come first; undefined for all. */
  readonly subscriptions?: number;
}

/** What one query finds is in memory as a whole. */
const WHOLE: Extent = { shards: 4 };
/** Nobody has looked after what was just claimed for seconds: something of each shard is delivered again at once. */
const CLAIMED_FIRST: Extent = { shards: 64, subscriptions: 16 };

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

/** Finds in Postgres what a lost wake or an empty Redis would have announced, and rebuilds the sorted sets. */
export class Sweeper {
  readonly #deps: SweeperDeps;
  readonly #listener: SweeperListener;
  readonly #waiter = new Waiter();
  readonly #claim = new Waiter();
  /** Those that were not swept since they were claimed. */
  readonly #claimed = new Set<number>();
  /** How long the oldest due entry had waited when all shards were swept last. */
  lagMs = 0;

  constructor(deps: SweeperDeps, listener: SweeperListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  /** Has shards swept at once that were just claimed, because they may hold anything. */
  claimed(shards: readonly number[]): void {
    for (const shard of shards) this.#claimed.add(shard);
    this.#claim.nudge();
  }

  /** Sweeps all shards again and again; what is claimed meanwhile does not wait for that. */
  async run(ended: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const loop = async (waiter: Waiter, work: () => Promise<void>) => {
      ended.addEventListener("abort", () => waiter.nudge());
      while (!ended.aborted) {
        await waiter.wait(clock, SWEEP_MS);
        try {
          await work();
        } catch (error) {
          log.warn("sweep.failed", errorFields(error));
        }
      }
    };
    await Promise.all([
      loop(this.#waiter, async () => {
        const all = new Set(this.#listener.shards().keys());
        this.lagMs = await this.#sweep(all, WHOLE, ended);
      }),
      loop(this.#claim, async () => {
        await this.#sweep(new Set(this.#claimed), CLAIMED_FIRST, ended);
        await this.#sweep(this.#claimed, WHOLE, ended);
      }),
    ]);
  }

  /** Sweeps these shards, and leaves none of them; answers how long the oldest due entry has waited. */
  async #sweep(left: Set<number>, extent: Extent, ended: AbortSignal): Promise<number> {
    const plans: Promise<void>[] = [];
    let lagMs = 0;
    while (left.size > 0 && !ended.aborted) {
      const some = [...left].slice(0, extent.shards);
      for (const shard of some) left.delete(shard);
      const held = this.#listener.shards();
      const claims = new Map(some.filter((id) => held.has(id)).map((id) => [id, held.get(id)]));
      if (claims.size === 0) continue;
      const found = await this.#deps.store.sweep([...claims.keys()], extent.subscriptions);
      for (const { waitedMs } of found) lagMs = Math.max(lagMs, waitedMs ?? 0);
      plans.push(this.#tell(found));
      if (extent.subscriptions === undefined) this.#swept(claims);
    }
    await Promise.all(plans);
    return lagMs;
  }

  /** Tells what was found; resolves when Redis has heard of what is due later. */
  #tell(found: readonly SweptSubscription[]): Promise<void> {
    const now = this.#deps.clock.now();
    const later: (Wake & { at: Date })[] = [];
    for (const { subscriptionId, shard, dueInMs } of found) {
      const wake = { subscriptionId, shard };
      if (dueInMs <= 0) this.#listener.due(wake);
      else later.push({ ...wake, at: addMs(now, Math.ceil(dueInMs)) });
    }
    for (const { shard, at } of later) this.#listener.later(shard, at);
    return this.#deps.schedule.plan(later);
  }

  /** All was told of these shards; one that was lost and claimed anew meanwhile was not swept under that claim. */
  #swept(claims: ReadonlyMap<number, unknown>): void {
    const present = this.#listener.shards();
    this.#listener.swept([...claims.keys()].filter((id) => present.get(id) === claims.get(id)));
  }
}
