import { sql as fragment } from "drizzle-orm";
import postgres from "postgres";

import { isDeadlock, isStatementOutdated } from "./errors.ts";
import { beginSettings, type Limits, PLANNER, startSettings } from "./limits.ts";
import { PoolWatches } from "./pool-watch.ts";
import { type OnRows, type Raw, runOver, type Session, sessionOver } from "./session.ts";
import { statement } from "./statement.ts";

/** A pool of connections. */
export interface Db extends Session {
  /**
   * Runs `work` in one transaction: all of it is committed, or nothing. Chosen as the victim of a deadlock it runs
   * again, so `work` does nothing but statements.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
  close(): Promise<void>;
}

interface TransactionOptions {
  /**
   * Its first statements only read, or take locks. They are sent behind the begin without waiting for the answer to it:
   * where it failed alone they would run outside of the transaction. What is sent after any answer is inside.
   */
  readonly readsFirst?: boolean;
}

/** One open transaction. */
export interface Tx extends Session {
  readonly inTransaction: true;
  /**
   * Runs the last statement of the transaction. The commit is sent right behind it, so that one answer is waited for,
   * not two; a statement that fails undoes all of it as ever. What is run afterwards is refused.
   */
  readonly runLast: Session["run"];
}

export interface RawDb extends Db, Raw {
  transaction<T>(work: (tx: RawTx) => Promise<T>, options?: TransactionOptions): Promise<T>;
}
export interface RawTx extends Tx, Raw {}

/** For statements that need no transaction of their own and run just as well inside one. */
export type DbOrTx = Session;

/** For each of the hosts, where nothing says less. */
const CONNECT_TIMEOUT_S = 5;
const KEEP_ALIVE_S = 10;
/** Between two tries to connect; the driver's own waits grow to 20 s, so that a database that is back goes unnoticed. */
const RECONNECT_MAX_S = 1;
const MAX_PIPELINE = 16;

interface ConnectOptions {
  readonly max: number;
  readonly name: string;
  /** Absent where nobody waits: in scripts and tests. */
  readonly limits?: Limits;
  /** A connection that is not used for so long is closed; kept if absent. */
  readonly idleS?: number;
  /** Of the server, for each of the connections; not behind a pooler, whose sessions are not ours. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Of a pool that runs transactions only: their statements are sent without waiting for the one before. */
  readonly isPipelined?: boolean;
  /** Where the process tells what its pools do. */
  readonly watches?: PoolWatches;
  /** Sees the answer of each declared statement before its caller does. */
  readonly onRows?: OnRows;
  /** Sees each statement before it is sent. */
  readonly onStatement?: (text: string, parameters: readonly unknown[]) => void;
}

/** The builder writes the text of JSON itself; read, it is whatever the column's type says. */
const jsonAsText = (oid: number): postgres.PostgresType<string> => ({
  to: oid,
  from: [oid],
  parse: JSON.parse,
  serialize: (text) => text,
});

/** `0001-01-01 00:00:00.123+00`: the engine takes the years below 100 for those of our time, unless it is ISO 8601. */
const instants: postgres.PostgresType<Date> = {
  to: 1184,
  from: [1184],
  parse: (text: string) =>
    new Date(text.startsWith("00") ? text.replace(" ", "T").replace(/[+-]\d{2}$/, "$&:00") : text),
  serialize: (at: Date | string) => new Date(at).toISOString(),
};

/** Options that the types of the driver do not name; `deadline` and `at_begin` are those of its patch (db/patches). */
function limitsOf(url: string, { limits, settings, name, isPipelined }: ConnectOptions) {
  const session = { application_name: name, TimeZone: "UTC" };
  const isOurs = !isPooled(url);
  return {
    connection: {
      ...session,
      ...(isOurs && PLANNER),
      ...(isOurs && limits && startSettings(limits)),
      ...(isOurs && settings),
    },
    // A standby takes no writes, and most of what we do is one.
    ...(!/[?&]target_session_attrs=/.test(url) && { target_session_attrs: "read-write" as const }),
    // Nobody waits behind a statement that hangs while another connection is free; a transaction has its own.
    max_pipeline: isPipelined ? MAX_PIPELINE : 0,
    ...(limits && { deadline: limits.deadlineMs / 1_000 }),
    connect_timeout: Math.min(CONNECT_TIMEOUT_S, (limits?.deadlineMs ?? Infinity) / 1_000),
    ...(!isOurs && limits && { at_begin: beginSettings(limits) }),
  };
}

/**
 * Whether the address says that a pooler is behind it, which hands out another session with each transaction. One that is
 * not announced is found when it is connected to, and refused.
 */
export function isPooled(url: string): boolean {
  return /[?&]prepare=false(&|$)/.test(url);
}

export function connect(url: string, options: ConnectOptions): RawDb {
  const { onRows, onStatement, idleS, watches = new PoolWatches(0, () => {}) } = options;
  const watch = watches.open(options.name, options.max);
  const over = { onRows, watch };
  const client = postgres(url, {
    ...limitsOf(url, options),
    max: options.max,
    keep_alive: KEEP_ALIVE_S,
    ...(idleS !== undefined && { idle_timeout: idleS }),
    backoff: (retries) => Math.min(2 ** retries / 50, RECONNECT_MAX_S),
    onnotice: () => {},
    ...(onStatement && { debug: (_, text, parameters) => onStatement(text, parameters) }),
    types: {
      // Ids and sequences stay far below 2^53.
      bigint: { to: 20, from: [20], parse: Number, serialize: String },
      json: jsonAsText(114),
      jsonb: jsonAsText(3802),
      date: instants,
    },
  });
  return Object.assign(sessionOver(client, over), {
    async transaction<T>(work: (tx: RawTx) => Promise<T>, given: TransactionOptions = {}) {
      const { result } = await rerun(async () => {
        const connected = watch.wait();
        try {
          return await client.begin(async (sql) => {
            connected();
            const runLast = runOver({ unsafe: (...sent) => sql.last(sql.unsafe(...sent)) }, over);
            const tx = { inTransaction: true as const, runLast };
            // The box keeps the driver from awaiting the items of a list.
            return { result: await work(Object.assign(sessionOver(sql, over), tx)) };
          }, given.readsFirst);
        } finally {
          connected();
        }
      });
      return result;
    },
    close: () => client.end({ timeout: 5 }),
  });
}

const TRIES = 3;

/** Runs a transaction again that PostgreSQL has rolled back for a reason that will be gone. */
async function rerun<T>(run: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      if (tried >= TRIES || !(isDeadlock(error) || isStatementOutdated(error))) throw error;
    }
  }
}

const anyAnswer = statement({
  name: "ping",
  // It is of no table.
  text: () => fragment`select`,
});

/** Resolves if the database answers at all. */
export async function ping(db: Db): Promise<void> {
  await db.run(anyAnswer, {});
}
