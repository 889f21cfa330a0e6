import type { Clock } from "../src/lib/clock.ts";
import type { Wake } from "../src/outbox/schedule.ts";
import type { ActorEvent } from "./actor/event.ts";
import type { InDoubtAttempts } from "./actor/in-doubt.ts";
import { Actor, FIRST_LOAD, MAX_QUEUED } from "./actor/state.ts";
import type { Limits } from "./delivery/limits.ts";

/**
 * The time in milliseconds that an actor may stay in memory while other subscriptions wait for their turn. After this
 * time its settings have to be read again anyway, so a drop and a new load cost nothing extra.
 */
const TURN_MS = 1_000;

/**
 * The most actors that may wait for their first load: as many as the loader reads at the same time. Further
 * subscriptions wait as ids only, because an actor behind thousands of loads would only take memory.
 */
const MAX_FIRST_LOADS = 256;

/**
 * A queue of subscriptions, each held as an id only. Shards take turns, and within a shard the order is first come,
 * first served, so a shard that was just taken over does not wait for the backlog of the others.
 */
export class Turns {
  readonly #shards = new Map<number, Set<string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Appends a subscription; a subscription that waits already keeps its position. */
  add({ subscriptionId, shard }: Wake): void {
    const members = this.#shards.getOrInsertComputed(shard, () => new Set());
    if (members.has(subscriptionId)) return;
    members.add(subscriptionId);
    this.#size += 1;
  }

  delete({ subscriptionId, shard }: Wake): void {
    const members = this.#shards.get(shard);
    if (!members?.delete(subscriptionId)) return;
    this.#size -= 1;
    if (members.size === 0) this.#shards.delete(shard);
  }

  /** Removes and returns the next subscription. */
  take(): Wake | undefined {
    const [turn] = this.#shards;
    if (turn === undefined) return undefined;
    const [shard, members] = turn;
    const [subscriptionId] = members;
    // Moves the shard to the end of the queue.
    this.#shards.delete(shard);
    this.#shards.set(shard, members);
    if (subscriptionId === undefined) return undefined;
    const wake = { subscriptionId, shard };
    this.delete(wake);
    return wake;
  }
}

/**
 * The actors in memory: one for each subscription that has entries to send or a due batch, up to a limit. The other
 * woken subscriptions wait for their turn, and those with a saturated host are parked. Both kinds are held as ids only.
 */
export class Actors {
  readonly #clock: Clock;
  readonly #limits: Limits;
  /** The bytes of entries in memory up to which actors read ahead of their sends. */
  readonly #readAheadLimit: number;
  readonly #byId = new Map<string, Actor>();
  readonly #sinceMs = new WeakMap<Actor, number>();
  /** The bytes of the entries of all actors. */
  #bytes = 0;
  /** The actors that have more entries in PostgreSQL than there is room for, in the order of their turns. */
  readonly #awaitingRoom = new Set<Actor>();
  /** The actors that wait for their first load. */
  readonly #fresh = new Set<Actor>();
  /** The subscriptions that a sweep found, or whose turn has ended. They come after those of `#waitingFirst`. */
  readonly #waiting = new Turns();
  /** The waiting subscriptions that a wake has reported, and not a sweep. Their turn comes first. */
  readonly #waitingFirst = new Turns();
  /** The parked subscriptions by their host group (see `Slots`), and the group of each. */
  readonly #parked = new Map<string, Turns>();
  readonly #parkedIn = new Map<string, string>();
  /**
   * The actors whose subscriptions wait for their turn again once the actors are dropped. If an actor has a host group
   * here, its subscription is parked in that group instead.
   */
  readonly #returning = new Map<Actor, string | undefined>();

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#readAheadLimit = Math.floor(limits.bytes / 3);
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The number of subscriptions that wait for their turn or are parked. */
  get waiting(): number {
    return this.#waitingFirst.size + this.#waiting.size + this.#parkedIn.size;
  }

