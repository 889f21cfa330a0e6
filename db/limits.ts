/** How long the statements of a pool may take, by what the pool is for. */
export interface Limits {
  /** Waiting for a lock. */
  readonly lockMs: number;
  /** A statement, on the server, which ends it and keeps the connection. */
  readonly statementMs: number;
  /** The server ends a session whose client leaves a transaction alone for so long, and its locks with it. */
  readonly idleMs: number;
  /**
   * A statement, on this side, which throws the connection away: nobody answers there. Waiting for a free connection
   * ends after the same time. It is longer than `statementMs`, so that a server that lives is the first to say so.
   */
  readonly deadlineMs: number;
}

export const LIMITS = {
  /** Sign-in, and whatever reads. */
  requests: { lockMs: 2_000, statementMs: 10_000, idleMs: 10_000, deadlineMs: 12_000 },
  /** Whatever takes the sequence of a subscription, for which all of its partner waits. */
  writerPool: { lockMs: 2_000, statementMs: 5_000, idleMs: 5_000, deadlineMs: 6_000 },
  readiness: { lockMs: 1_000, statementMs: 1_500, idleMs: 2_000, deadlineMs: 2_000 },
  dispatch: { lockMs: 2_000, statementMs: 10_000, idleMs: 10_000, deadlineMs: 12_000 },
  /** All of it ends before a lease that is not renewed does. */
  leases: { lockMs: 1_000, statementMs: 2_000, idleMs: 2_000, deadlineMs: 2_500 },
  /** A chunk of a maintenance job may take long, and hinders nobody by waiting. */
  maintenance: { lockMs: 2_000, statementMs: 60_000, idleMs: 10_000, deadlineMs: 65_000 },
  /** An index over a day of attempts. */
  indexing: { lockMs: 2_000, statementMs: 3_600_000, idleMs: 10_000, deadlineMs: 3_605_000 },
} as const satisfies Record<string, Limits>;

/** How soon the server notices that nobody is at the other end, so that a lost session holds no lock for long. */
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
 * What the planner is told. A statement is planned once per connection and its plan is kept, often from when the tables
 * were small: then it would go on reading all of a table that has grown since, or compile what only seems expensive. Without
 * bitmaps an index is read in its order, up to the limit of a statement, whatever the planner expects.
 */
export const PLANNER = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  jit: "off",
  random_page_cost: "1.1",
};

/** What a session of ours is started with. */
export function startSettings(limits: Limits): Readonly<Record<string, string>> {
  return { ...ofServer(limits), ...NETWORK };
}

/** The same behind a pooler, whose sessions are everybody's: a transaction begins with it, and it ends with that. */
export function beginSettings(limits: Limits): string {
  const settings = Object.entries({ ...ofServer(limits), ...PLANNER });
  return settings.map(([name, value]) => `; set local ${name} = ${value}`).join("");
}
