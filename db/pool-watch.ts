interface SlowOptions {
  readonly slowMs: number;
  /**
   * Logs a slow statement. For a query of the query builder, `statement` is the beginning of its text, which contains
   * no values.
   */
  readonly report: (slow: { pool: string; statement: string; duration_ms: number }) => void;
}

/** Number of characters of a query's text that are logged. */
const TEXT_SHOWN = 120;

/** Counts the waits for a connection and the slow statements of one connection pool. */
export class PoolWatch {
  readonly pool: string;
  /** Maximum number of connections in the pool. */
  readonly size: number;
  /** Transactions that are waiting for a connection. */
  waiting = 0;
  /** Number of transactions that have got a connection of the pool, and the total time in ms for which they waited. */
  waited = 0;
  waitedMs = 0;
  slow = 0;
  readonly #slow: SlowOptions;

  constructor(pool: string, size: number, slow: SlowOptions) {
    this.pool = pool;
    this.size = size;
    this.#slow = slow;
  }

  /**
   * Counts a transaction as waiting for a connection until the returned function is called. Further calls of that
   * function have no effect.
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

/** The `PoolWatch` of each connection pool of the process. */
export class PoolWatches {
  readonly pools: PoolWatch[] = [];
  readonly #slow: SlowOptions;

  /** `slowMs` is the duration in ms from which a statement counts as slow; 0 disables this. */
  constructor(slowMs: number, report: SlowOptions["report"]) {
    this.#slow = { slowMs: slowMs === 0 ? Infinity : slowMs, report };
  }

  open(pool: string, size: number): PoolWatch {
    const watch = new PoolWatch(pool, size, this.#slow);
    this.pools.push(watch);
    return watch;
  }
}
