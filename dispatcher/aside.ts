import type { Wake } from "../src/outbox/schedule.ts";
import { Turns } from "./turns.ts";

/** Subscriptions that have something to send to a host for which too many wait already: their names, by crowd. */
export class Aside {
  readonly #crowds = new Map<string, Turns>();
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
    if (former !== undefined) this.#leave(wake, former);
    let members = this.#crowds.get(crowd);
    if (members === undefined) this.#crowds.set(crowd, (members = new Turns()));
    members.add(wake);
    this.#crowdOf.set(subscriptionId, crowd);
  }

  take(crowd: string, count: number): Wake[] {
    const taken: Wake[] = [];
    const members = this.#crowds.get(crowd);
    for (let wake = members?.take(); wake !== undefined; wake = members?.take()) {
      this.#leave(wake, crowd);
      if (taken.push(wake) >= count) break;
    }
    return taken;
  }

  clear(): void {
    this.#crowds.clear();
    this.#crowdOf.clear();
  }

  #leave(wake: Wake, crowd: string): void {
    const members = this.#crowds.get(crowd);
    members?.delete(wake);
    if (members?.size === 0) this.#crowds.delete(crowd);
    this.#crowdOf.delete(wake.subscriptionId);
  }
}
