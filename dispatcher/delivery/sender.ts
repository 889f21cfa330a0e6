import { addMs, type Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { remember } from "../../src/lib/remember.ts";
import type { ActorEvent, Effect } from "../actor/event.ts";
import { settingsRequest } from "../actor/load.ts";
import { isFresh, type Actor } from "../actor/state.ts";
import { recordAttempt, type AttemptRecord } from "../store/attempt.ts";
import type { Committer } from "../store/committer.ts";
import { decideNext, postponeMs } from "../actor/decide.ts";
import type { Deliver, Outcome } from "./deliver.ts";
import type { Holdings } from "../shards/holdings.ts";
import type { Loader } from "../store/loader.ts";
import { composeRequest } from "./compose.ts";
import { Requests } from "./in-flight.ts";
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
  /** The same, unless the lease of this id is lost or the actor is gone. */
  tellIf(id: string, actor: Actor, event: ActorEvent): void;
}

type Send = Effect & { readonly kind: "send" };

/** Outcomes that may wait for Postgres, over all actors; past it nothing new is sent: a slow database slows sending. */
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
  readonly #requests = new Requests();
  readonly #hostOf = remember(hostOf, MAX_HOSTS_KEPT);

  constructor(deps: SenderDeps, listener: SenderListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  send(actor: Actor, effect: Send): void {
    this.#awaitSlot(actor, effect, this.#hostOf(effect.subscription.webhookUrl));
  }

  /** Sends only while nobody else can have taken over, and Postgres keeps up. */
  regulate(): void {
    if (this.#deps.holdings.safe && this.#deps.committer.backlog < MAX_BACKLOG)
      this.#slots.resume();
    else this.#slots.pause();
  }

  /** Whether a request of this shard has been under way for long. */
  lingers(shard: number): boolean {
    const startedMs = this.#requests.oldestMs(shard);
    return startedMs !== undefined && this.#deps.clock.monotonicMs() - startedMs > HANGING_MS;
  }

  /** Nothing more of this shard begins: its actors were told to stop. */
  withdraw(shard: number): void {
    this.#slots.withdraw(shard);
  }

  breakOff(shard: number): void {
    this.#requests.breakOff(shard);
  }

  breakOffAll(): void {
    this.#requests.breakOffAll();
  }

  /** The lease is lost: nobody wants to hear of what waits or is under way. */
  startOver(): void {
    this.#requests.breakOffAll();
    this.#slots.pause();
    this.#slots.clear();
  }

  #awaitSlot(actor: Actor, effect: Send, host: string): void {
    this.#slots.acquire(host, {
      shard: actor.shard,
      start: () => void this.#attempt(actor, effect, host),
      cancel: () => this.#listener.tell(actor, { kind: "unsent", lane: effect.lane }),
    });
  }

  /** One POST, from the slot it was given to the commit of its record. */
  async #attempt(actor: Actor, effect: Send, host: string): Promise<void> {
    const { entry, lane, subscription } = effect;
    const { clock, deliver, retryDelaysMs } = this.#deps;
    if (actor.stopping || actor.subscription === undefined) {
      // The stop, or the end of its subscription, came while it waited for its slot.
      this.#slots.release(host);
      return this.#listener.tell(actor, { kind: "unsent", lane });
    }
    if (!this.#deps.holdings.safe) {
      // A process that stood still finds out here, before anybody tells it, that its lease may be over.
      this.#slots.pause();
      this.#slots.release(host);
      return this.#awaitSlot(actor, effect, host);
    }
    const startedAt = clock.now();
    if (!isFresh(effect.readAt, startedAt)) return this.#refresh(actor, effect, host);
    const { id } = this.#deps.holdings;
    const request = composeRequest(entry, subscription, startedAt);
    const running = this.#requests.begin(actor.shard, clock.monotonicMs());
    const outcome = await deliver(request, running.signal);
    this.#requests.end(running);
    // Whoever took over makes the attempt again.
    if (id !== this.#deps.holdings.id) return;
    if (outcome.kind === "unsent") return this.#postpone(actor, effect, host, outcome.detail);
    const decision = decideNext(
      outcome.kind,
      { attempt: entry.attempt, retryDelaysMs },
      clock.now(),
    );
    const identity = {
      id: this.#deps.newUlid(startedAt.getTime()),
      shard: actor.shard,
      subscriptionId: actor.id,
    };
    const record = recordAttempt(identity, { entry, host, startedAt, request }, outcome, decision);
    this.#deps.committer.commit(id, record, (active) => {
      this.regulate();
      this.#listener.tellIf(id, actor, { kind: "committed", lane, decision, active });
    });
    this.#slots.release(host);
    this.regulate();
    this.#report(record, outcome);
    this.#listener.tell(actor, { kind: "answered", lane, decision });
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

  /** A send that waited long for its slot keeps it while its settings are read again. */
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
        return void this.#attempt(actor, refreshed, host);
      }
      this.#slots.release(host);
      this.#listener.tell(actor, { kind: "unsent", lane: effect.lane });
    });
  }

  #report(record: AttemptRecord, outcome: Outcome): void {
    const { log } = this.#deps;
    // What is undefined is not written.
    const fields = {
      subscription_id: record.subscriptionId,
      event_id: record.eventId,
      attempt: record.attempt,
      outcome: record.decision.kind,
      status_code: record.statusCode,
      error_code: record.errorCode,
      duration_ms: record.durationMs,
      resent: record.resent || undefined,
      detail: outcome.kind === "failed" ? outcome.detail : undefined,
    };
    if (record.decision.kind === "delivered") log.debug("webhook.attempted", fields);
    else log.info("webhook.attempted", fields);
  }
}

/** Host and port as the `Host` header names them. */
function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
