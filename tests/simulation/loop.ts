import { drainMicrotasks } from "bun:jsc";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * Virtual time. It moves only from one timer to the next, and only after every promise that could go on has gone on.
 * So a run is a plain synchronous computation, and the same one every time.
 */
export class Loop {
  nowMs = 0;
  #order = 0;
  readonly #heap: Timer[] = [];

  /** Sets a timer; what is answered calls it off. Timers of one instant run in the order in which they were set. */
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
