import type { QuarantinedLane } from "../../src/outbox/quarantined-lane.ts";
import { errorFields } from "../../src/lib/log.ts";
import { Waiter } from "../../src/lib/waiter.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import type { Outage } from "../http/failure.ts";
import { type Claim, LEASE_RENEW_MS, LEASE_SAFE_MS } from "./lease-queries.ts";
import type { PostgresClock } from "../../src/lib/postgres-clock.ts";
import { FailureDetector, type FailureDetectorDeps } from "./failure-detector.ts";

/** Changes of the lease and of the held shards that the dispatcher has to act on. */
export type HoldingsEvent =
  /** This process holds these shards now. The former holder of the `unclean` ones crashed, so attempts are in doubt. */
  | {
      readonly kind: "shards_claimed";
      readonly shards: readonly number[];
      readonly unclean: readonly number[];
    }
  /** The actors of the shard have to stop: the shard is released as soon as the last of them is gone. */
  | { readonly kind: "shard_closed"; readonly shard: number }
  /** Requests of a closed shard have run for `CLOSING_MS` and have to be aborted. */
  | { readonly kind: "shard_overdue"; readonly shard: number }
  /** A renewal of the lease has succeeded or failed. */
  | { readonly kind: "lease_checked" }
  /** The lease of this id is gone: another dispatcher expired it, and its shards have other owners. */
  | { readonly kind: "lease_lost"; readonly dispatcherId: string };

/** The work in the shards, which determines when and how a shard is released. */
export interface ShardUse {
  /** Whether attempts of a crashed holder are still in doubt. */
  hasInDoubt(shard: number): boolean;
  /**
   * Whether a request or a quarantined attempt record of the shard takes so long that a handover would have to wait for
   * it.
   */
  lingers(shard: number): boolean;
  /** The shards that have an actor. */
  busyShards(): ReadonlySet<number>;
  /** The outage of our own that keeps the dispatcher from sending. */
  outage(): Outage | undefined;
  /** The quarantined lanes. */
  quarantined(): readonly QuarantinedLane[];
}

interface HoldingsDeps extends FailureDetectorDeps {
  readonly clock: PostgresClock;
  readonly newId: () => string;
}

/**
 * The time in milliseconds for which a surplus shard is kept open while one of its requests hangs. By then the
 * request has timed out and its retry is a minute away, so the handover delays nothing.
 */
const PATIENCE_MS = 20_000;
/** The time in milliseconds that the requests of a closed shard may still take before they are aborted. */
const CLOSING_MS = 2_000;

const renewMs = () => LEASE_RENEW_MS;

/** The most milliseconds by which the two clocks of the process may disagree about the time since a renewal. */
const CLOCK_TOLERANCE_MS = 500;

/**
 * The lease of this process and the shards that it holds under it. Three loops run side by side: one renews the lease
 * and waits for nothing else, one claims and releases shards, one detects crashed dispatchers.
 */
export class Holdings {
  readonly #deps: HoldingsDeps;
  readonly #use: ShardUse;
  readonly #report: (event: HoldingsEvent) => void;
  readonly #shards = new Map<number, Claim>();
  /** Surplus shards that are still served, each with the time from which on it was surplus. */
  #leaving = new Map<number, number>();
  /** Shards that take no new work. They stay here until PostgreSQL has confirmed their release. */
  readonly #closed = new Set<number>();
  readonly #failureDetector: FailureDetector;
  readonly #renewal = new Waiter();
  readonly #tick = new Waiter();
  readonly #watch = new Waiter();
  #id: string;
  /**
   * Whether the last renewal showed that this process is the only dispatcher and holds every shard. It then reads
   * neither free shards nor heartbeats until a renewal shows something else.
   */
  #isSettled = false;
  /** The start of the last renewal by the two clocks of the process. */
  #renewed: { readonly monotonicMs: number; readonly ownMs: number } | undefined;
  #stopping = false;
  #abandoned = false;

