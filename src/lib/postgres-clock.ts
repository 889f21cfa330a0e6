import { fromMs, type Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/**
 * Largest difference in ms between the clocks of this machine and of PostgreSQL that is tolerated. If it is larger, the
 * process logs `clock.skewed` and deletes no old data.
 */
export const MAX_SKEW_MS = 5_000;
/**
 * Interval in ms at which PostgreSQL's time is read. A step of PostgreSQL's clock is noticed after at most this time.
 */
export const LOOK_MS = 5_000;
/** Instants are rounded to whole ms, so the offsets of two equal readings may differ by this much. */
const ROUNDING_MS = 1;

interface Source {
  readonly log: Log;
  /** Reads the current time of PostgreSQL (db/server.ts). */
  readonly ask: () => Promise<Date>;
}

/**
 * PostgreSQL's clock as one process sees it: the last time that PostgreSQL reported, advanced by a monotonic clock. So
 * all processes share one time, even if the clocks of their machines are wrong or are adjusted. The clock is never
 * ahead of PostgreSQL. Before the first reading it returns the machine's time.
 */
export class PostgresClock implements Clock {
  readonly #machine: Clock;
  readonly #source: Source | undefined;
  /** PostgreSQL's time minus the monotonic time, in milliseconds. */
  #offsetMs: number | undefined;
  #isSkewed = false;

  /**
   * Uses the monotonic time of `machine`, and its wall time for the skew. Without a source, readings come only from
   * calls of `heard`.
   */
  constructor(machine: Clock, source?: Source) {
    this.#machine = machine;
    this.#source = source;
  }

  /** Creates the clock after a first reading of PostgreSQL's time. Rejects if PostgreSQL does not answer. */
  static async open({ machine, ...source }: Source & { machine: Clock }): Promise<PostgresClock> {
    const clock = new PostgresClock(machine, source);
    await clock.look();
    return clock;
  }

  now(): Date {
    if (this.#offsetMs === undefined) return this.#machine.now();
    return fromMs(Math.floor(this.#offsetMs + this.monotonicMs()));
  }

  monotonicMs(): number {
    return this.#machine.monotonicMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#machine.sleep(ms, signal);
  }

  /** The machine's wall time, which may be wrong and may jump. */
  ownMs(): number {
    return this.#machine.now().getTime();
  }

  /** Time in ms by which this machine's clock is ahead of PostgreSQL's; negative if it is behind. */
  get skewMs(): number {
    return Math.round(this.ownMs() - this.now().getTime());
  }

  /** Whether the clocks of the machine and of PostgreSQL agree. Old data may be deleted only while they do. */
  get agrees(): boolean {
    return Math.abs(this.skewMs) <= MAX_SKEW_MS;
  }

  /** Uses a reading of PostgreSQL's time. `askedMs` is the monotonic time at which the query was sent. */
  heard(at: Date, askedMs: number): void {
    const least = at.getTime() - this.monotonicMs();
    const most = at.getTime() - askedMs;
    // A slow answer determines the time only within a wide range. If the previous offset lies in that range, it is
    // kept.
    const offset = this.#offsetMs;
    const fits = offset !== undefined && offset >= least - ROUNDING_MS && offset <= most;
    if (!fits) this.#offsetMs = least;
    this.#report();
  }

  async look(): Promise<void> {
    if (this.#source === undefined) throw new Error("This clock has no source.");
    const askedMs = this.monotonicMs();
    this.heard(await this.#source.ask(), askedMs);
  }

  /** Reads PostgreSQL's time periodically until the signal aborts. */
  async follow(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.sleep(LOOK_MS, stop);
      try {
        if (!stop.aborted) await this.look();
      } catch {
        // The clock continues from the last reading. The readiness check reports that PostgreSQL is unreachable.
      }
    }
  }

  #report(): void {
    if (this.agrees !== this.#isSkewed) return;
    this.#isSkewed = !this.agrees;
    const fields = { skew_ms: this.skewMs, limit_ms: MAX_SKEW_MS };
    this.#source?.log.warn(this.#isSkewed ? "clock.skewed" : "clock.agreed", fields);
  }
}
