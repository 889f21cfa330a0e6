import { once } from "node:events";

import { errorFields, type Log } from "../src/lib/log.ts";
import { MAIL_WAKE } from "../src/outbox/mail.ts";
import type { Schedule, Wake } from "../src/outbox/schedule.ts";
import { step } from "./actor/step.ts";
import type { ActorEvent, Effect } from "./actor/event.ts";
import type { Actor } from "./actor/state.ts";
import { Actors } from "./actors.ts";
import { Alarm } from "./shards/scheduler.ts";
import { Committer } from "./store/committer.ts";
import type { Deliver } from "./delivery/deliver.ts";
import { Inheritances } from "./actor/in-doubt.ts";
import { Holdings } from "./shards/holdings.ts";
import type { Leases } from "./shards/lease-queries.ts";
import type { PostgresClock } from "../src/lib/postgres-clock.ts";
import { LIMITS, type Limits } from "./delivery/limits.ts";
import { Loader } from "./store/loader.ts";
import type { Mailer } from "./mail/mailer.ts";
import { Sender } from "./delivery/sender.ts";
import type { DispatchStore } from "./store/store.ts";

export interface DispatcherDeps {
  readonly clock: PostgresClock;
  readonly log: Log;
  readonly schedule: Schedule;
  readonly leases: Leases;
  readonly store: DispatchStore;
  readonly deliver: Deliver;
  readonly retryDelaysMs: readonly number[];
  /** Undefined where no mail server is set: mails wait. */
  readonly mailer?: Mailer | undefined;
  /** A new ULID for an instant in ms since the epoch, above all that it made before. */
  readonly newUlid: (atMs: number) => string;
  /** Others than `LIMITS`. */
  readonly limits?: Limits;
}

/** How long a stopping process waits for the requests under way, and then for the records of those that it broke off. */
const DRAIN_MS = 5_000;
const RECORD_MS = 1_000;
const POLL_MS = 10;
/** How long a batch dispatch that failed is left alone. */
const BATCH_RETRY_MS = 1_000;

