import { fromMs, type Clock } from "./clock.ts";
import { errorFields, type Log } from "./log.ts";

/** A machine whose time differs by more from Postgres' says so, and removes nothing. */
export const MAX_SKEW_MS = 5_000;
/** How often Postgres is asked: so long a step of its clock may go unnoticed. */
export const LOOK_MS = 5_000;
/** Instants come in whole milliseconds, so two that are equal may seem this far apart. */
const ROUNDING_MS = 1;

interface Source {
  readonly log: Log;
  /** What time it is for Postgres (db/server-time.ts). */
  readonly ask: () => Promise<Date>;
}

/**
 * Postgres' clock, as a process knows it: the time that Postgres told, and on from there by a clock that never jumps. So
 * all processes have one time, whatever their machines believe, and a machine whose clock is set moves nothing. It is
 * never ahead of Postgres. Until Postgres was heard it shows the time of the machine.
 */
export class PostgresClock implements Clock {
  readonly #machine: Clock;
  readonly #source: Source | undefined;
  /** Its time, less the monotonic one. */
  #offsetMs: number | undefined;
  #isSkewed = false;

  /** The wall time of `machine` is compared, its durations are used. Without a source it only hears what it is told. */
  constructor(machine: Clock, source?: Source) {
    this.#machine = machine;
    this.#source = source;
  }

  /** Rejects if Postgres does not answer: without it there is no time. */
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

  /** The time that the machine itself believes in: it may be wrong, and jump. */
  ownMs(): number {
    return this.#machine.now().getTime();
  }

  /** What this machine's wall time is ahead of Postgres' at this moment; negative if it is behind. */
  get skewMs(): number {
    return Math.round(this.ownMs() - this.now().getTime());
  }

  /** Whether the machine and Postgres hold the same time to be true: only then may what is old be removed. */
  get agrees(): boolean {
    return Math.abs(this.skewMs) <= MAX_SKEW_MS;
  }

  /** Takes in what Postgres answered just now, as its time, to what was asked at `askedMs` of the monotonic clock. */
  heard(at: Date, askedMs: number): void {
    const least = at.getTime() - this.monotonicMs();
    const most = at.getTime() - askedMs;
    // A slow answer says little: what was known before stays while it can be right.
    const offset = this.#offsetMs;
    const fits = offset !== undefined && offset >= least - ROUNDING_MS && offset <= most;
    if (!fits) this.#offsetMs = least;
    this.#report();
  }

  async look(): Promise<void> {
    if (this.#source === undefined) throw new Error("This clock has nobody to ask.");
    const askedMs = this.monotonicMs();
    this.heard(await this.#source.ask(), askedMs);
  }

  /** Looks again and again until the signal aborts. While Postgres is away the time goes on as it was. */
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
