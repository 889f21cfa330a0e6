import type { DueTimes, Wake } from "../../src/outbox/schedule.ts";
import { Server, type Network } from "./network.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** The time limit of a command, as in connectRedis. */
const COMMAND_TIMEOUT_MS = 1_000;
const RECONNECT_MAX_MS = 2_000;
const AT_ONCE = 0;

type Listener = (wake: Wake) => void;

/** The simulated Redis: one sorted set per shard, and one channel. */
export class Redis {
  readonly server = new Server("redis", { typicalMs: 0.5, worstMs: 40, inOrder: true });
  readonly #world: World;
  readonly #sets = new Map<number, Map<string, number>>();
  readonly #subscribers = new Map<Process, Listener>();

  constructor(world: World) {
    this.#world = world;
  }

  flush(): void {
    this.#sets.clear();
  }

  /** Restarts Redis. Nothing is persistent, so the sets are lost, and the subscriptions until clients reconnect. */
  stop(forMs: number): void {
    this.server.up = false;
    this.server.life += 1;
    this.flush();
    const listeners = [...this.#subscribers];
    this.#subscribers.clear();
    const { loop, random } = this.#world;
    loop.after(forMs, () => {
      this.server.up = true;
      for (const [process, listener] of listeners)
        loop.after(random.between(0, RECONNECT_MAX_MS), () => this.#resubscribe(process, listener));
    });
  }

  /** Publishes wakes for the API after its commit. A wake may be lost, duplicated or late. */
  wake(wakes: readonly Wake[]): void {
    const { loop, random, settings, faulty } = this.#world;
    const faults = faulty ? settings.faults : undefined;
    if (faults !== undefined && random.chance(faults.lostWake)) {
      this.#world.fault("a wake is lost");
      return;
    }
    const times = faults !== undefined && random.chance(faults.repeatedWake) ? 2 : 1;
    for (let n = 0; n < times; n++)
      loop.after(random.latency(1, 30), () => {
        if (!this.server.up) return;
        for (const wake of wakes) {
          this.#add(wake, AT_ONCE);
          this.#publish(wake);
        }
      });
  }

  scheduleFor(network: Network, process: Process): DueTimes {
    const { server } = this;
    const ask = <T>(name: string, serve: () => T) =>
      network.call(process, { server, name, timeoutMs: COMMAND_TIMEOUT_MS }, serve);
    const quietly = async (name: string, serve: () => void) => {
      try {
        await ask(name, serve);
      } catch {
        // The real schedule logs the error and continues.
      }
    };
    return {
      plan: async (wakes) => {
        if (wakes.length === 0) return;
        await quietly("plan", () => {
          for (const wake of wakes) this.#add(wake, wake.at.getTime());
        });
      },
      clear: async (wakes) => {
        if (wakes.length === 0) return;
        await quietly("clear", () => {
          for (const { shard, subscriptionId } of wakes)
            this.#sets.get(shard)?.delete(subscriptionId);
        });
      },
      takeDue: (shard, now, limit) =>
        ask("take due", () => this.#takeDue(shard, now.getTime(), limit)),
      // The client retries even if its first try failed.
      onWake: (listener) => {
        this.#world.loop.after(1, () => this.#resubscribe(process, listener));
        return ask("subscribe", () => {});
      },
    };
  }

  #resubscribe(process: Process, listener: Listener): void {
    if (!process.alive) return;
    if (this.server.up) this.#subscribers.set(process, listener);
    else this.#world.loop.after(RECONNECT_MAX_MS, () => this.#resubscribe(process, listener));
  }

  /** Keeps the earlier of two scores, like ZADD LT. */
  #add({ shard, subscriptionId }: Wake, atMs: number): void {
    let set = this.#sets.get(shard);
    if (set === undefined) this.#sets.set(shard, (set = new Map()));
    set.set(subscriptionId, Math.min(atMs, set.get(subscriptionId) ?? atMs));
  }

  #publish(wake: Wake): void {
    const { loop, random, settings, faulty } = this.#world;
    for (const [process, listener] of this.#subscribers) {
      const late = faulty && random.chance(settings.faults.lateWake);
      const ms = late ? random.between(50, 5_000) : random.latency(1, 20);
      if (late) this.#world.fault("a wake is heard late", ms);
      loop.after(ms, () => process.enter(() => listener(wake)));
    }
  }

  #takeDue(shard: number, nowMs: number, limit: number) {
    const set = this.#sets.get(shard);
    if (set === undefined) return { due: [], nextAt: undefined };
    const sorted = [...set].toSorted(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
    const due = sorted.filter(([, score]) => score <= nowMs).slice(0, limit);
    for (const [id] of due) set.delete(id);
    const next = sorted[due.length];
    return {
      due: due.map(([id]) => id),
      nextAt: next === undefined ? undefined : new Date(next[1]),
    };
  }
}
