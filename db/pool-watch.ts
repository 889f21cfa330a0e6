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
  readonly #slowMs: number;
  readonly #tell: TellSlow;

  constructor(given: { pool: string; size: number; slowMs: number; tell: TellSlow }) {
    this.pool = given.pool;
    this.size = given.size;
    this.#slowMs = given.slowMs;
    this.#tell = given.tell;
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

  /** Runs a statement; one that took long is counted, and told by its name. */
  async time<T>(statement: string | (() => string), run: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await run();
    } finally {
      const durationMs = performance.now() - startedMs;
      if (durationMs >= this.#slowMs) this.#slowed(statement, durationMs);
    }
  }

  #slowed(named: string | (() => string), durationMs: number): void {
    this.slow += 1;
    const statement = typeof named === "string" ? named : named();
    this.#tell({ pool: this.pool, statement, duration_ms: Math.round(durationMs) });
  }
}

/** Of a statement that the builder made, `statement` is the beginning of its text, which holds no values. */
type TellSlow = (slow: { pool: string; statement: string; duration_ms: number }) => void;

/** The pools of a process. */
export class PoolWatches {
  readonly pools: PoolWatch[] = [];
  readonly #slow: { readonly slowMs: number; readonly tell: TellSlow };

  /** `slowMs` 0: no statement counts as slow. */
  constructor(slowMs: number, tell: TellSlow) {
    this.#slow = { slowMs: slowMs === 0 ? Infinity : slowMs, tell };
  }

  open(pool: string, size: number): PoolWatch {
    const watch = new PoolWatch({ pool, size, ...this.#slow });
    this.pools.push(watch);
    return watch;
  }
}
