import { once } from "node:events";

import { errorFields } from "../src/lib/log.ts";
import type { PostgresClock } from "../src/lib/postgres-clock.ts";
import type { DueTimes, Wake } from "../src/outbox/schedule.ts";
import type { ActorEvent, Effect } from "./actor/event.ts";
import { InDoubtShards } from "./actor/in-doubt.ts";
import type { Actor } from "./actor/state.ts";
import { step } from "./actor/step.ts";
import { Actors } from "./actors.ts";
import { LIMITS, type Limits } from "./delivery/limits.ts";
import { type AttemptDeps, Sender, type SendEvent } from "./delivery/sender.ts";
import { SLOW_HOSTS, Slots } from "./delivery/slots.ts";
import { MAIL_SHARD, type Mailer } from "./mail/mailer.ts";
import { Quarantine } from "./store/quarantine.ts";
import { Holdings, type HoldingsEvent } from "./shards/holdings.ts";
import type { Leases } from "./shards/lease-queries.ts";
import { Scheduler, type ScheduleEvent } from "./shards/scheduler.ts";
import { Committer, type CommitEvent } from "./store/committer.ts";
import { Loader } from "./store/loader.ts";
import type { DispatchStore } from "./store/store.ts";

export interface DispatcherDeps extends AttemptDeps {
  readonly clock: PostgresClock;
  readonly schedule: DueTimes;
  readonly leases: Leases;
  readonly store: DispatchStore;
  /** Sends mails; undefined if no mail server is configured, so that mails wait. */
  readonly mailer?: Mailer | undefined;
  /** The limits of the work in memory; `LIMITS` if absent. */
  readonly limits?: Limits;
}

/** The signals inside a dispatcher, which are no webhook events. Each module reports its own kinds. */
type DispatcherEvent =
  | ScheduleEvent
  | HoldingsEvent
  | SendEvent
  | CommitEvent
  | { readonly kind: "shutdown_requested" };

/**
 * The times in milliseconds that a shutdown waits: `DRAIN_MS` for running requests, and then `RECORD_MS` for the commit
 * of the attempt records of the requests that it aborted.
 */
const DRAIN_MS = 5_000;
const RECORD_MS = 1_000;
const POLL_MS = 10;
/** The pause in milliseconds after a transaction that turns a due batch into entries has failed. */
const BATCH_RETRY_MS = 1_000;
/**
 * The number of parked subscriptions that leave a host group for each request that ends, so that the group drains as
 * fast as its host answers.
 */
const UNPARKED_AT_ONCE = 2;
/**
 * The number of actors that read entries again after each actor event while there is room for the bytes of more
 * entries. The number is small, because each actor may read 1 MiB, and greater than 1, so that ever more actors read
 * while there is room.
 */
const READERS_PER_EVENT = 2;

