import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import { LEASE_RENEW_MS, LEASE_SAFE_MS, LEASE_TTL_MS, type Leases } from "./leases.ts";

/** What the rest of the process hears from the holder of the shards, and is asked by it. */
export interface HoldingsListener {
  /** These shards are ours from now on. */
  claimed(shards: readonly number[]): void;
  /** Whether something of this shard has been under way for so long that a handover would have to wait for it. */
  lingers(shard: number): boolean;
  /** The actors of this shard have to end: it is given up when `busyShards` no longer names it. */
  closed(shard: number): void;
  /** What is still under way of this closed shard has to be broken off. */
  overdue(shard: number): void;
  busyShards(): ReadonlySet<number>;
  /** The lease was renewed, or `safe` may have changed with the time. */
  checked(): void;
  /** The lease is lost: everything that was held under it belongs to others now. */
  lost(): void;
}

interface HoldingsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly leases: Leases;
  readonly newId: () => string;
}

/**
 * How long a shard that is to be given up is served on while a request of it hangs. By then the request has timed out
 * and its retry is a minute away, so nobody has to wait for it.
 */
const PATIENCE_MS = 20_000;
/** How long the requests of a closed shard may take: it begins no new ones, and breaks these off afterwards. */
const CLOSING_MS = 2_000;

/** The lease of this process and the shards that it holds under it. */
export class Holdings {
  readonly #deps: HoldingsDeps;
  readonly #listener: HoldingsListener;
  /** By shard, its epoch. */
  readonly #shards = new Map<number, number>();
  /** The shards that are to be given up and still served, with the time since when. */
  readonly #leaving = new Map<number, number>();
  /** The shards that are given up as soon as nothing of them is under way. */
  readonly #closed = new Set<number>();
  /** The shards whose release Postgres has not answered yet, with their epochs: in these they are not taken back. */
  readonly #releasing = new Map<number, number>();
  readonly #tick = new Waiter();
  #id: string;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #healthySinceMs: number | undefined;
  #stopping = false;
  #abandoned = false;

  constructor(deps: HoldingsDeps, listener: HoldingsListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#id = deps.newId();
  }

  /** Changes when the lease is lost: what began under another id is void. */
  get id(): string {
    return this.#id;
  }

  /** All shards that we hold, with their epochs. */
  get shards(): ReadonlyMap<number, number> {
    return this.#shards;
  }

  /** Whether new work for this shard may begin. */
  serves(shard: number): boolean {
    return !this.#stopping && this.#shards.has(shard) && !this.#closed.has(shard);
  }

  /** Whether something may be sent: only while nobody else can have taken over. */
  get safe(): boolean {
    return this.#deps.clock.monotonicMs() - this.#renewedMs < LEASE_SAFE_MS;
  }

