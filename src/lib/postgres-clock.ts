import { fromMs, type Clock } from "./clock.ts";
import { errorFields, type Log } from "./log.ts";

/** A machine whose time differs by more from Postgres' says so, and does no upkeep. */
export const MAX_SKEW_MS = 5_000;
/** How often Postgres is asked: so long a step of its clock may go unnoticed. */
export const LOOK_MS = 5_000;
/** Instants come in whole milliseconds, so two that are equal may seem this far apart. */
const ROUNDING_MS = 1;

interface PostgresClockDeps {
  /** The clock of this machine: its wall time is compared, its durations are used. */
  readonly machine: Clock;
  readonly log: Log;
  /** What time it is for Postgres (db/server-time.ts). */
  readonly ask: () => Promise<Date>;
}

/**
 * Postgres' clock, as a process knows it: the time that Postgres told, and on from there by a clock that never jumps. So
 * all processes have one time, whatever their machines believe, and a machine whose clock is set moves nothing.
 */
export class PostgresClock implements Clock {
  readonly #deps: PostgresClockDeps;
  /** What Postgres' time is ahead of the machine's clock of durations. */
  #aheadMs: number | undefined;
  #isSkewed = false;

  private constructor(deps: PostgresClockDeps) {
    this.#deps = deps;
  }

  /** Rejects if Postgres does not answer: without it there is no time. */
  static async open(deps: PostgresClockDeps): Promise<PostgresClock> {
    const clock = new PostgresClock(deps);
    await clock.look();
    return clock;
  }

  now(): Date {
    return fromMs((this.#aheadMs ?? 0) + this.monotonicMs());
  }

  monotonicMs(): number {
    return this.#deps.machine.monotonicMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#deps.machine.sleep(ms, signal);
  }

  /** What this machine's wall time is ahead of Postgres' at this moment; negative if it is behind. */
  get skewMs(): number {
    return Math.round(this.#deps.machine.now().getTime() - this.now().getTime());
  }

  /** Whether the machine and Postgres hold the same time to be true: only then may what is old be removed. */
  get agrees(): boolean {
    return Math.abs(this.skewMs) <= MAX_SKEW_MS;
  }

  /** Asks once more. An answer took some time, so it says less than a quick one, and changes nothing that it allows. */
  async look(): Promise<void> {
    const askedMs = this.monotonicMs();
    const told = await this.#deps.ask();
    const doubtMs = (this.monotonicMs() - askedMs) / 2;
    const aheadMs = told.getTime() - (askedMs + doubtMs);
    const isConsistent =
      this.#aheadMs !== undefined && Math.abs(aheadMs - this.#aheadMs) <= doubtMs + ROUNDING_MS;
    if (!isConsistent) this.#aheadMs = aheadMs;
    this.#report();
  }

  /** Looks again and again until the signal aborts. While Postgres is away the time goes on as it was. */
  async follow(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.sleep(LOOK_MS, stop);
      try {
        if (!stop.aborted) await this.look();
      } catch (error) {
        this.#deps.log.debug("clock.unread", errorFields(error));
      }
    }
  }

  #report(): void {
    if (this.agrees !== this.#isSkewed) return;
    this.#isSkewed = !this.agrees;
    const fields = { skew_ms: this.skewMs, limit_ms: MAX_SKEW_MS };
    this.#deps.log.warn(this.#isSkewed ? "clock.skewed" : "clock.agreed", fields);
  }
}
