import { addMs, type Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { memoize } from "../../src/lib/memoize.ts";
import { decideNext, postponeMs } from "../actor/decide.ts";
import type { ActorEvent, Effect, Loaded, Subscription } from "../actor/event.ts";
import { loadRequest } from "../actor/load.ts";
import { MAIN } from "../actor/lane.ts";
import { isFresh, isOutlived, type Actor } from "../actor/state.ts";
import type { Quarantine } from "../store/quarantine.ts";
import type { Holdings } from "../shards/holdings.ts";
import type { AttemptRecord } from "../store/attempt-queries.ts";
import type { Committer } from "../store/committer.ts";
import type { Loader } from "../store/loader.ts";
import { composeRequest, factsOf, recordAttempt, type SignedRequest } from "./compose.ts";
import type { Deliver, PostResult } from "./deliver.ts";
import type { Outage } from "../http/failure.ts";
import { hostOf, Reach } from "./reach.ts";
import type { Slot, Slots } from "./slots.ts";

export interface AttemptDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly deliver: Deliver;
  readonly retryDelaysMs: readonly number[];
  /** The evidence whether our own parts of the way to receivers work. The POSTs of alerts share it. */
  readonly reach?: Reach;
  /** Returns a new ULID for an instant in ms since the epoch, greater than all that it returned before. */
  readonly newUlid: (atMs: number) => string;
}

interface SenderDeps extends AttemptDeps {
  readonly holdings: Holdings;
  readonly loader: Loader;
  readonly committer: Committer;
  readonly slots: Slots;
  readonly quarantine: Quarantine;
}

export type SendEvent =
  | { readonly kind: "actor_event"; readonly actor: Actor; readonly event: ActorEvent }
  /** Too many requests wait for the host group of this actor, so the subscription of the actor has to be parked. */
  | { readonly kind: "host_saturated"; readonly actor: Actor; readonly group: string }
  /** A request has ended, so subscriptions that are parked for its host may return. */
  | { readonly kind: "slot_released"; readonly host: string };

type Send = Effect & { readonly kind: "send" };

interface StartedSend {
  readonly slot: Slot;
  readonly startedAt: Date;
}

/** The duration in milliseconds from which a running request would delay the handover of its shard. */
const HANGING_MS = 1_000;
/** The time in milliseconds that a lane waits for an entry that cannot be sent, before the entry is read again. */
const QUARANTINE_MS = 30_000;
/** The most URLs whose host is cached (our choice). */
const MAX_HOSTS_KEPT = 10_000;

/**
 * Makes the POSTs of the actors: waits for a request slot, composes and sends the request, and passes its attempt
 * record to the committer.
 */
export class Sender {
  readonly #deps: SenderDeps;
  readonly #report: (event: SendEvent) => void;
  readonly #slots: Slots;
  readonly #reach: Reach;
  /** The number of sends of each actor that wait for a request slot or are under way. */
  #begun = new WeakMap<Actor, number>();
  readonly #hostOf = memoize(hostOf, MAX_HOSTS_KEPT);

  constructor(deps: SenderDeps, report: (event: SendEvent) => void) {
    this.#deps = deps;
    this.#report = report;
    this.#slots = deps.slots;
    this.#reach = deps.reach ?? new Reach();
  }

  send(actor: Actor, effect: Send): void {
    const host = this.#hostOf(effect.subscription.webhookUrl);
    const begun = this.#begun.get(actor) ?? 0;
    const group = this.#slots.saturatedGroupOf(host);
    // An actor is parked only while none of its requests waits or runs, because parking stops the actor, and its
    // waiting requests would not start.
    const isParked = group !== undefined && begun === 0;
    if (isParked) this.#report({ kind: "host_saturated", actor, group });
    this.#begun.set(actor, begun + 1);
    if (isParked || actor.stopping) this.#withhold(actor, effect.lane);
    else this.#awaitSlot(actor, effect, host);
  }

