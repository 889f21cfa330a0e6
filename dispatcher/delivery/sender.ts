import { addMs, type Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { remember } from "../../src/lib/batches.ts";
import { decideNext, postponeMs } from "../actor/decide.ts";
import { isSendable, type SendableEntry } from "../actor/entry.ts";
import type { ActorEvent, Effect, Loaded } from "../actor/event.ts";
import { settingsRequest } from "../actor/load.ts";
import { isFresh, type Actor } from "../actor/state.ts";
import type { Limits } from "./limits.ts";
import type { Holdings } from "../shards/holdings.ts";
import type { AttemptRecord } from "../store/attempt.ts";
import type { Committer } from "../store/committer.ts";
import type { Loader } from "../store/loader.ts";
import { composeRequest } from "./compose.ts";
import type { Deliver, PostOutcome } from "./deliver.ts";
import { isUnreached, Reach } from "./reach.ts";
import { recordAttempt } from "./record.ts";
import { SLOW_CROWD, Slots, type Slot } from "./slots.ts";

interface SenderDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly deliver: Deliver;
  readonly retryDelaysMs: readonly number[];
  readonly newUlid: (atMs: number) => string;
  readonly holdings: Holdings;
  readonly loader: Loader;
  readonly committer: Committer;
  readonly limits: Limits;
}

interface SenderListener {
  tell(actor: Actor, event: ActorEvent): void;
  /** So many already wait for the host of this actor that it has to wait by its name alone. */
  crowded(actor: Actor, crowd: string): void;
  /** Some of this crowd may come again. */
  thinned(crowd: string): void;
}

type Send = Effect & { readonly kind: "send" };

/** A request under way. */
interface UnderWay {
  readonly shard: number;
  readonly startedMs: number;
  breakOff(): void;
}

/** A request under way for longer than this would keep others waiting if its shard were given up now. */
const HANGING_MS = 1_000;
/** How long an entry that cannot be sent keeps its lane waiting before it is read again. */
const QUARANTINE_MS = 30_000;
/** How many URLs are kept with their host (our choice). */
const MAX_HOSTS_KEPT = 10_000;

/** Makes the POSTs that the actors ask for: each from the slot that it waits for to the commit of its record. */
export class Sender {
  readonly #deps: SenderDeps;
  readonly #listener: SenderListener;
  readonly #slots: Slots;
  readonly #reach = new Reach();
  /** How many sends of an actor wait for a slot or are under way. */
  #begun = new WeakMap<Actor, number>();
  readonly #underWay = new Set<UnderWay>();
  readonly #hostOf = remember(hostOf, MAX_HOSTS_KEPT);
  /** Counts the sends that were put off because the entry has no history row. */
  quarantined = 0;

  constructor(deps: SenderDeps, listener: SenderListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#slots = new Slots(deps.clock, deps.limits);
  }

  send(actor: Actor, effect: Send): void {
    const host = this.#hostOf(effect.subscription.webhookUrl);
    const begun = this.#begun.get(actor) ?? 0;
    const crowd = this.#slots.crowdOf(host);
    // One that stops has its other requests withheld, so only one that has none may stand aside.
    if (crowd !== undefined && begun === 0) this.#listener.crowded(actor, crowd);
    this.#begun.set(actor, begun + 1);
    if (actor.stopping) this.#withhold(actor, effect.lane);
    else this.#awaitSlot(actor, effect, host);
  }

  /** Whether those in a crowd may come and wait for their slots again. */
  hasThinned(crowd: string): boolean {
    return this.#slots.hasThinned(crowd);
  }

  /** Lets sends begin only while nobody else can have taken over and Postgres keeps up with the outcomes. */
  regulate(): void {
    const { holdings, committer } = this.#deps;
    if (holdings.safe && committer.keepsUp) this.#slots.resume();
    else this.#slots.pause();
  }

  /** Whether a request of this shard has been under way for long. */
  lingers(shard: number): boolean {
    const untilMs = this.#deps.clock.monotonicMs() - HANGING_MS;
    return this.#underWay.values().some((one) => one.shard === shard && one.startedMs < untilMs);
  }

  /** Cancels the sends of this shard that wait for a slot: its actors were told to stop. */
  withdraw(shard: number): void {
    this.#slots.withdraw(shard);
  }