  /** The number of entries that each actor may hold, so that all actors together stay within the limit. */
  get share(): number {
    const share = Math.floor(this.#limits.entries / Math.max(1, this.#byId.size));
    return Math.max(FIRST_LOAD, Math.min(MAX_QUEUED, share));
  }

  /** The bytes of the entries of all actors. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the bytes of the entries of all actors have reached their limit. */
  get areFull(): boolean {
    return this.#bytes >= this.#limits.bytes;
  }

  /** The bytes that may still be read ahead until the limit of read-ahead is reached; 0 beyond it. */
  get bytesToReadAhead(): number {
    return Math.max(0, this.#readAheadLimit - this.#bytes);
  }

  /** Sets the bytes of entries that an actor may hold and read ahead, given the bytes of the other actors. */
  allot(actor: Actor): void {
    const others = this.#bytes - actor.countedBytes;
    actor.mayHold = this.#limits.bytes - others;
    actor.mayReadAhead = this.#readAheadLimit - others;
  }

  /** Counts the bytes of an actor again after an actor event. */
  weigh(actor: Actor): void {
    const { countedBytes, bytes } = actor;
    this.#bytes += bytes - countedBytes;
    actor.countedBytes = bytes;
    if (actor.more && this.areFull) this.#awaitingRoom.add(actor);
  }

  /**
   * Removes and returns up to `count` actors that wait for room for the bytes of more entries; none while there is no
   * room.
   */
  takeForRoom(count: number): Actor[] {
    if (this.#awaitingRoom.size === 0 || this.areFull) return [];
    const taken = [...this.#awaitingRoom.values().take(count)];
    for (const actor of taken) this.#awaitingRoom.delete(actor);
    return taken;
  }

  /** Whether this actor is in memory: it was neither dropped nor discarded with a lost lease. */
  has(actor: Actor): boolean {
    return this.#byId.get(actor.id) === actor;
  }

  /**
   * Returns the actor of a woken subscription, or makes an actor for it. Returns undefined if the subscription has to
   * wait for its turn.
   */
  wake(
    wake: Wake,
    isSwept: boolean,
    inDoubt?: () => InDoubtAttempts | undefined,
  ): Actor | undefined {
    const { subscriptionId, shard } = wake;
    const known = this.#byId.get(subscriptionId);
    if (known !== undefined) return known;
    if (!this.#hasRoom) {
      (isSwept ? this.#waiting : this.#waitingFirst).add(wake);
      return undefined;
    }
    const actor = new Actor(subscriptionId, shard, inDoubt?.());
    this.#forget(wake);
    this.#byId.set(subscriptionId, actor);
    this.#fresh.add(actor);
    this.#sinceMs.set(actor, this.#clock.monotonicMs());
    return actor;
  }

  /** Notes that a load of the actor was answered, so that the actor no longer counts as waiting for its first load. */
  loaded(actor: Actor): void {
    this.#fresh.delete(actor);
  }

  /** Removes and returns the next waiting subscription, if there is room for an actor. */
  next(): Wake | undefined {
    if (!this.#hasRoom) return undefined;
    const next = this.#waitingFirst.take() ?? this.#waiting.take();
    if (next !== undefined) this.#forget(next);
    return next;
  }

  /** Returns the host group in which a subscription is parked; undefined if it is not parked. */
  parkedIn({ subscriptionId }: Wake): string | undefined {
    return this.#parkedIn.get(subscriptionId);
  }

  /** Whether any subscription is parked in a host group. */
  isParking(group: string): boolean {
    return this.#parked.has(group);
  }

  /** Removes and returns up to `count` subscriptions that are parked in a host group, in the order of their turns. */
  unpark(group: string, count: number): Wake[] {
    const taken: Wake[] = [];
    const members = this.#parked.get(group);
    for (let wake = members?.take(); wake !== undefined; wake = members?.take()) {
      this.#parkedIn.delete(wake.subscriptionId);
      if (taken.push(wake) >= count) break;
    }
    if (members?.size === 0) this.#parked.delete(group);
    return taken;
  }

  /** Whether the turn of an actor ends with this actor event, because other subscriptions wait for their turn. */
  endsTurn(actor: Actor, { kind }: ActorEvent): boolean {
    if (this.#waiting.size + this.#waitingFirst.size === 0 || actor.stopping) return false;
    // No turn ends while there are fewer actors than the limit: the other subscriptions then wait only for first loads,
    // which this actor does not delay, and a dropped actor would have to read its entries again.
    if (this.#byId.size < this.#limits.actors) return false;
    if (kind === "postponed") return true;
    const sinceMs = this.#sinceMs.get(actor) ?? 0;
    return kind === "answered" && this.#clock.monotonicMs() - sinceMs >= TURN_MS;
  }

  /** Makes the subscription wait for its turn again once its actor is dropped, or parks it if a host group is given. */
  returnLater(actor: Actor, group?: string): void {
    this.#returning.set(actor, group);
  }

  drop(actor: Actor): void {
    if (!this.has(actor)) return;
    this.#byId.delete(actor.id);
    this.#fresh.delete(actor);
    this.#awaitingRoom.delete(actor);
    this.#bytes -= actor.countedBytes;
    if (!this.#returning.has(actor)) return;
    const group = this.#returning.get(actor);
    this.#returning.delete(actor);
    const wake = { subscriptionId: actor.id, shard: actor.shard };
    if (group === undefined) this.#waiting.add(wake);
    else this.#park(wake, group);
  }

  all(): Actor[] {
    return [...this.#byId.values()];
  }

  get #hasRoom(): boolean {
    return this.#byId.size < this.#limits.actors && this.#fresh.size < MAX_FIRST_LOADS;
  }

  /** Parks a subscription; a subscription that is parked in this group already keeps its position. */
  #park(wake: Wake, group: string): void {
    const former = this.#parkedIn.get(wake.subscriptionId);
    if (former === group) return;
    if (former !== undefined) this.#parked.get(former)?.delete(wake);
    this.#parked.getOrInsertComputed(group, () => new Turns()).add(wake);
    this.#parkedIn.set(wake.subscriptionId, group);
  }

  #forget(wake: Wake): void {
    this.#waiting.delete(wake);
    this.#waitingFirst.delete(wake);
  }
}
