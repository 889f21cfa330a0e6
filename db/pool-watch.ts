interface Slow {
  readonly slowMs: number;
  /**
   * Logs a slow statement. For a statement of the query builder, `statement` is the beginning of its text, which
   * contains no values.
   */
  readonly report: (slow: { pool: string; statement: string; duration_ms: number }) => void;
}

/** The number of characters that are logged of a statement that Drizzle's query builder has made. */
const TEXT_SHOWN = 120;

/** Counts the waits for a connection and the slow statements of one connection pool. */
export class PoolWatch {
  readonly pool: string;
  /** The highest number of connections of the pool. */
  readonly size: number;
  /** Transactions that are waiting for a connection. */
  waiting = 0;
  /**
   * The number of transactions that have got a connection of the pool, and the total time in ms that they waited for
   * it.
   */
  waited = 0;
  waitedMs = 0;
  slow = 0;
  readonly #slow: Slow;

  constructor(pool: string, size: number, slow: Slow) {
    this.pool = pool;
    this.size = size;
    this.#slow = slow;
  }

  /**
   * Counts a transaction as waiting for a connection until the returned function is called, which may happen
   * repeatedly.
   */
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

  /** Runs a statement and measures its duration. A slow statement is counted, and logged by its name or text. */
  async time<T>(statement: string, run: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await run();
    } finally {
      const durationMs = performance.now() - startedMs;
      if (durationMs >= this.#slow.slowMs) {
        this.slow += 1;
        this.#slow.report({
          pool: this.pool,
          statement: statement.slice(0, TEXT_SHOWN),
          duration_ms: Math.round(durationMs),
        });
      }
    }
  }
}

/** The watches of all connection pools of a process. */
export class PoolWatches {
  readonly pools: PoolWatch[] = [];
  readonly #slow: Slow;

  /** `slowMs` is the duration from which a statement counts as slow; with 0, no statement counts as slow. */
  constructor(slowMs: number, report: Slow["report"]) {
    this.#slow = { slowMs: slowMs === 0 ? Infinity : slowMs, report };
  }

  open(pool: string, size: number): PoolWatch {
    const watch = new PoolWatch(pool, size, this.#slow);
    this.pools.push(watch);
    return watch;
  }
}
