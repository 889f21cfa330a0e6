/** Time limits in ms for the statements of a connection pool, by the purpose of the pool. */
export interface Limits {
  /** Maximum wait for a lock (`lock_timeout`). */
  readonly lockMs: number;
  /**
   * Maximum duration of a statement (`statement_timeout`). The server then cancels the statement and keeps the
   * connection open.
   */
  readonly statementMs: number;
  /** Maximum idle time inside a transaction. The server then ends the session, which releases its locks. */
  readonly idleMs: number;
  /**
   * Maximum wait for the server's response, after which the client closes the connection; also the maximum wait for a
   * free connection. The deadline is longer than `statementMs`, so that a working server cancels the statement first.
   */
  readonly deadlineMs: number;
}

export const LIMITS = {
  /** The pool for sign-in and all reads. */
  requests: { lockMs: 2_000, statementMs: 10_000, idleMs: 10_000, deadlineMs: 12_000 },
  /**
   * The pool for transactions that lock the sequence of a subscription. Its limits are short, because other writers
   * of the same partner wait for these transactions.
   */
  writerPool: { lockMs: 2_000, statementMs: 5_000, idleMs: 5_000, deadlineMs: 6_000 },
  readiness: { lockMs: 1_000, statementMs: 1_500, idleMs: 2_000, deadlineMs: 2_000 },
  dispatch: { lockMs: 2_000, statementMs: 10_000, idleMs: 10_000, deadlineMs: 12_000 },
  /** The pool for the leases of dispatchers. Its statements end before an unrenewed lease expires. */
  leases: { lockMs: 1_000, statementMs: 2_000, idleMs: 2_000, deadlineMs: 2_500 },
  /**
   * The pool for maintenance jobs. A chunk of a job may take long, because no request waits for it. It waits for a lock
   * only briefly, because requests could be waiting for locks that it already holds.
   */
  maintenance: { lockMs: 100, statementMs: 60_000, idleMs: 10_000, deadlineMs: 65_000 },
  /** The pool that builds the index of one day of attempts, which may take an hour. */
  indexing: { lockMs: 100, statementMs: 3_600_000, idleMs: 10_000, deadlineMs: 3_605_000 },
} as const satisfies Record<string, Limits>;
