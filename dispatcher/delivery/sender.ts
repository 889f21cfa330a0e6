import { addMs, type Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { remember } from "../../src/lib/remember.ts";
import { decideNext, postponeMs, type Decision } from "../actor/decide.ts";
import type { ActorEvent, Effect } from "../actor/event.ts";
import { settingsRequest } from "../actor/load.ts";
import { isFresh, type Actor } from "../actor/state.ts";
import type { Holdings } from "../shards/holdings.ts";
import type { AttemptRecord } from "../store/attempt.ts";
import type { Committer } from "../store/committer.ts";
import type { Loader } from "../store/loader.ts";
import { composeRequest } from "./compose.ts";
import type { Deliver, Outcome } from "./deliver.ts";
import { InFlight } from "./in-flight.ts";
import { recordAttempt } from "./record.ts";
import { Slots } from "./slots.ts";

interface SenderDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly deliver: Deliver;
  readonly retryDelaysMs: readonly number[];
  readonly newUlid: (atMs: number) => string;
  readonly holdings: Holdings;
  readonly loader: Loader;
  readonly committer: Committer;
}

interface SenderListener {
  tell(actor: Actor, event: ActorEvent): void;
  /** Tells the actor unless the lease of this id is lost or the actor was dropped. */
  tellIfCurrent(id: string, actor: Actor, event: ActorEvent): void;
}

type Send = Effect & { readonly kind: "send" };

type Posted =
  | { readonly record: AttemptRecord; readonly outcome: Outcome }
  | { readonly unsent: string };

/** Outcomes that may wait for Postgres, over all actors. Past it nothing new is sent, so a slow database slows sending. */
const MAX_BACKLOG = 2_048;
/** A request under way for longer than this would keep others waiting if its shard were given up now. */
const HANGING_MS = 1_000;
/** How many URLs are kept with their host (our choice). */
const MAX_HOSTS_KEPT = 10_000;

/** Makes the POSTs that the actors ask for: each from the slot that it waits for to the commit of its record. */
export class Sender {
  readonly #deps: SenderDeps;
  readonly #listener: SenderListener;
  readonly #slots = new Slots();
  readonly #inFlight = new InFlight();
  readonly #hostOf = remember(hostOf, MAX_HOSTS_KEPT);