  /**
   * Pauses new requests while another dispatcher may hold the shards, or while too many attempt records wait for their
   * commit.
   */
  regulate(): void {
    const { holdings, committer } = this.#deps;
    if (holdings.safe && committer.keepsUp) this.#slots.resume();
    else this.#slots.pause();
  }

  /** Ends an outage of our own parts of which nothing was seen for a while. */
  endOutage(): void {
    const { clock, log } = this.#deps;
    if (this.#reach.settle(clock.monotonicMs())) log.info("network.restored");
  }

  /** The present outage of our own parts; undefined without one. */
  get outage(): Outage | undefined {
    return this.#reach.outage;
  }

  /** Whether a request of this shard has run for longer than `HANGING_MS`. */
  lingers(shard: number): boolean {
    const untilMs = this.#deps.clock.monotonicMs() - HANGING_MS;
    return this.#slots.running.some((one) => one.shard === shard && one.startedMs < untilMs);
  }

  /** Aborts the running requests of a shard, or of all shards. */
  abort(shard?: number): void {
    for (const one of this.#slots.running) if (one.shard === (shard ?? one.shard)) one.abort?.();
  }

  /** Discards all waiting and running requests without a result for their actors, because the lease is lost. */
  startOver(): void {
    this.abort();
    this.#slots.pause();
    this.#slots.clear();
    this.#begun = new WeakMap();
  }

  #awaitSlot(actor: Actor, effect: Send, host: string): void {
    this.#slots.acquire(host, {
      shard: actor.shard,
      bytes: effect.entry.bytes,
      start: (slot) => this.#start(actor, effect, slot),
      cancel: () => this.#withhold(actor, effect.lane),
    });
  }

  /**
   * Starts the request of a send that has its request slot, unless the actor, the lease or the settings forbid it by
   * now.
   */
  #start(actor: Actor, effect: Send, slot: Slot): void {
    const { clock, holdings } = this.#deps;
    const now = clock.now();
    switch (obstacleTo(effect, actor, { isSafe: holdings.safe, now })) {
      case undefined:
        return this.#compose(actor, effect, { slot, startedAt: now });
      case "stopped":
        this.#slots.release(slot);
        return this.#withhold(actor, effect.lane);
      case "unsafe":
        this.#slots.pause();
        this.#slots.release(slot);
        return this.#awaitSlot(actor, effect, slot.host);
      case "stale":
        return this.#refresh(actor, effect, slot);
    }
  }

  /** Composes a POST and makes it. The facts of its entry are dropped, so that memory holds the body only once. */
  #compose(actor: Actor, effect: Send, started: StartedSend): void {
    const { slot, startedAt } = started;
    const { entry, subscription } = effect;
    const facts = factsOf(entry, subscription.partnerId);
    if (facts === undefined) return this.#quarantine(actor, effect, slot);
    this.#deps.quarantine.end(`${actor.id} ${effect.lane}`, "history_missing");
    slot.startedMs = this.#deps.clock.monotonicMs();
    try {
      const request = composeRequest(entry, facts, subscription, startedAt);
      entry.facts = undefined;
      void this.#attempt(actor, effect, { slot, startedAt, request });
    } catch (error) {
      // Postpones the send: a bug in our code is no failure of the receiver, so the entry keeps its attempt number.
      this.#postpone(actor, effect, slot, String(error));
    }
  }

  /** Makes one POST and passes its attempt record to the committer. */
  async #attempt(
    actor: Actor,
    effect: Send,
    { slot, startedAt, request }: StartedSend & { readonly request: SignedRequest },
  ): Promise<void> {
    const { clock, deliver, holdings, newUlid, retryDelaysMs } = this.#deps;
    const { id: dispatcherId } = holdings;
    const { entry, lane, possiblyRepeated, subscription } = effect;
    const { host } = slot;
    // The id is drawn at the start of the attempt, so that it contains that time. ULIDs of a process never go back, so
    // an id that is drawn after those of later attempts would contain a later time.
    const id = newUlid(startedAt.getTime());
    let posted: PostResult;
    try {
      posted = await deliver(request, {
        partnerId: subscription.partnerId,
        abortable: (abort) => (slot.abort = abort),
        mayBegin: () => mayLeave(dispatcherId, { actor, holdings, subscription }),
      });
    } catch (error) {
      if (dispatcherId === holdings.id) this.#postpone(actor, effect, slot, String(error));
      return;
    }
    const endedMs = clock.monotonicMs();
    const made = { host, partnerId: subscription.partnerId, startedMs: slot.startedMs, endedMs };
    const result = this.#reach.attribute(posted, made, this.#deps);
    // If the lease was lost during the POST, the result is discarded, and the new holder of the shard repeats the
    // attempt.
    if (dispatcherId !== holdings.id) return;
    if (result.kind === "withheld") {
      this.#release(slot);
      this.regulate();
      return this.#withhold(actor, lane);
    }
    if (result.kind === "unsent") return this.#postpone(actor, effect, slot, result.detail);
    // A pending test has one attempt: its answer decides whether the subscription is enabled (contract 6.16).
    const isDecisive = entry.eventId === subscription.pendingTestEventId;
    const delays = isDecisive ? [] : retryDelaysMs;
    const decision = decideNext(result.kind, { attempt: entry.attempt, retryDelaysMs: delays });
    const { id: subscriptionId, shard } = actor;
    const { erasures } = subscription;
    const post = {
      id,
      shard,
      subscriptionId,
      erasures,
      startedAt,
      endedMs,
      entry,
      host,
      request,
      possiblyRepeated,
    };
    const record = recordAttempt(post, result, decision);
    this.#deps.committer.commit(dispatcherId, record, (active) => {
      const committed = { kind: "committed", lane, decision, active } as const;
      this.#report({ kind: "actor_event", actor, event: committed });
    });
    this.#release(slot);
    this.regulate();
    this.#log(record, result);
    this.#end(actor, { kind: "answered", lane, decision });
  }

  #release(slot: Slot): void {
    this.#slots.release(slot);
    this.#report({ kind: "slot_released", host: slot.host });
  }

  /** Tells the actor that a send did not begin. */
  #withhold(actor: Actor, lane: string, isEnded = false): void {
    this.#end(actor, { kind: "unsent", lane, isEnded });
  }

  /** Tells the actor that a send has ended. */
  #end(actor: Actor, event: ActorEvent): void {
    this.#begun.set(actor, (this.#begun.get(actor) ?? 1) - 1);
    this.#report({ kind: "actor_event", actor, event });
  }

  /**
   * Postpones a send after a failure on our side. No POST was made, so nothing is recorded and the entry keeps its
   * attempt number.
   */
  #postpone(actor: Actor, { entry, lane }: Send, slot: Slot, detail: string): void {
    const fields = { subscription_id: actor.id, event_id: entry.eventId, detail };
    this.#deps.log.warn("attempt.postponed", fields);
    this.#putOff(actor, lane, slot, postponeMs(actor.postponed));
  }

  /**
   * Postpones an entry that has no row in review_history and makes its lane wait. If the entries behind it were sent,
   * the order would be broken. If a body were invented, the receiver would take it for the real event.
   */
  #quarantine(actor: Actor, { entry, lane }: Send, slot: Slot): void {
    this.#deps.quarantine.note(`${actor.id} ${lane}`, {
      subscription_id: actor.id,
      reason: "history_missing",
      event_id: entry.eventId || null,
      sequence: entry.sequence,
      review_id: lane === MAIN ? null : entry.reviewId,
    });
    this.#deps.log.error("delivery.quarantined", {
      subscription_id: actor.id,
      event_id: entry.eventId,
      sequence: entry.sequence,
      reason: "its row of review_history is missing",
    });
    this.#putOff(actor, lane, slot, QUARANTINE_MS);
  }

  #putOff(actor: Actor, lane: string, slot: Slot, ms: number): void {
    this.#release(slot);
    const until = addMs(this.#deps.clock.now(), ms);
    this.#end(actor, { kind: "postponed", lane, until });
  }

  /**
   * Reads the settings again, ahead of all loads, for a send that waited long for its request slot. The send does not
   * begin if the host has changed, or a setting on which its entry depends (`keepsEntry`).
   */
  #refresh(actor: Actor, effect: Send, slot: Slot): void {
    const { clock, holdings, loader } = this.#deps;
    const { id } = holdings;
    const take = ({ found }: Loaded) => {
      if (id !== holdings.id) return;
      const subscription = found?.subscription;
      const isSame =
        subscription !== undefined &&
        keepsEntry(effect.subscription, subscription) &&
        this.#hostOf(subscription.webhookUrl) === slot.host;
      if (isSame) return this.#start(actor, { ...effect, subscription, readAt: clock.now() }, slot);
      // The end of the send is reported before its request slot is released, so that other sends of this actor do not
      // start with the old settings.
      this.#withhold(actor, effect.lane, subscription === undefined);
      this.#release(slot);
    };
    const isWanted = () => !actor.stopping;
    loader.load(loadRequest(actor, 0), take, { turn: "first", isWanted });
  }

  #log(record: AttemptRecord, result: PostResult): void {
    const { log } = this.#deps;
    const fields = {
      subscription_id: record.subscriptionId,
      event_id: record.eventId,
      attempt: record.attempt,
      outcome: record.decision.kind,
      status_code: record.statusCode,
      error_code: record.errorCode,
      tls_reason: record.tlsReason ?? undefined,
      duration_ms: record.durationMs,
      resent: record.resent || undefined,
      possibly_repeated: record.possiblyRepeated || undefined,
      detail: result.kind === "failed" ? result.detail : undefined,
    };
    if (record.decision.kind === "delivered") log.debug("attempt.finished", fields);
    else log.info("attempt.finished", fields);
  }
}

