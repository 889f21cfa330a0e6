import type { Entry, Subscription } from "./event.ts";
import { laneName, MAX_UNRECORDED, SEND_AHEAD } from "./lane.ts";

/** The contract counts one entry under way and 16 uncommitted (7.4); a lane of ours has one fewer at a time. */
const PER_LANE = SEND_AHEAD + 1;
/** A load of so many entries has all of a lane that may have been sent, even where the head before them waits. */
export const INHERITED = PER_LANE + 1;
/**
 * The most lanes of one subscription that are marked. A process has attempts without a record in MAX_UNRECORDED lanes at
 * the most, but any of them may stand behind lanes that wait for a retry or were never sent from.
 */
const MAX_LANES = 32 * MAX_UNRECORDED;

/** How many entries of a lane were marked, and which was looked at last. */
interface SeenLane {
  marked: number;
  last: number;
}

/**
 * What an actor knows of a subscription whose shard a dead process held: which attempts may have been made by it, so that
 * their records say so. These are the first entries of each lane that were due at the takeover and there at the first
 * load, and nothing else.
 */
export class Inheritance {
  /** When the shard was taken over. */
  readonly at: Date;
  /** What the lanes were at the first load, and are here whatever becomes of the setting; undefined until then. */
  ordering: Subscription["ordering"] | undefined;
  /** The last sequence that there was at the first load; undefined until then. */
  lastSequence: number | undefined;
  /** By name, the lanes that a load showed; undefined before the first one, and once every lane was seen. */
  lanes: Map<string, SeenLane> | undefined;
  /** The sequences of the entries that may have been sent, until their attempt is recorded. */
  readonly marked = new Set<number>();
  /** Every lane was seen. */
  isComplete = false;

  constructor(at: Date) {
    this.at = at;
  }
}

/** Looks at an entry that a load has shown; those of a lane come in their order. */
export function inherit(inheritance: Inheritance, entry: Entry): void {
  const { at, ordering, lastSequence, marked, isComplete } = inheritance;
  if (isComplete || ordering === undefined || entry.sequence > (lastSequence ?? 0)) return;
  const lanes = (inheritance.lanes ??= new Map<string, SeenLane>());
  const lane = laneName(ordering, entry);
  let seen = lanes.get(lane);
  if (seen === undefined) {
    if (lanes.size >= MAX_LANES) return;
    lanes.set(lane, (seen = { marked: 0, last: 0 }));
  }
  if (entry.sequence <= seen.last || seen.marked >= PER_LANE) return;
  seen.last = entry.sequence;
  // It was not under way, but what stands behind it may have been: the wait may be younger than the takeover, by an
  // attempt of a process that handed the shard on or died.
  if (entry.dueAt !== null && entry.dueAt > at) return;
  seen.marked += 1;
  marked.add(entry.sequence);
}

/** Every lane was seen: what is known of them is needed no more. */
export function complete(inheritance: Inheritance): void {
  inheritance.isComplete = true;
  inheritance.lanes = undefined;
}

/** Nothing is left to be repeated: what comes from now on was recorded after the takeover. */
export function resolve(inheritance: Inheritance): void {
  complete(inheritance);
  inheritance.marked.clear();
}

/** Whether nothing is left to be repeated. */
export function isResolved({ isComplete, marked }: Inheritance): boolean {
  return isComplete && marked.size === 0;
}

interface SubscriptionKey {
  readonly subscriptionId: string;
  readonly shard: number;
}

interface Orphan {
  readonly at: Date;
  /** What is woken before the first sweep was done was there at the takeover; later it is not, or known. */
  swept: boolean;
  /** Of one that has had no actor yet nothing is known but its name: there may be as many as wait for their turn. */
  readonly bySubscription: Map<string, Inheritance | undefined>;
}

interface DroppedActor {
  readonly id: string;
  readonly shard: number;
  readonly inheritance: Inheritance | undefined;
  readonly lanes: ReadonlyMap<string, unknown>;
  readonly subscription: Subscription | undefined;
  readonly stopping: boolean;
}

/** What was taken over from dead processes, by shard: it outlives the actors, which come and go while their heads wait. */
export class Inheritances {
  readonly #orphans = new Map<number, Orphan>();

  /** These shards were taken over at that instant, the orphaned ones from dead processes. */
  begin(shards: readonly number[], orphaned: readonly number[], at: Date): void {
    for (const shard of shards) this.#orphans.delete(shard);
    for (const shard of orphaned)
      this.#orphans.set(shard, { at, swept: false, bySubscription: new Map() });
  }

  /** A sweep has woken everything in these shards that there is something to do for. */
  swept(shards: readonly number[]): void {
    for (const shard of shards) {
      const orphan = this.#orphans.get(shard);
      if (orphan !== undefined) orphan.swept = true;
      this.#prune(shard);
    }
  }

  /** Notes that this subscription inherits something, if it does. */
  note({ subscriptionId, shard }: SubscriptionKey): void {
    const orphan = this.#orphans.get(shard);
    if (orphan === undefined || orphan.swept || orphan.bySubscription.has(subscriptionId)) return;
    orphan.bySubscription.set(subscriptionId, undefined);
  }

  /** What the actor of this subscription inherits, if that was noted. */
  of({ subscriptionId, shard }: SubscriptionKey): Inheritance | undefined {
    const orphan = this.#orphans.get(shard);
    if (!orphan?.bySubscription.has(subscriptionId)) return undefined;
    let own = orphan.bySubscription.get(subscriptionId);
    if (own === undefined)
      orphan.bySubscription.set(subscriptionId, (own = new Inheritance(orphan.at)));
    return own;
  }

  /**
   * An actor is dropped: what it has left nothing of is done. Until the sweep this is kept as done, so that an event
   * that was recorded after the takeover and wakes the subscription meanwhile is not told as a possible repeat.
   */
  dropped({ id, shard, inheritance, lanes, subscription, stopping }: DroppedActor): void {
    if (inheritance === undefined) return;
    const isDone = lanes.size === 0 && subscription !== undefined && !stopping;
    if (!isDone && !isResolved(inheritance)) return;
    resolve(inheritance);
    const orphan = this.#orphans.get(shard);
    if (orphan?.swept !== true) return;
    orphan.bySubscription.delete(id);
    if (orphan.bySubscription.size === 0) this.#orphans.delete(shard);
  }

  /** Whether first entries of this shard may still have to be repeated. */
  isOpen(shard: number): boolean {
    this.#prune(shard);
    return this.#orphans.has(shard);
  }

  #prune(shard: number): void {
    const orphan = this.#orphans.get(shard);
    if (!orphan?.swept) return;
    for (const [id, one] of orphan.bySubscription)
      if (one !== undefined && isResolved(one)) orphan.bySubscription.delete(id);
    if (orphan.bySubscription.size === 0) this.#orphans.delete(shard);
  }
}