/**
 * One dispatcher process: an actor for each subscription of its shards that has something to do, and the modules that
 * do the I/O of the actors.
 *
 * Everything runs through one queue of dispatcher events. A module reports an event, `#handle` updates the state for
 * it, `step` returns the next effects of an actor, and `#perform` passes each effect to the module that carries it out.
 * An event that is reported while another one is being handled waits in the queue, so no actor changes in the middle of
 * a step.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #queue: DispatcherEvent[] = [];
  #isHandling = false;
  #actors: Actors;
  #inDoubt = new InDoubtShards();
  readonly #holdings: Holdings;
  readonly #scheduler: Scheduler;
  readonly #loader: Loader;
  readonly #committer: Committer;
  readonly #slots: Slots;
  readonly #sender: Sender;
  readonly #quarantine: Quarantine;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    const { limits = LIMITS } = deps;
    const report = (event: DispatcherEvent) => this.#put(event);
    this.#actors = new Actors(deps.clock, limits);
    this.#slots = new Slots(deps.clock, limits);
    const quarantine = new Quarantine(deps.clock);
    this.#quarantine = quarantine;
    this.#loader = new Loader({ ...deps, quarantine }, () =>
      this.#actors.areFull ? undefined : this.#actors.bytesToReadAhead,
    );
    this.#committer = new Committer({ ...deps, quarantine }, report);
    const newId = () => deps.newUlid(deps.clock.now().getTime());
    const use = {
      hasInDoubt: (shard: number) => this.#inDoubt.has(shard),
      lingers: (shard: number) =>
        this.#sender.lingers(shard) || this.#committer.hasQuarantined(shard),
      busyShards: () => new Set(this.#actors.all().map((actor) => actor.shard)),
      quarantined: () => this.#quarantine.list(),
      outage: () => this.#sender.outage,
    };
    this.#holdings = new Holdings({ ...deps, newId }, use, report);
    this.#scheduler = new Scheduler({ ...deps, holdings: this.#holdings }, report);
    const modules = {
      holdings: this.#holdings,
      loader: this.#loader,
      committer: this.#committer,
      slots: this.#slots,
      quarantine,
    };
    this.#sender = new Sender({ ...deps, ...modules }, report);
  }

  /** Delivers until the signal aborts, then finishes the work under way and releases the shards. */
  async run(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const working = Promise.all([
      this.#holdings.run(ended.signal),
      this.#scheduler.run(ended.signal),
      this.#deps.mailer?.run(ended.signal, () => this.#holdings.serves(MAIL_SHARD)),
    ]);
    await Promise.race([working, signal.aborted || once(signal, "abort")]);
    await this.#shutDown();
    ended.abort();
    await working;
  }

  /**
   * Handles a dispatcher event now, or after the one that is being handled. Dispatcher events are handled
   * synchronously, so that no delivery waits for a timer here.
   */
  #put(event: DispatcherEvent): void {
    this.#queue.push(event);
    if (this.#isHandling) return;
    this.#isHandling = true;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift())
        this.#handle(next);
    } finally {
      this.#isHandling = false;
    }
  }

  #putFor(actor: Actor, event: ActorEvent): void {
    this.#put({ kind: "actor_event", actor, event });
  }

  #handle(event: DispatcherEvent): void {
    switch (event.kind) {
      case "woken":
        return this.#wake(event.wake, event.isSwept);
      case "mailer_woken":
        return this.#holdings.serves(MAIL_SHARD) ? this.#deps.mailer?.wake() : undefined;
      case "shards_swept":
        return this.#inDoubt.swept(event.shards);
      case "shards_claimed":
        this.#inDoubt.begin(event.shards, event.unclean, this.#deps.clock.now());
        if (event.shards.includes(MAIL_SHARD)) this.#deps.mailer?.wake();
        return this.#scheduler.claimed(event.shards);
      case "shard_closed":
        this.#stopActors((actor) => actor.shard === event.shard);
        return this.#slots.cancelWaiting(event.shard);
      case "shard_overdue":
        return this.#sender.abort(event.shard);
      case "lease_checked":
        this.#sender.endOutage();
        return this.#sender.regulate();
      case "group_committed":
        return this.#sender.regulate();
      case "lease_lost":
        return this.#holdings.lose(event.dispatcherId) ? this.#startOver() : undefined;
      case "actor_event":
        return this.#advance(event.actor, event.event);
      case "host_saturated":
        return this.#sendAway(event.actor, event.group);
      case "slot_released":
        this.#unpark(event.host);
        return this.#unpark(SLOW_HOSTS);
      case "subscriptions_disabled":
        for (const id of event.subscriptionIds)
          this.#deps.log.warn("subscription.disabled", { subscription_id: id });
        return;
      case "shutdown_requested":
        this.#holdings.stop();
        return this.#stopActors(() => true);
    }
  }

  /**
   * Wakes the actor of a subscription, or makes an actor for it. If there is no room, the subscription waits for its
   * turn instead.
   */
  #wake(wake: Wake, isSwept: boolean): void {
    const isServed = this.#holdings.serves(wake.shard);
    // Notes that the subscription may have attempts in doubt, even if it has to wait for its turn or its shard is not
    // served any more, because the next holder of the shard has to learn of them.
    this.#inDoubt.note(wake);
    if (!isServed) return;
    const group = this.#actors.parkedIn(wake);
    if (isSwept && group !== undefined && !this.#slots.hasDrained(group)) return;
    const actor = this.#actors.wake(wake, isSwept, () => this.#inDoubt.of(wake));
    if (actor !== undefined) this.#advance(actor, { kind: "woken" });
  }

  /** Wakes waiting subscriptions in turn while there is room for actors. */
  #admit(): void {
    for (let wake = this.#actors.next(); wake !== undefined; wake = this.#actors.next())
      this.#wake(wake, false);
  }

  #unpark(group: string): void {
    if (!this.#actors.isParking(group) || !this.#slots.hasDrained(group)) return;
    for (const wake of this.#actors.unpark(group, UNPARKED_AT_ONCE)) this.#wake(wake, false);
  }

  /** Applies an actor event to its actor, unless the actor was discarded when the lease was lost. */
  #advance(actor: Actor, event: ActorEvent): void {
    if (!this.#actors.has(actor)) return;
    if (this.#actors.endsTurn(actor, event)) this.#sendAway(actor);
    actor.capacity = this.#actors.share;
    this.#actors.allot(actor);
    const effects = step(actor, event, this.#deps.clock.now());
    this.#actors.weigh(actor);
    for (const effect of effects) this.#perform(actor, effect);
    for (const waiting of this.#actors.takeForRoom(READERS_PER_EVENT))
      this.#putFor(waiting, { kind: "has_room" });
    if (event.kind !== "loaded") return;
    this.#actors.loaded(actor);
    this.#admit();
  }

  #perform(actor: Actor, effect: Effect): void {
    switch (effect.kind) {
      case "load":
        return this.#loader.load(
          effect.request,
          (loaded) => this.#putFor(actor, { kind: "loaded", loaded }),
          { isWanted: () => !actor.stopping },
        );
      case "send":
        return this.#sender.send(actor, effect);
      case "batch":
        return void this.#dispatchBatch(actor).then(() => this.#putFor(actor, { kind: "batched" }));
      case "recheck":
        return void this.#deps.clock
          .sleep(effect.afterMs)
          .then(() => this.#putFor(actor, { kind: "rechecked" }));
      case "sleep":
        return void this.#scheduler.plan(
          { subscriptionId: actor.id, shard: actor.shard },
          effect.until,
        );
      case "drop":
        this.#actors.drop(actor);
        this.#inDoubt.dropped(actor);
        this.#holdings.actorGone(actor.shard);
        return this.#admit();
    }
  }

  async #dispatchBatch(actor: Actor): Promise<void> {
    const { clock, store, log } = this.#deps;
    const { id } = this.#holdings;
    const now = clock.now();
    try {
      const { fenced } = await store.dispatchBatch({
        id: this.#deps.newUlid(now.getTime()),
        dispatcherId: id,
        subscriptionId: actor.id,
        now,
      });
      if (fenced) this.#put({ kind: "lease_lost", dispatcherId: id });
    } catch (error) {
      log.warn("batch.failed", { subscription_id: actor.id, ...errorFields(error) });
      await clock.sleep(BATCH_RETRY_MS);
    }
  }

  /**
   * Stops an actor so that another subscription gets its place. The actor's subscription waits for its turn again, or
   * is parked in a host group.
   */
  #sendAway(actor: Actor, group?: string): void {
    if (!this.#actors.has(actor)) return;
    this.#actors.returnLater(actor, group);
    this.#advance(actor, { kind: "stopped" });
  }

  #stopActors(which: (actor: Actor) => boolean): void {
    for (const actor of this.#actors.all().filter(which)) this.#advance(actor, { kind: "stopped" });
    this.#loader.release();
  }

  /**
   * Discards all actors, requests, loads and attempt records in memory after the lease was lost, because other
   * dispatchers deliver the entries now.
   */
  #startOver(): void {
    const { clock, limits = LIMITS } = this.#deps;
    this.#actors = new Actors(clock, limits);
    this.#inDoubt = new InDoubtShards();
    this.#sender.startOver();
    this.#loader.clear();
    this.#committer.clear();
    this.#quarantine.clear();
  }

  /**
   * Waits for the requests under way, then aborts those that run for longer than `DRAIN_MS` and records their attempts
   * as interrupted.
   */
  async #shutDown(): Promise<void> {
    const { mailer } = this.#deps;
    this.#put({ kind: "shutdown_requested" });
    mailer?.stop();
    await this.#untilIdle(DRAIN_MS);
    this.#sender.abort();
    mailer?.abort();
    await this.#untilIdle(RECORD_MS);
    if (this.#actors.size > 0) this.#holdings.abandon();
  }

  async #untilIdle(ms: number): Promise<void> {
    const { clock, mailer } = this.#deps;
    const endMs = clock.monotonicMs() + ms;
    const isBusy = () => this.#actors.size > 0 || mailer?.busy;
    while (isBusy() && clock.monotonicMs() < endMs) await clock.sleep(POLL_MS);
  }

  /** The amount of work, for the metrics. */
  get workload() {
    return {
      shards: this.#holdings.shards.size,
      actors: this.#actors.size,
      waiting: this.#actors.waiting,
      bytes: this.#actors.bytes,
      quarantinedLanes: this.#quarantine.list(),
      hasOutage: this.#sender.outage !== undefined,
      lagMs: this.#scheduler.lagMs,
    };
  }
}