  /** Renews the lease until `ended`, then gives everything back. Without Postgres the lease runs out by itself. */
  async run(ended: AbortSignal): Promise<void> {
    const { clock, leases, log } = this.#deps;
    ended.addEventListener("abort", () => this.#tick.nudge());
    await leases.join(this.#id);
    while (!ended.aborted) {
      await this.#renew();
      await this.#tick.wait(clock, LEASE_RENEW_MS);
    }
    if (this.#abandoned) return;
    try {
      await leases.leave(this.#id);
    } catch (error) {
      log.warn("lease.unreturned", errorFields(error));
    }
  }

  /**
   * Lets the lease run out instead of giving it back: something was sent whose record is not written, and whoever ends
   * the lease records that.
   */
  abandon(): void {
    this.#abandoned = true;
  }

  /** Holds what it has, and takes no more. */
  stop(): void {
    this.#stopping = true;
  }

  /** An actor of this shard has gone, so the shard may be free to be given up. */
  actorGone(shard: number): void {
    if (this.#closed.has(shard)) this.#tick.nudge();
  }

  /** Somebody declared the dispatcher of this id dead. If that is still ours, we come back under a new one. */
  lose(id: string): void {
    if (id !== this.#id) return;
    this.#deps.log.warn("lease.lost", { dispatcher_id: id });
    this.#id = this.#deps.newId();
    this.#shards.clear();
    this.#leaving.clear();
    this.#closed.clear();
    this.#releasing.clear();
    this.#renewedMs = Number.NEGATIVE_INFINITY;
    this.#healthySinceMs = undefined;
    this.#listener.lost();
    this.#tick.nudge();
  }

  async #renew(): Promise<void> {
    const { clock, leases, log } = this.#deps;
    const id = this.#id;
    const startedMs = clock.monotonicMs();
    try {
      const { alive, owned, surplus } = await leases.renew(id, this.#isWatchful(startedMs));
      if (id !== this.#id || !alive) {
        this.lose(id);
        return await leases.join(this.#id);
      }
      this.#healthySinceMs ??= startedMs;
      this.#renewedMs = startedMs;
      if (!this.#stopping) this.#adopt(owned);
      await this.#giveUp(surplus);
    } catch (error) {
      this.#healthySinceMs = undefined;
      log.warn("lease.unrenewed", errorFields(error));
    }
    this.#listener.checked();
    this.#checkWhenUnsafe(startedMs);
  }

  /** A process that could not see the others for a while must not conclude that they are dead. */
  #isWatchful(nowMs: number): boolean {
    return (
      !this.#stopping &&
      this.#healthySinceMs !== undefined &&
      nowMs - this.#healthySinceMs >= LEASE_TTL_MS
    );
  }

  #adopt(owned: ReadonlyMap<number, number>): void {
    const added: number[] = [];
    for (const [shard, epoch] of owned) {
      if (this.#shards.has(shard) || this.#releasing.get(shard) === epoch) continue;
      // Its epoch is a new one, so its release was carried out, whatever we heard of it.
      this.#releasing.delete(shard);
      this.#shards.set(shard, epoch);
      added.push(shard);
    }
    if (added.length === 0) return;
    this.#deps.log.info("shards.claimed", { shards: added.length, owned: this.#shards.size });
    this.#listener.claimed(added);
  }

  async #giveUp(surplus: number): Promise<void> {
    this.#choose(surplus - this.#closed.size - this.#releasing.size);
    this.#close();
    const busy = this.#listener.busyShards();
    for (const [shard, epoch] of this.#shards) {
      if (!this.#closed.has(shard) || busy.has(shard)) continue;
      this.#shards.delete(shard);
      this.#closed.delete(shard);
      this.#releasing.set(shard, epoch);
    }
    if (this.#releasing.size === 0) return;
    const released = new Map(this.#releasing);
    await this.#deps.leases.release(this.#id, released);
    for (const shard of released.keys()) this.#releasing.delete(shard);
    this.#deps.log.info("shards.released", { shards: released.size, owned: this.#shards.size });
  }

  /** Marks so many shards as leaving: first those that are already marked, then the last ones of the others. */
  #choose(count: number): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const others = [...this.#shards.keys()].filter(
      (shard) => !this.#leaving.has(shard) && !this.#closed.has(shard),
    );
    const chosen = [...this.#leaving.keys(), ...others.toReversed()].slice(0, Math.max(0, count));
    const since = chosen.map((shard) => [shard, this.#leaving.get(shard) ?? nowMs] as const);
    this.#leaving.clear();
    for (const [shard, sinceMs] of since) this.#leaving.set(shard, sinceMs);
  }

  #close(): void {
    const { clock } = this.#deps;
    const id = this.#id;
    for (const [shard, sinceMs] of this.#leaving) {
      const isPatient = clock.monotonicMs() - sinceMs < PATIENCE_MS;
      if (isPatient && this.#listener.lingers(shard)) continue;
      this.#leaving.delete(shard);
      this.#closed.add(shard);
      this.#listener.closed(shard);
      void clock.sleep(CLOSING_MS).then(() => {
        if (id === this.#id && this.#closed.has(shard)) this.#listener.overdue(shard);
      });
    }
  }

  /** Has the listener look again when sending becomes unsafe, unless a later renewal has succeeded by then. */
  #checkWhenUnsafe(startedMs: number): void {
    void this.#deps.clock.sleep(LEASE_SAFE_MS).then(() => {
      if (this.#renewedMs <= startedMs) this.#listener.checked();
    });
  }
}