  constructor(deps: HoldingsDeps, use: ShardUse, report: (event: HoldingsEvent) => void) {
    this.#deps = deps;
    this.#use = use;
    this.#report = report;
    this.#failureDetector = new FailureDetector(deps, () => this.#tick.nudge());
    this.#id = deps.newId();
  }

  /**
   * The id of the lease. It changes when the lease is lost, and results of work that began under another id are void.
   */
  get id(): string {
    return this.#id;
  }

  get shards(): ReadonlyMap<number, Claim> {
    return this.#shards;
  }

  /** Whether new work for this shard may begin. */
  serves(shard: number): boolean {
    return !this.#stopping && this.#shards.has(shard) && !this.#closed.has(shard);
  }

  /**
   * Whether this process may send: no other dispatcher can have taken its shards over yet. The monotonic clock may
   * stand still while the machine is suspended, and the wall clock may be set. If the two differ on the time since the
   * last renewal, sending pauses until the next one.
   */
  get safe(): boolean {
    if (this.#renewed === undefined) return false;
    const { clock } = this.#deps;
    const { monotonicMs, ownMs } = this.#renewed;
    const passedMs = clock.monotonicMs() - monotonicMs;
    const ownPassedMs = clock.ownMs() - ownMs;
    return passedMs < LEASE_SAFE_MS && Math.abs(ownPassedMs - passedMs) < CLOCK_TOLERANCE_MS;
  }

  /**
   * Renews the lease until `ended`, then releases it with all shards. If PostgreSQL is out of reach then, the lease
   * expires instead.
   */
  async run(ended: AbortSignal): Promise<void> {
    const { clock, leases, log } = this.#deps;
    const often = { clock, ended };
    const watchMs = () => this.#failureDetector.intervalMs;
    await Promise.all([
      this.#renewal.repeat(often, renewMs, () => this.#renew()),
      this.#tick.repeat(often, renewMs, async () => {
        if (!this.#isSettled) await this.#assign();
      }),
      this.#watch.repeat(often, watchMs, async () => {
        if (!this.#isSettled) await this.#failureDetector.check(this.#id);
      }),
    ]);
    const claims = this.#claimsOf(new Set(this.#shards.keys()));
    this.#shards.clear();
    if (this.#abandoned) return;
    try {
      await leases.leave(this.#id, claims);
    } catch (error) {
      log.warn("lease.release_failed", errorFields(error));
    }
  }

  /**
   * Leaves the lease to expire instead of releasing it: a POST was made whose attempt record is not committed, and the
   * next holder has to learn that attempts are in doubt.
   */
  abandon(): void {
    this.#abandoned = true;
  }

  /** Keeps the claimed shards, but claims no more shards and lets no new work begin. */
  stop(): void {
    this.#stopping = true;
  }

  /** Notes that an actor of this shard was dropped, so that a closed shard may be ready for its release. */
  actorGone(shard: number): void {
    if (this.#closed.has(shard)) this.#tick.nudge();
  }

  /**
   * Gives up the lease with this id, which another dispatcher has expired, and applies for a new lease. Returns false
   * if the process has another lease already.
   */
  lose(id: string): boolean {
    if (id !== this.#id) return false;
    this.#deps.log.warn("lease.lost", { dispatcher_id: id });
    this.#id = this.#deps.newId();
    this.#shards.clear();
    this.#leaving.clear();
    this.#closed.clear();
    this.#renewed = undefined;
    this.#isSettled = false;
    this.#renewal.nudge();
    return true;
  }

  async #renew(): Promise<void> {
    const { clock, leases, log } = this.#deps;
    const id = this.#id;
    try {
      // The insert of the lease changes nothing if an earlier try wrote the row and its response was lost.
      if (this.#renewed === undefined) await leases.join(id);
      const began = { monotonicMs: clock.monotonicMs(), ownMs: clock.ownMs() };
      const renewed = await leases.renew(id, this.#use);
      if (renewed === undefined) this.#report({ kind: "lease_lost", dispatcherId: id });
      if (id !== this.#id || renewed === undefined) return;
      clock.heard(renewed.now, began.monotonicMs);
      if (this.#renewed === undefined) this.#tick.nudge();
      this.#renewed = began;
      this.#settle(renewed.isAlone);
    } catch (error) {
      this.#settle(false);
      log.warn("lease.renew_failed", errorFields(error));
    }
    this.#report({ kind: "lease_checked" });
  }

  #settle(isAlone: boolean): void {
    const wasSettled = this.#isSettled;
    const holdsAll = this.#shards.size === SHARDS && this.#closed.size + this.#leaving.size === 0;
    this.#isSettled = isAlone && holdsAll;
    if (!wasSettled || this.#isSettled) return;
    this.#tick.nudge();
    this.#watch.nudge();
  }

  /** Claims shards up to the fair share, or releases those above it. */
  async #assign(): Promise<void> {
    const { leases, log } = this.#deps;
    const id = this.#id;
    if (this.#renewed === undefined) return;
    try {
      const { owned, surplus } = await leases.assign(id);
      if (id !== this.#id) return;
      if (!this.#stopping) this.#adopt(owned);
      await this.#release(surplus);
    } catch (error) {
      log.warn("shards.assign_failed", errorFields(error));
    }
  }

  /** Returns the claims for a release. A shard stays unclean for its next holder while it has attempts in doubt. */
  #claimsOf(shards: ReadonlySet<number>): Map<number, Claim> {
    const released = new Map<number, Claim>();
    for (const [shard, { epoch, unclean }] of this.#shards)
      if (shards.has(shard))
        released.set(shard, { epoch, unclean: unclean && this.#use.hasInDoubt(shard) });
    return released;
  }

  #adopt(owned: ReadonlyMap<number, Claim>): void {
    // A closed shard that is missing here was released, although the response to the release was lost. If it has a new
    // epoch, this process has claimed it again since.
    for (const shard of this.#closed)
      if (owned.get(shard)?.epoch !== this.#shards.get(shard)?.epoch) this.#forget(shard);
    const added = [...owned.keys()].filter((shard) => !this.#shards.has(shard));
    if (added.length === 0) return;
    const unclean = added.filter((shard) => owned.get(shard)?.unclean);
    for (const [shard, claim] of owned) this.#shards.getOrInsert(shard, claim);
    const counts = { shards: added.length, unclean: unclean.length, owned: this.#shards.size };
    this.#deps.log.info("shards.claimed", counts);
    this.#report({ kind: "shards_claimed", shards: added, unclean });
  }

  async #release(surplus: number): Promise<void> {
    this.#close(surplus - this.#closed.size);
    if (this.#closed.size === 0) return;
    const released = this.#claimsOf(this.#closed.difference(this.#use.busyShards()));
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

  /**
   * Makes `count` shards leave: first those that are leaving already, then the last of the other shards. Closes those
   * of them that need not wait for a request any longer.
   */
  #close(count: number): void {
    const { clock } = this.#deps;
    const id = this.#id;
    const nowMs = clock.monotonicMs();
    const others = [...this.#shards.keys()].filter(
      (shard) => !this.#leaving.has(shard) && !this.#closed.has(shard),
    );
    const inOrder = [...this.#leaving.keys(), ...others.toReversed()];
    const chosen = inOrder.slice(0, Math.max(0, count));
    this.#leaving = new Map(chosen.map((shard) => [shard, this.#leaving.get(shard) ?? nowMs]));
    for (const [shard, sinceMs] of this.#leaving) {
      if (nowMs - sinceMs < PATIENCE_MS && this.#use.lingers(shard)) continue;
      this.#leaving.delete(shard);
      this.#closed.add(shard);
      this.#report({ kind: "shard_closed", shard });
      void clock.sleep(CLOSING_MS).then(() => {
        if (id === this.#id && this.#closed.has(shard))
          this.#report({ kind: "shard_overdue", shard });
      });
    }
  }
}
