import { errorFields, type Log } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import { type Claim, LEASE_RENEW_MS, LEASE_SAFE_MS, type Leases } from "./lease-queries.ts";
import type { PostgresClock } from "../../src/lib/postgres-clock.ts";
import { Undertaker } from "./failure-detector.ts";

/** What the rest of the process hears from the holder of the shards, and is asked by it. */
export interface HoldingsListener {
  /** These shards are ours from now on; of the orphaned ones a dead process may have sent the first entries. */
  claimed(shards: readonly number[], orphaned: readonly number[]): void;
  /** Whether first entries of this orphaned shard may still have to be repeated. */
  inherits(shard: number): boolean;
  /** Whether something of this shard has been under way for so long that a handover would have to wait for it. */
  lingers(shard: number): boolean;
  /** The actors of this shard have to end: it is given up when `busyShards` no longer names it. */
  closed(shard: number): void;
  /** What is still under way of this closed shard has to be broken off. */
  overdue(shard: number): void;
  busyShards(): ReadonlySet<number>;
  /** The lease was renewed, or could not be. */
  checked(): void;
  /** The lease is lost: everything that was held under it belongs to others now. */
  lost(): void;
}

interface HoldingsDeps {
  readonly clock: PostgresClock;
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

const renewMs = () => LEASE_RENEW_MS;

/** The clocks of the process may tell of times since a renewal that differ by less than this. */
const CLOCKS_APART_MS = 500;

/** When a renewal began, by the two clocks of the process. */
interface Renewal {
  readonly monotonicMs: number;
  readonly ownMs: number;
}

/**
 * The lease of this process and the shards that it holds under it. Three loops: one renews the lease and waits for
 * nothing else, one claims and gives up shards, one looks for the dead.
 */
export class Holdings {
  readonly #deps: HoldingsDeps;
  readonly #listener: HoldingsListener;
  readonly #shards = new Map<number, Claim>();
  /** The shards that are to be given up and still served, with the time since when. */
  readonly #leaving = new Map<number, number>();
  /** The shards that are given up as soon as nothing of them is under way, until Postgres has said that they are. */
  readonly #closed = new Set<number>();
  readonly #undertaker: Undertaker;
  readonly #renewal = new Waiter();
  readonly #tick = new Waiter();
  readonly #watch = new Waiter();
  #id: string;
  #renewed: Renewal | undefined;
  #stopping = false;
  #abandoned = false;

  constructor(deps: HoldingsDeps, listener: HoldingsListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#undertaker = new Undertaker(deps, () => this.#tick.nudge());
    this.#id = deps.newId();
  }

  /** Changes when the lease is lost: what began under another id is void. */
  get id(): string {
    return this.#id;
  }

  /** All shards that we hold. */
  get shards(): ReadonlyMap<number, Claim> {
    return this.#shards;
  }

  /** Whether new work for this shard may begin. */
  serves(shard: number): boolean {
    return !this.#stopping && this.#shards.has(shard) && !this.#closed.has(shard);
  }

