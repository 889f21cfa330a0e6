/** Limits of the statements of a pool, by the purpose of the pool. */
export interface Limits {
  /** The longest wait for a lock. */
  readonly lockMs: number;
  /** The longest statement. The server cancels it and keeps the connection. */
  readonly statementMs: number;
  /** The longest idle time inside a transaction. The server then ends the session, which releases its locks. */
  readonly idleMs: number;
  /**
   * The longest wait for an answer, after which the client closes the connection, and for a free connection. It is
   * longer than `statementMs`, so that a living server cancels the statement first.
   */
  readonly deadlineMs: number;
}

export const LIMITS = {
  /** Sign-in and all reads. */
  requests: { lockMs: 2_000, statementMs: 10_000, idleMs: 10_000, deadlineMs: 12_000 },
  /** Transactions that lock the sequence of a subscription; other writers of the same partner wait for them. */
  writerPool: { lockMs: 2_000, statementMs: 5_000, idleMs: 5_000, deadlineMs: 6_000 },
  readiness: { lockMs: 1_000, statementMs: 1_500, idleMs: 2_000, deadlineMs: 2_000 },
  dispatch: { lockMs: 2_000, statementMs: 10_000, idleMs: 10_000, deadlineMs: 12_000 },
  /** Statements of leases end before a lease that is not renewed expires. */
  leases: { lockMs: 1_000, statementMs: 2_000, idleMs: 2_000, deadlineMs: 2_500 },
  /** A chunk of a maintenance job may take long, because no request waits for it. */
  maintenance: { lockMs: 2_000, statementMs: 60_000, idleMs: 10_000, deadlineMs: 65_000 },
  /** Building the index of a day of attempts. */
  indexing: { lockMs: 2_000, statementMs: 3_600_000, idleMs: 10_000, deadlineMs: 3_605_000 },
} as const satisfies Record<string, Limits>;

/** Makes the server notice a lost client soon, so that its session does not hold locks for long. */
const NETWORK = {
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "10000",
  client_connection_check_interval: "2000",
};

function ofServer({ lockMs, statementMs, idleMs }: Limits): Readonly<Record<string, string>> {
  return {
    lock_timeout: String(lockMs),
    statement_timeout: String(statementMs),
    idle_in_transaction_session_timeout: String(idleMs),
  };
}

/**
 * Planner settings of each session. A prepared statement keeps its plan for the life of its connection, often from the
 * time when the tables were small. Without these settings it would still read a whole table that has grown since, or
 * compile a statement that only seems expensive. Without bitmap scans an index is read in its order and stops at the
 * limit of the statement, with any estimate of the planner.
 */
export const PLANNER = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  jit: "off",
  random_page_cost: "1.1",
};

/** Startup settings of a session. */
export function startSettings(limits: Limits): Readonly<Record<string, string>> {
  return { ...ofServer(limits), ...NETWORK };
}

/** Settings for a pooler, whose sessions are shared: they are local to a transaction and sent with its begin. */
export function beginSettings(limits: Limits): string {
  const settings = Object.entries({ ...ofServer(limits), ...PLANNER });
  return settings.map(([name, value]) => `; set local ${name} = ${value}`).join("");
}
