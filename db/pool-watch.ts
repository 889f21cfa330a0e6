interface SlowStatement {
  readonly pool: string;
  /** The name of the statement or, for a query of the query builder, the beginning of its text without values. */
  readonly statement: string;
  readonly duration_ms: number;
}

interface SlowOptions {
  readonly slowMs: number;
  readonly report: (slow: SlowStatement) => void;
}

/** Duration in ms from which a statement is logged as slow. */
const SLOW_MS = 1_000;
/** Number of characters of a query's text that are logged. */
const TEXT_SHOWN = 120;

/** Counts the waits for a connection of one connection pool, and reports its slow statements. */
export class PoolWatch {
  readonly pool: string;
  /** Total time in ms for which transactions have waited for a connection of the pool. */
  waitedMs = 0;
  readonly #slow: SlowOptions;

  constructor(pool: string, slow: SlowOptions) {
    this.pool = pool;
    this.#slow = slow;
  }

  /**
   * Counts a transaction as waiting for a connection until the returned function is called. Further calls of that
   * function have no effect.
   */
  wait(): () => void {
    const startedMs = performance.now();
    let isWaiting = true;
    return () => {
      if (!isWaiting) return;
      isWaiting = false;
      this.waitedMs += performance.now() - startedMs;
    };
  }

  /** Runs a statement and measures its duration. A slow statement is reported by its name or text. */
  async time<T>(statement: string, run: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await run();
    } finally {
      const durationMs = performance.now() - startedMs;
      if (durationMs >= this.#slow.slowMs)
        this.#slow.report({
          pool: this.pool,
          statement: statement.slice(0, TEXT_SHOWN),
          duration_ms: Math.round(durationMs),
        });
    }
  }
}

/** The `PoolWatch` of each connection pool of the process. */
export class PoolWatches {
  readonly pools: PoolWatch[] = [];
  readonly #slow: SlowOptions;

  constructor(report: SlowOptions["report"], slowMs = SLOW_MS) {
    this.#slow = { slowMs, report };
  }

  open(pool: string): PoolWatch {
    const watch = new PoolWatch(pool, this.#slow);
    this.pools.push(watch);
    return watch;
  }
}
