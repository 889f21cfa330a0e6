import { PostgresClock } from "../../src/lib/postgres-clock.ts";
import { EPOCH_MS, type World } from "./world.ts";

/**
 * A process: nothing reaches it once it is dead, and what reaches it while it stands still waits until it goes on,
 * in any order. What it has sent before is out of its hands.
 */
export class Process {
  readonly name: string;
  readonly clock: PostgresClock;
  /** The id of its last lease. */
  dispatcherId = "";
  alive = true;
  /** How far its wall clock is ahead of the right one. */
  skewMs: number;
  /** Until when it was last kept from renewing its lease. */
  troubledMs = Number.NEGATIVE_INFINITY;
  /** Nothing passes between it and Postgres until then. */
  cutOffUntilMs = 0;
  #pausedUntilMs = 0;
  /** How long it was suspended in all: so far its monotonic clock is behind. */
  #suspendedMs = 0;
  /** What that clock shows for as long as it is suspended. What the last task has left to do may still look at it then. */
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

  /** Once it goes on. */
  get #monotonicMs(): number {
    return this.#world.nowMs - this.#suspendedMs;
  }

  /** The time that it goes by. */
  get wallMs(): number {
    return this.clock.now().getTime();
  }

  get paused(): boolean {
    return this.#pausedUntilMs > this.#world.nowMs;
  }

  /** Ids that sort by time, as ULIDs do. */
  newUlid(atMs: number): string {
    this.#lastUlidMs = Math.max(this.#lastUlidMs, atMs);
    return `${this.#lastUlidMs.toString(36)}-${this.name}-${String(this.#ulids++).padStart(6, "0")}`;
  }

  /** Runs something inside of the process, as soon as it runs at all. */
  enter(run: () => void): void {
    if (!this.alive) return;
    if (this.paused || this.#waiting.length > 0) this.#waiting.push(run);
    else run();
  }

  /** Stands still; half of the times its monotonic clock does, too, as when the machine is suspended. */
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

  /** Something keeps it from renewing its lease for so long. */
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

  /** Lets in at once everything that came meanwhile, in any order. */
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
      // A timer of a busy process is late; another may be early by the rounding.
      const jitter = ms > 2 ? random.between(-0.9, 1.5) : random.next();
      const done = () => {
        signal?.removeEventListener("abort", done);
        cancel();
        resolve();
      };
      const { clock } = this;
      const endMs = clock.monotonicMs() + Math.max(0, ms) + jitter;
      let cancel = () => {};
      // A timer goes by the monotonic clock, so it rings later by as long as the process was suspended.
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
