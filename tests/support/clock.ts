import { addMs, systemClock, type Clock } from "../../src/lib/clock.ts";

export interface FakeClock extends Clock {
  /** Jumps to an instant, and wakes the sleepers that are due by then. */
  set(at: Date): void;
  advance(ms: number): void;
  /** The number of `sleep` calls that have not ended. Tests wait for it before they advance the clock. */
  readonly sleepers: number;
}

/** A clock that runs at the right speed, but is set ahead by `aheadMs` (behind if negative). */
export function wrongClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => addMs(systemClock.now(), aheadMs) };
}

interface Sleeper {
  readonly wakesAtMs: number;
  wake(): void;
}

/**
 * Makes a clock that moves only by `set` and `advance`. It starts at the machine's time, because the library that signs
 * tokens takes their `iat` from the machine's clock.
 */
export function createFakeClock(start: Date = new Date()): FakeClock {
  let now = start;
  let monotonicMs = 0;
  let sleeping: Sleeper[] = [];
  const move = (ms: number, to: Date) => {
    now = to;
    // The wall clock may jump back, the monotonic clock must not.
    monotonicMs += Math.max(0, ms);
    const due = sleeping.filter((one) => one.wakesAtMs <= monotonicMs);
    sleeping = sleeping.filter((one) => !due.includes(one));
    for (const one of due.toSorted((a, b) => a.wakesAtMs - b.wakesAtMs)) one.wake();
  };
  return {
    now: () => now,
    monotonicMs: () => monotonicMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted || ms <= 0) return resolve();
        const sleeper = { wakesAtMs: monotonicMs + ms, wake: resolve };
        sleeping.push(sleeper);
        signal?.addEventListener("abort", () => {
          sleeping = sleeping.filter((one) => one !== sleeper);
          resolve();
        });
      }),
    set: (at) => move(at.getTime() - now.getTime(), at),
    advance: (ms) => move(ms, addMs(now, ms)),
    get sleepers() {
      return sleeping.length;
    },
  };
}
