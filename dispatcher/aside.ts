import type { Wake } from "../src/outbox/schedule.ts";

/** Subscriptions that have something to send to a host for which too many wait already: their names, by crowd. */
export class Aside {
  /** In each crowd in the order in which they came. */
  readonly #crowds = new Map<string, Map<string, Wake>>();
  readonly #crowdOf = new Map<string, string>();

  get size(): number {
    return this.#crowdOf.size;
  }

  crowdOf(subscriptionId: string): string | undefined {
    return this.#crowdOf.get(subscriptionId);
  }

  /** One that stands in the crowd already keeps its place. */
  put(wake: Wake, crowd: string): void {
    const { subscriptionId } = wake;
    const former = this.#crowdOf.get(subscriptionId);
    if (former === crowd) return;
    if (former !== undefined) this.#leave(subscriptionId, former);
    let members = this.#crowds.get(crowd);
    if (members === undefined) this.#crowds.set(crowd, (members = new Map()));
    members.set(subscriptionId, wake);
    this.#crowdOf.set(subscriptionId, crowd);
  }

  take(crowd: string, count: number): Wake[] {
    const taken = [...(this.#crowds.get(crowd)?.values().take(count) ?? [])];
    for (const { subscriptionId } of taken) this.#leave(subscriptionId, crowd);
    return taken;
  }

  clear(): void {
    this.#crowds.clear();
    this.#crowdOf.clear();
  }

  #leave(subscriptionId: string, crowd: string): void {
    const members = this.#crowds.get(crowd);
    members?.delete(subscriptionId);
    if (members?.size === 0) this.#crowds.delete(crowd);
    this.#crowdOf.delete(subscriptionId);
  }
}
