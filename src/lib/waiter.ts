import type { Clock } from "./clock.ts";

/** A sleep that others can end: for loops that wait for a time or for work, whichever comes first. */
export class Waiter {
  #nudged = false;
  #sleeping = false;
  #wake = new AbortController();

  /** Ends the current wait, or the next one if nobody is waiting. */
  nudge(): void {
    this.#nudged = true;
    // Without a reason each abort makes an error with its stack, which nobody reads.
    if (this.#sleeping) this.#wake.abort("nudged");
  }

  /** Resolves after `ms`, or earlier by a nudge. */
  async wait(clock: Clock, ms: number): Promise<void> {
    if (!this.#nudged) {
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
      this.#sleeping = true;
      await clock.sleep(ms, this.#wake.signal);
      this.#sleeping = false;
    }
    this.#nudged = false;
  }

  /** Does some work again and again until `ended`, with a wait after each time. */
  async repeat(
    { clock, ended }: { readonly clock: Clock; readonly ended: AbortSignal },
    restMs: () => number,
    work: () => Promise<void>,
  ): Promise<void> {
    ended.addEventListener("abort", () => this.nudge());
    while (!ended.aborted) {
      await work();
      await this.wait(clock, restMs());
    }
  }
}
