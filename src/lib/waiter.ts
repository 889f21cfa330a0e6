import type { Clock } from "./clock.ts";

/** A sleep that others can end: for loops that wait for a time or for work, whichever comes first. */
export class Waiter {
  #nudged = false;
  #sleeping: AbortController | undefined;

  /** Ends the current wait, or the next one if nobody is waiting. */
  nudge(): void {
    this.#nudged = true;
    this.#sleeping?.abort();
  }

  /** Resolves after `ms`, or earlier by a nudge. */
  async wait(clock: Clock, ms: number): Promise<void> {
    if (!this.#nudged) {
      this.#sleeping = new AbortController();
      await clock.sleep(ms, this.#sleeping.signal);
      this.#sleeping = undefined;
    }
    this.#nudged = false;
  }
}
