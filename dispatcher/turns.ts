import type { Wake } from "../src/outbox/schedule.ts";

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

  clear(): void {
    this.#shards.clear();
    this.#size = 0;
  }
}