  constructor(deps: SenderDeps, listener: SenderListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  send(actor: Actor, effect: Send): void {
    this.#awaitSlot(actor, effect, this.#hostOf(effect.subscription.webhookUrl));
  }

  /** Lets sends begin only while nobody else can have taken over and Postgres keeps up with the outcomes. */
  regulate(): void {
    if (this.#deps.holdings.safe && this.#deps.committer.backlog < MAX_BACKLOG)
      this.#slots.resume();
    else this.#slots.pause();
  }

  /** Whether a request of this shard has been under way for long. */
  lingers(shard: number): boolean {
    const startedMs = this.#inFlight.oldestMs(shard);
    return startedMs !== undefined && this.#deps.clock.monotonicMs() - startedMs > HANGING_MS;
  }

  /** Cancels the sends of this shard that wait for a slot: its actors were told to stop. */
  withdraw(shard: number): void {
    this.#slots.withdraw(shard);
  }

  breakOff(shard: number): void {
    this.#inFlight.breakOff(shard);
  }

  breakOffAll(): void {
    this.#inFlight.breakOffAll();
  }

  /** Throws away what waits and what is under way: the lease is lost, so no actor may hear of any of it. */
  startOver(): void {
    this.#inFlight.breakOffAll();
    this.#slots.pause();
    this.#slots.clear();
  }

  #awaitSlot(actor: Actor, effect: Send, host: string): void {
    this.#slots.acquire(host, {
      shard: actor.shard,
      start: () => this.#start(actor, effect, host),
      cancel: () => this.#listener.tell(actor, { kind: "unsent", lane: effect.lane }),
    });
  }

  /** Uses the slot that a send was given, unless something came in between. */
  #start(actor: Actor, effect: Send, host: string): void {
    const { clock, holdings } = this.#deps;
    const now = clock.now();
    switch (obstacleTo(effect, actor, { isSafe: holdings.safe, now })) {
      case undefined:
        return void this.#attempt(actor, effect, { host, startedAt: now });
      case "stopped":
        this.#slots.release(host);
        return this.#listener.tell(actor, { kind: "unsent", lane: effect.lane });
      case "unsafe":
        this.#slots.pause();
        this.#slots.release(host);
        return this.#awaitSlot(actor, effect, host);
      case "stale":
        return this.#refresh(actor, effect, host);
    }
  }

  /** One POST, from its beginning to the commit of its record. */
  async #attempt(
    actor: Actor,
    effect: Send,
    { host, startedAt }: { host: string; startedAt: Date },
  ): Promise<void> {
    const { holdings } = this.#deps;
    const { id } = holdings;
    let posted: Posted;
    try {
      posted = await this.#post(actor, effect, { host, startedAt });
    } catch (error) {
      // A bug of ours is no failure of the receiver: the entry stays as it is.
      posted = { unsent: String(error) };
    }
    // Whoever took over makes the attempt again.
    if (id !== holdings.id) return;
    if ("unsent" in posted) return this.#postpone(actor, effect, host, posted.unsent);
    const { record, outcome } = posted;
    this.#commit(actor, effect.lane, record, id);
    this.#slots.release(host);
    this.regulate();
    this.#report(record, outcome);
    this.#listener.tell(actor, { kind: "answered", lane: effect.lane, decision: record.decision });
  }

  async #post(
    actor: Actor,
    { entry, subscription, possiblyRepeated }: Send,
    { host, startedAt }: { host: string; startedAt: Date },
  ): Promise<Posted> {
    const { clock, deliver, retryDelaysMs } = this.#deps;
    const request = composeRequest(entry, subscription, startedAt);
    const underWay = this.#inFlight.begin(actor.shard, clock.monotonicMs());
    let outcome: Outcome;
    try {
      outcome = await deliver(request, underWay.signal);
    } finally {
      this.#inFlight.end(underWay);
    }
    const endedMs = clock.monotonicMs();
    if (outcome.kind === "unsent") return { unsent: outcome.detail };
    const state = { attempt: entry.attempt, retryDelaysMs };
    const decision = decideNext(outcome.kind, state);
    const identity = {
      id: this.#deps.newUlid(startedAt.getTime()),
      shard: actor.shard,
      subscriptionId: actor.id,
    };
    const posted = { entry, host, startedAt, endedMs, request, possiblyRepeated };
    return { record: recordAttempt(identity, posted, outcome, decision), outcome };
  }

  #commit(actor: Actor, lane: string, record: AttemptRecord, id: string): void {
    const decision: Decision = record.decision;
    this.#deps.committer.commit(id, record, (active) => {
      this.regulate();
      this.#listener.tellIfCurrent(id, actor, { kind: "committed", lane, decision, active });
    });
  }

  /** Our own failure: no POST was made, so there is no record of one, and the entry keeps its attempt. */
  #postpone(actor: Actor, { entry, lane }: Send, host: string, detail: string): void {
    this.#slots.release(host);
    this.#deps.log.warn("webhook.unsent", {
      subscription_id: actor.id,
      event_id: entry.eventId,
      detail,
    });
    const until = addMs(this.#deps.clock.now(), postponeMs(actor.postponed));
    this.#listener.tell(actor, { kind: "postponed", lane, until });
  }

  /** Reads the settings of a send again that waited long for its slot; the slot stays its own meanwhile. */
  #refresh(actor: Actor, effect: Send, host: string): void {
    const { id } = this.#deps.holdings;
    this.#deps.loader.load(settingsRequest(actor), ({ found }) => {
      if (id !== this.#deps.holdings.id) return;
      const subscription = found?.subscription;
      if (
        subscription?.ordering === effect.subscription.ordering &&
        this.#hostOf(subscription.webhookUrl) === host
      ) {
        const refreshed = { ...effect, subscription, readAt: this.#deps.clock.now() };
        return this.#start(actor, refreshed, host);
      }
      this.#slots.release(host);
      this.#listener.tell(actor, { kind: "unsent", lane: effect.lane });
    });
  }

  #report(record: AttemptRecord, outcome: Outcome): void {
    const { log } = this.#deps;
    // The log leaves out what is undefined.
    const fields = {
      subscription_id: record.subscriptionId,
      event_id: record.eventId,
      attempt: record.attempt,
      outcome: record.decision.kind,
      status_code: record.statusCode,
      error_code: record.errorCode,
      duration_ms: record.durationMs,
      resent: record.resent || undefined,
      possibly_repeated: record.possiblyRepeated || undefined,
      detail: outcome.kind === "failed" ? outcome.detail : undefined,
    };
    if (record.decision.kind === "delivered") log.debug("webhook.attempted", fields);
    else log.info("webhook.attempted", fields);
  }
}

/**
 * What keeps a send from beginning although it has its slot. `stopped`: the actor stops, or its subscription has ended.
 * `unsafe`: the lease may be over; a process that stood still learns it here, before any timer tells it. `stale`: the
 * settings that it would be sent with are too old.
 */
export function obstacleTo(
  { readAt }: Pick<Send, "readAt">,
  actor: Pick<Actor, "stopping" | "subscription">,
  { isSafe, now }: { readonly isSafe: boolean; readonly now: Date },
): "stopped" | "unsafe" | "stale" | undefined {
  if (actor.stopping || actor.subscription === undefined) return "stopped";
  if (!isSafe) return "unsafe";
  return isFresh(readAt, now) ? undefined : "stale";
}

/** Host and port as the `Host` header names them. */
function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