/**
 * Whether an entry that was read with the settings `before` may be sent with those of a later load. If an account was
 * activated, its events may precede the entry, and the later settings do not show them as held (contract 7.19).
 */
export function keepsEntry(before: Subscription, after: Subscription): boolean {
  return (
    after.ordering === before.ordering &&
    after.pendingTestEventId === before.pendingTestEventId &&
    after.erasures === before.erasures &&
    after.inactiveAccounts === before.inactiveAccounts &&
    (after.settledLimit === null) === (before.settledLimit === null)
  );
}

/**
 * Returns the reason why a send that has its request slot may not begin. `stopped`: the actor stops, its subscription
 * is not active, or the entry may have been erased. `unsafe`: the lease may have expired; a process that was suspended
 * notices it here, before any of its timers runs. `stale`: the settings of the send are too old.
 */
export function obstacleTo(
  { readAt, subscription }: Pick<Send, "readAt" | "subscription">,
  actor: Pick<Actor, "stopping" | "subscription">,
  { isSafe, now }: { readonly isSafe: boolean; readonly now: Date },
): "stopped" | "unsafe" | "stale" | undefined {
  if (actor.stopping || actor.subscription === undefined || isOutlived(subscription, actor))
    return "stopped";
  if (!isSafe) return "unsafe";
  return isFresh(readAt, now) ? undefined : "stale";
}

/**
 * Whether a request that began under this lease may be written. `subscription` has the settings with which its entry
 * was read. The sender calls this function right before the first byte, because a look-up or a connection can take
 * longer than the lease (contract 7.4).
 */
export function mayLeave(
  id: string,
  {
    actor,
    holdings,
    subscription,
  }: {
    readonly actor: Pick<Actor, "stopping" | "subscription">;
    readonly holdings: Pick<Holdings, "id" | "safe">;
    readonly subscription: Pick<Subscription, "erasures">;
  },
): boolean {
  const isHeld = id === holdings.id && holdings.safe;
  return isHeld && !actor.stopping && !isOutlived(subscription, actor);
}
