import type { Wake } from "../src/outbox/schedule.ts";
import { Inheritance, isResolved, resolve } from "./actor/inheritance.ts";
import type { Actor } from "./actor/state.ts";

interface Orphan {
  readonly at: Date;
  /** What is woken before the first sweep was done was there at the takeover; later it is not, or known. */
  swept: boolean;
  /** Of one that has had no actor yet nothing is known but its name: there may be as many as wait for their turn. */
  readonly bySubscription: Map<string, Inheritance | undefined>;
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
  note({ subscriptionId, shard }: Wake): void {
    const orphan = this.#orphans.get(shard);
    if (orphan === undefined || orphan.swept || orphan.bySubscription.has(subscriptionId)) return;
    orphan.bySubscription.set(subscriptionId, undefined);
  }

  /** What the actor of this subscription inherits, if that was noted. */
  of({ subscriptionId, shard }: Wake): Inheritance | undefined {
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
  dropped({ id, shard, inheritance, lanes, subscription, stopping }: Actor): void {
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
