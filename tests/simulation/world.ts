import { drainMicrotasks } from "bun:jsc";

import { Prng } from "./prng.ts";
import type { Settings } from "./settings.ts";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * Virtual time. It advances from one timer to the next, after every promise that can continue has continued. So a run
 * is a synchronous computation with the same result every time.
 */
class Loop {
  nowMs = 0;
  #order = 0;
  readonly #heap: Timer[] = [];

  /**
   * Sets a timer and returns a function that cancels it. Timers of one instant run in the order in which they were set.
   */
  after(ms: number, run: () => void): () => void {
    const timer: Timer = { atMs: this.nowMs + Math.max(0, ms), order: this.#order++, run };
    this.#push(timer);
    return () => {
      timer.run = undefined;
    };
  }

  delay(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  runWhile(goesOn: () => boolean): void {
    drainMicrotasks();
    while (goesOn()) {
      const timer = this.#pop();
      if (timer === undefined) return;
      if (timer.run === undefined) continue;
      this.nowMs = timer.atMs;
      timer.run();
      drainMicrotasks();
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(timer, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): Timer | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      let least = heap[child];
      const right = heap[child + 1];
      if (least === undefined) break;
      if (right !== undefined && isBefore(right, least)) {
        least = right;
        child += 1;
      }
      if (!isBefore(least, last)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** The wall-clock time at virtual time 0. */
export const EPOCH_MS = 1_780_315_200_000;
/**
 * The time within which every process notices a step of the clock of PostgreSQL. Until then it may decide by the old
 * time.
 */
export const STEP_EXCUSE_MS = 20_000;

export interface Violation {
  readonly invariant: string;
  readonly message: string;
  readonly atMs: number;
  /** The subscription of the violation, to filter the trace. */
  readonly subscriptionId: string | undefined;
}

export interface TraceLine {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

/** The state that all parts of a run share: time, randomness, the trace and the first violation. */
export class World {
  readonly loop = new Loop();
  readonly random: Prng;
  /** The generator of the workload, which does not change when another part draws more or less often. */
  readonly workload: Prng;
  readonly settings: Settings;
  /** The generator of the sequence headers. It is separate, so that runs without them are as before. */
  readonly numbering: Prng;
  /** The trace; undefined unless this run is traced. */
  readonly lines: TraceLine[] | undefined;
  violation: Violation | undefined;
  /** False in the last part of a run, when everything has to settle. */
  faulty = true;
  faults = 0;
  posts = 0;
  /** The time of the last event that excuses lateness. */
  troubleMs = Number.NEGATIVE_INFINITY;
  /** The present error of the clock of PostgreSQL, and the time of its last step. */
  stepMs = 0;
  steppedMs = Number.NEGATIVE_INFINITY;
  /** The time until which PostgreSQL was last down. */
  postgresDownMs = Number.NEGATIVE_INFINITY;
  /** The time at which a row was last locked by another client, or a record was rejected. */
  hinderedMs = Number.NEGATIVE_INFINITY;
  /** The time at which a process last started, ended or got another lease, after which shards move. */
  movedMs = 0;

  constructor(options: { settings: Settings; random: Prng; traced: boolean }) {
    this.settings = options.settings;
    this.random = options.random;
    this.workload = options.random.fork();
    this.numbering = new Prng(options.random.seed + 2 ** 32);
    this.lines = options.traced ? [] : undefined;
  }

  get nowMs(): number {
    return this.loop.nowMs;
  }

  /** The time of a correct wall clock. */
  get wallMs(): number {
    return EPOCH_MS + Math.floor(this.loop.nowMs);
  }

  /** The time of the clock of PostgreSQL. */
  get postgresMs(): number {
    return this.wallMs + this.stepMs;
  }

  get traced(): boolean {
    return this.lines !== undefined;
  }

  trace(who: string, what: string): void {
    this.lines?.push({ atMs: this.loop.nowMs, who, what });
  }

  /** Notes a fault. It excuses lateness until `forMs` from now. */
  fault(what: string, forMs = 0): void {
    this.faults += 1;
    this.troubleMs = Math.max(this.troubleMs, this.nowMs + forMs);
    this.trace("FAULT", what);
  }

  /** Steps the clock of PostgreSQL. After a step back, waits of faults last longer by it. */
  step(ms: number): void {
    const leftMs = Math.max(0, this.troubleMs - this.nowMs);
    this.fault(`the clock of Postgres steps by ${Math.round(ms)} ms`, ms < 0 ? leftMs - ms : 0);
    this.stepMs += Math.round(ms);
    this.steppedMs = this.nowMs;
  }

  /** Notes a violation. Only the first one counts, because later ones may be its consequences. */
  violate(invariant: string, message: string, subscriptionId?: string): void {
    if (this.violation !== undefined) return;
    this.violation = { invariant, message, atMs: this.nowMs, subscriptionId };
    this.trace("VIOLATION", `${invariant}: ${message}`);
  }
}
