import { addMs, systemClock, type Clock } from "../../src/lib/clock.ts";

export interface FakeClock extends Clock {
  /** Jumps to an instant; who sleeps until then or earlier wakes. */
  set(at: Date): void;
  advance(ms: number): void;
  /** How many sleep at the moment. */
  readonly sleepers: number;
}

/** The clock of a machine that is set wrong by so much, and goes right otherwise. */
export function wrongClock(aheadMs: number): Clock {
  return { ...systemClock, now: () => addMs(systemClock.now(), aheadMs) };
}

interface Sleeper {
  readonly wakesAtMs: number;
  wake(): void;
}

/**
 * A clock that moves only when told to. It starts at the machine's time, because the library that signs tokens stamps
 * their `iat` from that.
 */
export function createFakeClock(start: Date = new Date()): FakeClock {
  let now = start;
  let monotonicMs = 0;
  let sleeping: Sleeper[] = [];
  const move = (ms: number, to: Date) => {
    now = to;
    // Wall time may jump back; durations do not.
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