/**
 * One dispatcher process: an actor for each subscription of its shards that has something to do, and the I/O that
 * the actors ask for, all of it behind `deps`.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  #actors: Actors;
  #inheritances = new Inheritances();
  readonly #holdings: Holdings;
  readonly #alarm: Alarm;
  readonly #loader: Loader;
  readonly #committer: Committer;
  readonly #sender: Sender;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    const { limits = LIMITS } = deps;
    this.#actors = new Actors(deps.clock, limits);
    const newId = () => deps.newUlid(deps.clock.now().getTime());
    this.#holdings = new Holdings(
      { ...deps, newId },
      {
        claimed: (shards, orphaned) => this.#takeOver(shards, orphaned),
        inherits: (shard) => this.#inheritances.isOpen(shard),
        lingers: (shard) => this.#sender.lingers(shard) || this.#committer.holds(shard),
        closed: (shard) => this.#close(shard),
        overdue: (shard) => this.#sender.breakOff(shard),
        busyShards: () => new Set(this.#actors.all().map((actor) => actor.shard)),
        checked: () => this.#sender.regulate(),
        lost: () => this.#startOver(),
      },
    );
    this.#alarm = new Alarm(deps, {
      shards: () => this.#holdings.shards,
      ring: (wake, isSwept) => this.#wake(wake, isSwept),
      swept: (shards) => this.#inheritances.swept(shards),
    });
    this.#loader = new Loader(deps);
    this.#committer = new Committer(deps, {
      fenced: (id) => this.#holdings.lose(id),
      disabled: (ids) => this.#reportDisabled(ids),
    });
    this.#sender = new Sender(
      {
        ...deps,
        limits,
        holdings: this.#holdings,
        loader: this.#loader,
        committer: this.#committer,
      },
      {
        crowded: (actor, crowd) => this.#leave(actor, crowd),
        thinned: (crowd) => this.#recall(crowd),
        tell: (actor, event) => this.#tell(actor, event),
      },
    );
  }

  /** How much it has to do, for the metrics. */
  get workload() {
    return {
      shards: this.#holdings.shards.size,
      actors: this.#actors.size,
      waiting: this.#actors.waiting,
      backlog: this.#committer.backlog,
      apart: this.#committer.quarantined,
      lagMs: this.#alarm.lagMs,
      quarantined: this.#sender.quarantined,
    };
  }

  /** Delivers until the signal aborts, then finishes what is under way and gives the shards back. */
  async run(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const working = Promise.all([this.#holdings.run(ended.signal), this.#alarm.run(ended.signal)]);
    await Promise.race([working, signal.aborted || once(signal, "abort")]);
    await this.#drain();
    ended.abort();
    await working;
  }

  #wake(wake: Wake, isSwept: boolean): void {
    const isServed = this.#holdings.serves(wake.shard);
    if (wake.subscriptionId === MAIL_WAKE.subscriptionId)
      return isServed ? this.#deps.mailer?.wake() : undefined;
    // What it may repeat is noted even of one that has to wait for its turn, or that the next holder of its shard sends.
    this.#inheritances.note(wake);
    if (!isServed) return;
    const crowd = this.#actors.crowdOf(wake);
    if (isSwept && crowd !== undefined && !this.#sender.hasThinned(crowd)) return;
    const actor = this.#actors.wake(wake, isSwept, () => this.#inheritances.of(wake));
    if (actor !== undefined) this.#tell(actor, { kind: "woken" });
  }

  #takeOver(shards: readonly number[], orphaned: readonly number[]): void {
    this.#inheritances.begin(shards, orphaned, this.#deps.clock.now());
    this.#alarm.claimed(shards);
  }

  /** Has an actor end what it has under way, and come again later. */
  #leave(actor: Actor, crowd?: string): void {
    this.#actors.comeAgain(actor, crowd);
    this.#tell(actor, { kind: "stopped" });
  }

  #recall(crowd: string): void {
    // Each request that has ended makes room for two, so that a crowd goes as fast as its host answers.
    for (const wake of this.#actors.takeFrom(crowd, 2)) this.#wake(wake, false);
  }

  #tell(actor: Actor, event: ActorEvent): void {
    if (this.#actors.endsTurn(actor, event)) this.#leave(actor);
    actor.capacity = this.#actors.share;
    for (const effect of step(actor, event, this.#deps.clock.now())) this.#carryOut(actor, effect);
    if (event.kind !== "loaded") return;
    this.#actors.loaded(actor);
    this.#admit();
  }

  /** Lets in those whose turn it is, as far as there is room. */
  #admit(): void {
    for (let wake = this.#actors.next(); wake !== undefined; wake = this.#actors.next())
      this.#wake(wake, false);
  }

  /** Tells the answer to something that began under `id`, unless the lease was lost since. An actor that waits for an answer is not dropped. */
  #tellIfCurrent(id: string, actor: Actor, event: ActorEvent): void {
    if (id === this.#holdings.id) this.#tell(actor, event);
  }

  #carryOut(actor: Actor, effect: Effect): void {
    const { id } = this.#holdings;
    switch (effect.kind) {
      case "load":
        return this.#loader.load(
          effect.request,
          (loaded) => this.#tellIfCurrent(id, actor, { kind: "loaded", loaded }),
          { isWanted: () => !actor.stopping },
        );
      case "send":
        return this.#sender.send(actor, effect);
      case "batch":
        return void this.#dispatchBatch(actor);
      case "recheck":
        return void this.#deps.clock
          .sleep(effect.afterMs)
          .then(() => this.#tellIfCurrent(id, actor, { kind: "rechecked" }));
      case "sleep":
        return void this.#alarm.plan(
          { subscriptionId: actor.id, shard: actor.shard },
          effect.until,
        );
      case "drop":
        this.#actors.drop(actor);
        this.#inheritances.dropped(actor);
        this.#holdings.actorGone(actor.shard);
        this.#admit();
    }
  }

  async #dispatchBatch(actor: Actor): Promise<void> {
    const { clock, store, log } = this.#deps;
    const { id } = this.#holdings;
    const now = clock.now();
    try {
      const { fenced, jobs } = await store.dispatchBatch({
        id: this.#deps.newUlid(now.getTime()),
        dispatcherId: id,
        subscriptionId: actor.id,
        now,
      });
      if (fenced) return this.#holdings.lose(id);
      log.info("batch.dispatched", { subscription_id: actor.id, jobs });
    } catch (error) {
      log.warn("batch.failed", { subscription_id: actor.id, ...errorFields(error) });
      await clock.sleep(BATCH_RETRY_MS);
    }
    this.#tellIfCurrent(id, actor, { kind: "batched" });
  }

  #reportDisabled(subscriptionIds: readonly string[]): void {
    const { log, schedule } = this.#deps;
    for (const id of subscriptionIds) log.warn("subscription.disabled", { subscription_id: id });
    // Another dispatcher may hold the shard of mail, so the mailer of this process is not asked directly.
    void schedule.wake([MAIL_WAKE]);
  }

  /** Throws away everything in memory: others deliver it now. */
  #startOver(): void {
    const { clock, limits = LIMITS } = this.#deps;
    this.#actors = new Actors(clock, limits);
    this.#inheritances = new Inheritances();
    this.#sender.startOver();
    this.#loader.clear();
    this.#committer.clear();
  }

  #close(shard: number): void {
    this.#stopActors((actor) => actor.shard === shard);
    this.#sender.withdraw(shard);
  }

  #stopActors(which: (actor: Actor) => boolean): void {
    for (const actor of this.#actors.all().filter(which)) this.#tell(actor, { kind: "stopped" });
    this.#loader.release();
  }

  /** Lets the requests under way end; what takes too long is broken off and recorded as interrupted. */
  async #drain(): Promise<void> {
    const { mailer } = this.#deps;
    this.#holdings.stop();
    mailer?.stop();
    this.#stopActors(() => true);
    await this.#untilIdle(DRAIN_MS);
    this.#sender.breakOff();
    mailer?.breakOff();
    await this.#untilIdle(RECORD_MS);
    if (this.#actors.size > 0) this.#holdings.abandon();
  }

  async #untilIdle(ms: number): Promise<void> {
    const { clock, mailer } = this.#deps;
    const endMs = clock.monotonicMs() + ms;
    const isBusy = () => this.#actors.size > 0 || mailer?.busy;
    while (isBusy() && clock.monotonicMs() < endMs) await clock.sleep(POLL_MS);
  }
}
