interface Slow {
  readonly slowMs: number;
  /** Of a statement that the builder made, `statement` is the beginning of its text, which holds no values. */
  readonly tell: (slow: { pool: string; statement: string; duration_ms: number }) => void;
}

/** What a log has of a statement of the builder. */
const TEXT_SHOWN = 120;

/** What one pool of connections is doing. */
export class PoolWatch {
  readonly pool: string;
  /** How many connections it has at the most. */
  readonly size: number;
  /** Transactions that wait for a connection now. */
  waiting = 0;
  /** How many have waited, and for how long in all. */
  waited = 0;
  waitedMs = 0;
  slow = 0;
  readonly #slow: Slow;

  constructor(pool: string, size: number, slow: Slow) {
    this.pool = pool;
    this.size = size;
    this.#slow = slow;
  }

  /** A transaction asks for a connection; the answer is called, once or more often, when it need not wait any more. */
  wait(): () => void {
    const startedMs = performance.now();
    let isWaiting = true;
    this.waiting += 1;
    return () => {
      if (!isWaiting) return;
      isWaiting = false;
      this.waiting -= 1;
      this.waited += 1;
      this.waitedMs += performance.now() - startedMs;
    };
  }

  /** Runs a statement, known by its name or its text; one that took long is counted and told. */
  async time<T>(statement: string, run: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await run();
    } finally {
      const durationMs = performance.now() - startedMs;
      if (durationMs >= this.#slow.slowMs) {
        this.slow += 1;
        const shown = statement.slice(0, TEXT_SHOWN);
        this.#slow.tell({
          pool: this.pool,
          statement: shown,
          duration_ms: Math.round(durationMs),
        });
      }
    }
  }
}

/** The pools of a process. */
export class PoolWatches {
  readonly pools: PoolWatch[] = [];
  readonly #slow: Slow;

  /** `slowMs` 0: no statement counts as slow. */
  constructor(slowMs: number, tell: Slow["tell"]) {
    this.#slow = { slowMs: slowMs === 0 ? Infinity : slowMs, tell };
  }

  open(pool: string, size: number): PoolWatch {
    const watch = new PoolWatch(pool, size, this.#slow);
    this.pools.push(watch);
    return watch;
  }
}
