import { fromMs, type Clock } from "./clock.ts";
import { errorFields, type Log } from "./log.ts";

/**
 * The largest difference in milliseconds between the clocks of this machine and of PostgreSQL that is ignored. Beyond
 * it the process logs `clock.skewed` and removes no old data.
 */
export const MAX_SKEW_MS = 5_000;
/**
 * The interval in milliseconds at which PostgreSQL's time is read. A step of PostgreSQL's clock goes unnoticed for at
 * most this long.
 */
export const LOOK_MS = 5_000;
/** Instants are whole milliseconds, so the offsets of two equal readings may differ by this much. */
const ROUNDING_MS = 1;

interface Source {
  readonly log: Log;
  /** Reads Postgres' current time (db/server.ts). */
  readonly ask: () => Promise<Date>;
}

/**
 * Postgres' clock as seen by one process: the last time that Postgres reported, advanced by a monotonic clock. All
 * processes share one time even if the clocks of their machines are wrong or set. The clock is never ahead of
 * Postgres. Before the first reading it shows the machine's time.
 */
export class PostgresClock implements Clock {
  readonly #machine: Clock;
  readonly #source: Source | undefined;
  /** PostgreSQL's time minus the monotonic time, in milliseconds. */
  #offsetMs: number | undefined;
  #isSkewed = false;

  /**
   * Uses the monotonic time of `machine` and compares its wall time. Without a source, the time comes only from
   * `heard`.
   */
  constructor(machine: Clock, source?: Source) {
    this.#machine = machine;
    this.#source = source;
  }

  /** Reads Postgres' time once before the clock is used. Rejects if Postgres does not answer. */
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

  /** The milliseconds by which this machine's clock is ahead of PostgreSQL; negative if it is behind. */
  get skewMs(): number {
    return Math.round(this.ownMs() - this.now().getTime());
  }

  /** Whether the machine and Postgres agree on the time. Old data may be removed only while they do. */
  get agrees(): boolean {
    return Math.abs(this.skewMs) <= MAX_SKEW_MS;
  }

  /** Takes a reading of Postgres' time. `askedMs` is the monotonic time at which the query was sent. */
  heard(at: Date, askedMs: number): void {
    const least = at.getTime() - this.monotonicMs();
    const most = at.getTime() - askedMs;
    // A slow answer fixes the time only within a wide range, so the previous offset stays if it lies in that range.
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

  /** Reads Postgres' time at intervals until the signal aborts. While Postgres is unreachable, the clock runs on. */
  async follow(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.sleep(LOOK_MS, stop);
      try {
        if (!stop.aborted) await this.look();
      } catch (error) {
        this.#source?.log.debug("clock.unread", errorFields(error));
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
