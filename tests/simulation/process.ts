import { PostgresClock } from "../../src/lib/postgres-clock.ts";
import { EPOCH_MS, type World } from "./world.ts";

/**
 * A process. Nothing reaches it once it is dead. Messages that arrive while it stands still wait until it continues, in
 * any order. Requests that it has sent are not affected.
 */
export class Process {
  readonly name: string;
  readonly clock: PostgresClock;
  /** The id of its last lease. */
  dispatcherId = "";
  alive = true;
  /** The error of its wall clock. */
  skewMs: number;
  /** The time until which it could not renew its lease. */
  troubledMs = Number.NEGATIVE_INFINITY;
  /** The time until which it is cut off from PostgreSQL. */
  cutOffUntilMs = 0;
  #pausedUntilMs = 0;
  /** The total time of its suspensions, by which its monotonic clock is behind. */
  #suspendedMs = 0;
  /** The time of the monotonic clock during a suspension, which the end of the last task may still read. */
  #stoodStillMs = 0;
  #waiting: (() => void)[] = [];
  readonly #world: World;
  #lastUlidMs = 0;
  #ulids = 0;

  constructor(world: World, name: string, skewMs: number) {
    this.#world = world;
    this.name = name;
    this.skewMs = skewMs;
    this.clock = new PostgresClock({
      now: () => new Date(EPOCH_MS + Math.floor(world.nowMs + this.skewMs)),
      monotonicMs: () => Math.max(this.#monotonicMs, this.#stoodStillMs),
      sleep: (ms, signal) => this.#sleep(ms, signal),
    });
  }

  /** The time of the monotonic clock after the suspension. */
  get #monotonicMs(): number {
    return this.#world.nowMs - this.#suspendedMs;
  }

  /** The time of its wall clock. */
  get wallMs(): number {
    return this.clock.now().getTime();
  }

  get paused(): boolean {
    return this.#pausedUntilMs > this.#world.nowMs;
  }

  /** Returns an id that sorts by time, like a ULID. */
  newUlid(atMs: number): string {
    this.#lastUlidMs = Math.max(this.#lastUlidMs, atMs);
    return `${this.#lastUlidMs.toString(36)}-${this.name}-${String(this.#ulids++).padStart(6, "0")}`;
  }

  /** Runs a function in the process as soon as the process runs. */
  enter(run: () => void): void {
    if (!this.alive) return;
    if (this.paused || this.#waiting.length > 0) this.#waiting.push(run);
    else run();
  }

  /**
   * Makes the process stand still. In half of the cases its monotonic clock stops, too, like that of a suspended
   * machine.
   */
  pause(ms: number): void {
    if (!this.alive || this.paused) return;
    const { loop, random } = this.#world;
    const isSuspended = random.chance(0.5);
    const how = isSuspended ? "is suspended" : "stands still";
    this.#world.fault(`${this.name} ${how} for ${Math.round(ms)} ms`, ms);
    this.trouble(ms);
    if (isSuspended) {
      this.#stoodStillMs = this.#monotonicMs;
      this.#suspendedMs += ms;
    }
    this.#pausedUntilMs = loop.nowMs + ms;
    loop.after(ms, () => this.#goOn());
  }

  /** Notes that the process cannot renew its lease for this time. */
  trouble(ms = 0): void {
    this.troubledMs = Math.max(this.troubledMs, this.#world.nowMs + ms);
  }

  crash(why: string): void {
    if (!this.alive) return;
    this.#world.fault(`${this.name} dies: ${why}`);
    this.end();
  }

  end(): void {
    this.alive = false;
    this.#waiting = [];
  }

  /** Delivers all messages that arrived meanwhile, in any order. */
  #goOn(): void {
    if (!this.alive) return;
    this.#world.trace(this.name, "goes on");
    const { loop, random } = this.#world;
    const waiting = random.shuffled(this.#waiting);
    this.#waiting = [];
    for (const run of waiting) loop.after(0, () => this.enter(run));
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { loop, random } = this.#world;
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      // A timer of a busy process is late; the rounding may also make it early.
      const jitter = ms > 2 ? random.between(-0.9, 1.5) : random.next();
      const done = () => {
        signal?.removeEventListener("abort", done);
        cancel();
        resolve();
      };
      const { clock } = this;
      const endMs = clock.monotonicMs() + Math.max(0, ms) + jitter;
      let cancel = () => {};
      // Timers follow the monotonic clock, so a suspension delays them.
      const wake = () => {
        const restMs = endMs - this.#monotonicMs;
        if (restMs > 0.001) cancel = loop.after(restMs, wake);
        else this.enter(done);
      };
      cancel = loop.after(endMs - this.#monotonicMs, wake);
      signal?.addEventListener("abort", done);
    });
  }
}
