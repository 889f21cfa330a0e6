import { createActor, type Actor } from "./actor/state.ts";
import type { Wake } from "../src/outbox/schedule.ts";
import type { Inheritance } from "./actor/inheritance.ts";

/** The actors in memory: one for each subscription that has something to do. */
export class Actors {
  readonly #byId = new Map<string, Actor>();

  get size(): number {
    return this.#byId.size;
  }

  /** The actor of a subscription; a new one, with what it inherits, if there is none. */
  of({ subscriptionId, shard }: Wake, inherited?: Inheritance): Actor {
    let actor = this.#byId.get(subscriptionId);
    if (actor === undefined) {
      actor = createActor(subscriptionId, shard, inherited);
      this.#byId.set(subscriptionId, actor);
    }
    return actor;
  }

  /** False once the actor was dropped: another one may stand in its place. */
  isCurrent(actor: Actor): boolean {
    return this.#byId.get(actor.id) === actor;
  }

  drop(actor: Actor): void {
    if (this.#byId.get(actor.id) === actor) this.#byId.delete(actor.id);
  }

  clear(): void {
    this.#byId.clear();
  }

  all(): Actor[] {
    return [...this.#byId.values()];
  }
}
