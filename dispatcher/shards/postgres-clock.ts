import { fromMs, type Clock } from "../../src/lib/clock.ts";

/**
 * The clock of Postgres, as far as it is known here: by it retries and batches are due, for every process alike. It runs
 * on with the monotonic clock of the process and is set by what Postgres says of the time, never ahead of it; so a wrong
 * clock of the process moves nothing. Until Postgres was heard it shows the time of the process.
 */
export class PostgresClock implements Clock {
  readonly #own: Clock;
  /** Its time, less the monotonic one. */
  #offsetMs: number | undefined;

  constructor(own: Clock) {
    this.#own = own;
  }

  now(): Date {
    if (this.#offsetMs === undefined) return this.#own.now();
    return fromMs(Math.floor(this.#offsetMs + this.#own.monotonicMs()));
  }

  monotonicMs(): number {
    return this.#own.monotonicMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#own.sleep(ms, signal);
  }

  /** The time that the process itself believes in: it may be wrong, and jump. */
  ownMs(): number {
    return this.#own.now().getTime();
  }

  /** Takes in what Postgres answered just now, as its time, to what was asked at `askedMs` of the monotonic clock. */
  heard(at: Date, askedMs: number): void {
    const least = at.getTime() - this.#own.monotonicMs();
    const most = at.getTime() - askedMs;
    // A slow answer says little: what was known before stays while it can be right.
    const fits = this.#offsetMs !== undefined && this.#offsetMs >= least && this.#offsetMs <= most;
    if (!fits) this.#offsetMs = least;
  }
}
