import type { Clock } from "../src/lib/clock.ts";
import type { Wake } from "../src/outbox/schedule.ts";
import type { ActorEvent } from "./actor/event.ts";
import type { Inheritance } from "./actor/in-doubt.ts";
import { Actor, FIRST_LOAD, MAX_QUEUED } from "./actor/state.ts";
import type { Limits } from "./delivery/limits.ts";

/**
 * How long an actor may stay while others wait for their turn. Its settings would have to be read again by then anyway,
 * so that going away and coming back costs no more.
 */
const TURN_MS = 1_000;

/**
 * So many actors may wait for their first load: as many as the loader reads at once. Whoever comes next waits by name,
 * and not behind the loads of thousands.
 */
const MAX_FRESH = 256;

/**
 * Subscriptions that wait, known by name alone. Shards take turns, and within a shard it is first come, first served: so
 * what was just taken over from a dead process does not wait for the backlog of the others.
 */
export class Turns {
  readonly #shards = new Map<number, Set<string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** One that waits already keeps its place. */
  add({ subscriptionId, shard }: Wake): void {
    let members = this.#shards.get(shard);
    if (members === undefined) this.#shards.set(shard, (members = new Set()));
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

  /** The one whose turn it is, which waits no longer. */
  take(): Wake | undefined {
    const [turn] = this.#shards;
    if (turn === undefined) return undefined;
    const [shard, members] = turn;
    const [subscriptionId] = members;
    // The shard goes to the end of the line.
    this.#shards.delete(shard);
    this.#shards.set(shard, members);
    if (subscriptionId === undefined) return undefined;
    const wake = { subscriptionId, shard };
    this.delete(wake);
    return wake;
  }
}

/**
 * The actors in memory: one for each subscription that has something to do, up to a bound. The other subscriptions that
 * were woken wait for their turn, and those whose host is crowded stand aside; of both it knows the name alone.
 */
export class Actors {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #byId = new Map<string, Actor>();
  readonly #sinceMs = new WeakMap<Actor, number>();
  /** Those whose first load has not come. */
  readonly #fresh = new Set<Actor>();
  readonly #waiting = new Turns();
  /** Those that wait because something happened, not because a sweep found them: they go first. */
  readonly #waitingFirst = new Turns();
  /** Those that stand aside, by the crowd that is too many for its host, and in which crowd each stands. */
  readonly #crowds = new Map<string, Turns>();
  readonly #crowdOf = new Map<string, string>();
  /** Those that have to come again when what they have under way has ended, and in which crowd they then stand. */
  readonly #leaving = new Map<Actor, string | undefined>();

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** How many subscriptions are known by name alone. */
  get waiting(): number {
    return this.#waitingFirst.size + this.#waiting.size + this.#crowdOf.size;
  }

  /** How many entries each actor may hold, so that all together are within the bound. */
  get share(): number {
    const share = Math.floor(this.#limits.entries / Math.max(1, this.#byId.size));
    return Math.max(FIRST_LOAD, Math.min(MAX_QUEUED, share));
  }

  /** The actor of a woken subscription; a new one, with what it inherits, if there is none; undefined while it has to wait for its turn. */
  wake(wake: Wake, isSwept: boolean, inherited?: () => Inheritance | undefined): Actor | undefined {
    const { subscriptionId, shard } = wake;
    const known = this.#byId.get(subscriptionId);
    if (known !== undefined) return known;
    if (!this.#hasRoom) {
      (isSwept ? this.#waiting : this.#waitingFirst).add(wake);
      return undefined;
    }
    const actor = new Actor(subscriptionId, shard, inherited?.());
    this.#forget(wake);
    this.#byId.set(subscriptionId, actor);
    this.#fresh.add(actor);
    this.#sinceMs.set(actor, this.#clock.monotonicMs());
    return actor;
  }

  /** The first load of an actor, or a later one, has come. */
  loaded(actor: Actor): void {
    this.#fresh.delete(actor);
  }

  /** The subscription whose turn it is, if there is room for one. */
  next(): Wake | undefined {
    if (!this.#hasRoom) return undefined;
    const next = this.#waitingFirst.take() ?? this.#waiting.take();
    if (next !== undefined) this.#forget(next);
    return next;
  }

  /** The crowd in which a subscription stands aside. */
  crowdOf({ subscriptionId }: Wake): string | undefined {
    return this.#crowdOf.get(subscriptionId);
  }

  /** Takes so many out of a crowd, those first that have stood there the longest. */
  takeFrom(crowd: string, count: number): Wake[] {
    const taken: Wake[] = [];
    const members = this.#crowds.get(crowd);
    for (let wake = members?.take(); wake !== undefined; wake = members?.take()) {
      this.#crowdOf.delete(wake.subscriptionId);
      if (taken.push(wake) >= count) break;
    }
    if (members?.size === 0) this.#crowds.delete(crowd);
    return taken;
  }

  /** Whether an actor's turn ends with this event, because others wait for theirs. */
  endsTurn(actor: Actor, { kind }: ActorEvent): boolean {
    if (this.#waiting.size + this.#waitingFirst.size === 0 || actor.stopping) return false;
    // There is room for more actors: the others wait only for their loads, which this one does not delay. If it left, what
    // it has read would be read again.
    if (this.#byId.size < this.#limits.actors) return false;
    if (kind === "postponed") return true;
    const sinceMs = this.#sinceMs.get(actor) ?? 0;
    return kind === "answered" && this.#clock.monotonicMs() - sinceMs >= TURN_MS;
  }

  /** Has a subscription come again after its actor was dropped: in a crowd, or in turn. */
  comeAgain(actor: Actor, crowd?: string): void {
    this.#leaving.set(actor, crowd);
  }

  drop(actor: Actor): void {
    if (this.#byId.get(actor.id) !== actor) return;
    this.#byId.delete(actor.id);
    this.#fresh.delete(actor);
    if (!this.#leaving.has(actor)) return;
    const crowd = this.#leaving.get(actor);
    this.#leaving.delete(actor);
    const wake = { subscriptionId: actor.id, shard: actor.shard };
    if (crowd === undefined) this.#waiting.add(wake);
    else this.#putAside(wake, crowd);
  }

  all(): Actor[] {
    return [...this.#byId.values()];
  }

  get #hasRoom(): boolean {
    return this.#byId.size < this.#limits.actors && this.#fresh.size < MAX_FRESH;
  }

  /** One that stands in the crowd already keeps its place. */
  #putAside(wake: Wake, crowd: string): void {
    const former = this.#crowdOf.get(wake.subscriptionId);
    if (former === crowd) return;
    if (former !== undefined) this.#crowds.get(former)?.delete(wake);
    const members = this.#crowds.get(crowd) ?? new Turns();
    members.add(wake);
    this.#crowds.set(crowd, members);
    this.#crowdOf.set(wake.subscriptionId, crowd);
  }

  #forget(wake: Wake): void {
    this.#waiting.delete(wake);
    this.#waitingFirst.delete(wake);
  }
}