  /**
   * Whether something may be sent: only while nobody else can have taken over. Over a suspension of the machine the
   * monotonic clock may stand still, and the wall clock may be set: unless both tell of the same time since the renewal,
   * sending pauses until the next one.
   */
  get safe(): boolean {
    if (this.#renewed === undefined) return false;
    const { clock } = this.#deps;
    const { monotonicMs, ownMs } = this.#renewed;
    const passedMs = clock.monotonicMs() - monotonicMs;
    const ownPassedMs = clock.ownMs() - ownMs;
    return passedMs < LEASE_SAFE_MS && Math.abs(ownPassedMs - passedMs) < CLOCKS_APART_MS;
  }

  /** Renews the lease until `ended`, then gives everything back. Without Postgres the lease runs out by itself. */
  async run(ended: AbortSignal): Promise<void> {
    const often = { clock: this.#deps.clock, ended };
    const watchMs = () => this.#undertaker.restMs;
    await Promise.all([
      this.#renewal.repeat(often, renewMs, () => this.#renew()),
      this.#tick.repeat(often, renewMs, () => this.#assign()),
      this.#watch.repeat(often, watchMs, () => this.#undertaker.look(this.#id)),
    ]);
    await this.#leave();
  }

  /**
   * Lets the lease run out instead of giving it back: something was sent whose record is not written, and whoever takes
   * over has to know that it may repeat something.
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
    this.#renewed = undefined;
    this.#listener.lost();
    this.#renewal.nudge();
  }

  async #renew(): Promise<void> {
    const { clock, leases, log } = this.#deps;
    const id = this.#id;
    try {
      // The row stays where an earlier try wrote it and its answer was lost.
      if (this.#renewed === undefined) await leases.join(id);
      const began = { monotonicMs: clock.monotonicMs(), ownMs: clock.ownMs() };
      const now = await leases.renew(id);
      if (now === undefined) this.lose(id);
      if (id !== this.#id || now === undefined) return;
      clock.heard(now, began.monotonicMs);
      if (this.#renewed === undefined) this.#tick.nudge();
      this.#renewed = began;
    } catch (error) {
      log.warn("lease.unrenewed", errorFields(error));
    }
    this.#listener.checked();
  }

  /** Claims what is missing to the fair share, and gives up what is above it. */
  async #assign(): Promise<void> {
    const { leases, log } = this.#deps;
    const id = this.#id;
    if (this.#renewed === undefined) return;
    try {
      const { owned, surplus } = await leases.assign(id);
      if (id !== this.#id) return;
      if (!this.#stopping) this.#adopt(owned);
      await this.#giveUp(surplus);
    } catch (error) {
      log.warn("shards.unassigned", errorFields(error));
    }
  }

  async #leave(): Promise<void> {
    if (this.#abandoned) return;
    const { leases, log } = this.#deps;
    try {
      await leases.leave(this.#id, this.#asLeft(this.#shards.keys()));
    } catch (error) {
      log.warn("lease.unreturned", errorFields(error));
    }
  }

  /** Shards are orphans to their next holder, too, until everything that the dead may have sent was repeated. */
  #asLeft(shards: Iterable<number>): Map<number, Claim> {
    const left = new Map<number, Claim>();
    for (const shard of shards) {
      const claim = this.#shards.get(shard);
      if (claim === undefined) continue;
      left.set(shard, { ...claim, orphaned: claim.orphaned && this.#listener.inherits(shard) });
    }
    return left;
  }

  #adopt(owned: ReadonlyMap<number, Claim>): void {
    // Released, though nothing was heard of that; under a new epoch it was claimed again since.
    for (const shard of this.#closed)
      if (owned.get(shard)?.epoch !== this.#shards.get(shard)?.epoch) this.#forget(shard);
    const added: number[] = [];
    const orphaned: number[] = [];
    for (const [shard, claim] of owned) {
      if (this.#shards.has(shard)) continue;
      this.#shards.set(shard, claim);
      added.push(shard);
      if (claim.orphaned) orphaned.push(shard);
    }
    if (added.length === 0) return;
    const counts = { shards: added.length, orphaned: orphaned.length, owned: this.#shards.size };
    this.#deps.log.info("shards.claimed", counts);
    this.#listener.claimed(added, orphaned);
  }

  async #giveUp(surplus: number): Promise<void> {
    this.#choose(surplus - this.#closed.size);
    this.#close();
    if (this.#closed.size === 0) return;
    const released = this.#asLeft(this.#closed.difference(this.#listener.busyShards()));
    if (released.size === 0) return;
    const id = this.#id;
    await this.#deps.leases.release(id, released);
    if (id !== this.#id) return;
    for (const shard of released.keys()) this.#forget(shard);
    this.#deps.log.info("shards.released", { shards: released.size, owned: this.#shards.size });
  }

  #forget(shard: number): void {
    this.#shards.delete(shard);
    this.#closed.delete(shard);
  }

  /** Marks so many shards as leaving: first those that are already marked, then the last ones of the others. */
  #choose(count: number): void {
    if (count <= 0) return this.#leaving.clear();
    const nowMs = this.#deps.clock.monotonicMs();
    const others = [...this.#shards.keys()].filter(
      (shard) => !this.#leaving.has(shard) && !this.#closed.has(shard),
    );
    const chosen = [...this.#leaving.keys(), ...others.toReversed()].slice(0, count);
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
}