  /** Breaks off the requests under way: those of a shard, or all. */
  breakOff(shard?: number): void {
    for (const one of this.#underWay) if (one.shard === (shard ?? one.shard)) one.breakOff();
  }

  /** Throws away what waits and what is under way: the lease is lost, so no actor may hear of any of it. */
  startOver(): void {
    this.breakOff();
    this.#underWay.clear();
    this.#slots.pause();
    this.#slots.clear();
    this.#begun = new WeakMap();
  }

  #awaitSlot(actor: Actor, effect: Send, host: string): void {
    this.#slots.acquire(host, {
      shard: actor.shard,
      start: (slot) => this.#start(actor, effect, slot),
      cancel: () => this.#withhold(actor, effect.lane),
    });
  }

  /** Uses the slot that a send was given, unless something came in between. */
  #start(actor: Actor, effect: Send, slot: Slot): void {
    const { clock, holdings } = this.#deps;
    const now = clock.now();
    switch (obstacleTo(effect, actor, { isSafe: holdings.safe, now })) {
      case undefined:
        return void this.#attempt(actor, effect, { slot, startedAt: now });
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

  /** One POST, from its beginning to the commit of its record. */
  async #attempt(
    actor: Actor,
    effect: Send,
    { slot, startedAt }: { readonly slot: Slot; readonly startedAt: Date },
  ): Promise<void> {
    const { clock, holdings, newUlid, retryDelaysMs } = this.#deps;
    const { id: dispatcherId } = holdings;
    const { entry, lane, possiblyRepeated, subscription } = effect;
    const { host } = slot;
    if (!isSendable(entry)) return this.#quarantine(actor, effect, slot);
    slot.startedMs = clock.monotonicMs();
    // Drawn at the start: the ULIDs of a process never go back, so one drawn at the end would name the end.
    const id = newUlid(startedAt.getTime());
    const posted = await this.#post(actor, { entry, subscription }, startedAt);
    const endedMs = clock.monotonicMs();
    // Whoever took over makes the attempt again.
    if (dispatcherId !== holdings.id) return;
    if (typeof posted === "string") return this.#postpone(actor, effect, slot, posted);
    const { request, outcome } = posted;
    if (outcome.kind === "withheld") {
      this.#release(slot);
      this.regulate();
      return this.#withhold(actor, lane);
    }
    if (outcome.kind === "unsent") return this.#postpone(actor, effect, slot, outcome.detail);
    if (this.#noteReach(outcome, subscription.partnerId, host))
      return this.#postpone(actor, effect, slot, "most receivers cannot be reached");
    const decision = decideNext(outcome.kind, { attempt: entry.attempt, retryDelaysMs });
    const made = { id, shard: actor.shard, subscriptionId: actor.id, startedAt, endedMs };
    const post = { ...made, entry, host, request, possiblyRepeated };
    const record = recordAttempt(post, outcome, decision);
    this.#deps.committer.commit(dispatcherId, record, (active) => {
      this.regulate();
      const committed = { kind: "committed", lane, decision, active } as const;
      if (dispatcherId === holdings.id) this.#listener.tell(actor, committed);
    });
    this.#release(slot);
    this.regulate();
    this.#report(record, outcome);
    this.#tell(actor, { kind: "answered", lane, decision });
  }

  /** Makes the POST; a text says why it was not made. */
  async #post(
    actor: Actor,
    { entry, subscription }: Pick<Send, "subscription"> & { readonly entry: SendableEntry },
    startedAt: Date,
  ) {
    const { clock, deliver, holdings } = this.#deps;
    const { id } = holdings;
    const underWay = { shard: actor.shard, startedMs: clock.monotonicMs(), breakOff() {} };
    this.#underWay.add(underWay);
    try {
      const request = composeRequest(entry, subscription, startedAt);
      const outcome = await deliver(request, {
        partnerId: subscription.partnerId,
        breakable: (breakOff) => (underWay.breakOff = breakOff),
        mayBegin: () => mayLeave(id, actor, holdings),
      });
      return { request, outcome };
    } catch (error) {
      // A bug of ours is no failure of the receiver: the entry stays as it is.
      return String(error);
    } finally {
      this.#underWay.delete(underWay);
    }
  }

  /** Notes who could be reached; true if an attempt failed because of us: then it does not count (contract 7.8). */
  #noteReach(outcome: PostOutcome, partnerId: number, host: string): boolean {
    if (outcome.kind === "aborted") return false;
    const unreached = isUnreached(outcome);
    const before = this.#reach.isOurs;
    const atMs = this.#deps.clock.monotonicMs();
    const isOurs = this.#reach.note(host, { atMs, partnerId, unreached });
    if (isOurs && !before) this.#deps.log.warn("network.lost");
    if (!isOurs && before) this.#deps.log.info("network.back");
    return unreached && isOurs;
  }

  #release(slot: Slot): void {
    this.#slots.release(slot);
    if (this.#slots.hasThinned(slot.host)) this.#listener.thinned(slot.host);
    if (this.#slots.hasThinned(SLOW_CROWD)) this.#listener.thinned(SLOW_CROWD);
  }

  /** Tells the actor that its send was not begun. */
  #withhold(actor: Actor, lane: string, isEnded = false): void {
    this.#tell(actor, { kind: "unsent", lane, isEnded });
  }

  /** Tells the actor of the end of a send. */
  #tell(actor: Actor, event: ActorEvent): void {
    this.#begun.set(actor, (this.#begun.get(actor) ?? 1) - 1);
    this.#listener.tell(actor, event);
  }

  /** Our own failure: no POST was made, so there is no record of one, and the entry keeps its attempt. */
  #postpone(actor: Actor, { entry, lane }: Send, slot: Slot, detail: string): void {
    const fields = { subscription_id: actor.id, event_id: entry.eventId, detail };
    this.#deps.log.warn("webhook.unsent", fields);
    this.#putOff(actor, lane, slot, postponeMs(actor.postponed));
  }

  /**
   * Leaves an entry without a history row in the outbox, unsent, and has its lane wait: sending the entries behind it
   * would break their order, and a body that is made up would be delivered as the real event.
   */
  #quarantine(actor: Actor, { entry, lane }: Send, slot: Slot): void {
    this.quarantined += 1;
    this.#deps.log.error("entry.quarantined", {
      subscription_id: actor.id,
      event_id: entry.eventId,
      sequence: entry.sequence,
      reason: "its row of review_history is missing",
    });
    this.#putOff(actor, lane, slot, QUARANTINE_MS);
  }

  #putOff(actor: Actor, lane: string, slot: Slot, ms: number): void {
    this.#release(slot);
    this.#tell(actor, {
      kind: "postponed",
      lane,
      until: addMs(this.#deps.clock.now(), ms),
    });
  }

  /**
   * Reads the settings of a send again that waited long for its slot, ahead of all loads. It is not begun if they now are
   * for another host or ordering.
   */
  #refresh(actor: Actor, effect: Send, slot: Slot): void {
    const { clock, holdings, loader } = this.#deps;
    const { id } = holdings;
    const take = ({ found }: Loaded) => {
      if (id !== holdings.id) return;
      const subscription = found?.subscription;
      const isSame =
        subscription?.ordering === effect.subscription.ordering &&
        this.#hostOf(subscription.webhookUrl) === slot.host;
      if (isSame) return this.#start(actor, { ...effect, subscription, readAt: clock.now() }, slot);
      // Before the slot is free: what else waits for one is not begun with what was read earlier.
      this.#withhold(actor, effect.lane, subscription === undefined);
      this.#release(slot);
    };
    const isWanted = () => !actor.stopping;
    loader.load(settingsRequest(actor), take, { turn: "first", isWanted });
  }

  #report(record: AttemptRecord, outcome: PostOutcome): void {
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
  { readAt }: { readonly readAt: Date },
  actor: Pick<Actor, "stopping" | "subscription">,
  { isSafe, now }: { readonly isSafe: boolean; readonly now: Date },
): "stopped" | "unsafe" | "stale" | undefined {
  if (actor.stopping || actor.subscription === undefined) return "stopped";
  if (!isSafe) return "unsafe";
  return isFresh(readAt, now) ? undefined : "stale";
}

/**
 * Whether a request that began under this id may leave, asked right before its first byte: a look-up or a connection
 * can take longer than the lease (contract 7.4).
 */
export function mayLeave(
  id: string,
  { stopping }: Pick<Actor, "stopping">,
  holdings: Pick<Holdings, "id" | "safe">,
): boolean {
  return id === holdings.id && holdings.safe && !stopping;
}

/** Host and port as the `Host` header names them. */
function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
