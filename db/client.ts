import { readFileSync } from "node:fs";

import postgres from "postgres";

import { afterCommitSent, causeOf, isDeadlock, isStatementOutdated } from "./errors.ts";
import type { Limits } from "./limits.ts";
import { PoolWatches } from "./pool-watch.ts";
import { type OnRows, type Raw, type Run, runOver, type Session, sessionOver } from "./session.ts";
import {
  beginSettings,
  openingStatement,
  pooledStartSettings,
  startSettings,
} from "./session-settings.ts";

/** A pool of connections to PostgreSQL. Statements outside of a transaction may run on different connections. */
export interface Db<Opened extends Tx = Tx> extends Session {
  /**
   * Runs `work` in one transaction. The transaction runs again if PostgreSQL rolls it back because of a deadlock or
   * an outdated prepared statement, so `work` must do nothing but run statements. Throws an `OutcomeUnknown` if the answer
   * to the commit is lost.
   */
  transaction<T>(work: (tx: Opened) => Promise<T>, options?: TransactionOptions): Promise<T>;
  close(): Promise<void>;
}

interface TransactionOptions {
  /**
   * Set if the first statements of the transaction only read or take locks. They are then sent together with `begin`,
   * without waiting for its answer, which saves a round trip. If `begin` failed, they would run outside of the
   * transaction, so they must not write. Statements that are sent after any answer run inside the transaction.
   */
  readonly readsFirst?: boolean;
}

/** An open transaction; all its statements run on one connection. */
export interface Tx extends Session {
  /**
   * Runs the last statement of the transaction. The commit is sent right after it, so that one round trip is saved. A
   * statement that fails still rolls the transaction back. Later statements are rejected.
   */
  readonly runLast: Run;
}

export interface RawDb extends Db<RawTx>, Raw {}
export interface RawTx extends Tx, Raw {}

/** A pool or a transaction, for statements that can run on both. */
export type DbOrTx = Session;

/** The time limit for connecting to one database host, unless the pool's deadline is shorter. */
const CONNECT_TIMEOUT_S = 5;
/**
 * The time limit for each of several hosts, of which one is often down while the others work. A statement then still
 * has the time to reach the next ones.
 */
const CONNECT_TIMEOUT_OF_SEVERAL_S = 2;
const KEEP_ALIVE_S = 10;
/**
 * The longest pause between two attempts to connect. The driver's default grows to 20 s, so that a recovered database
 * would be noticed late.
 */
const RECONNECT_MAX_S = 1;
const MAX_PIPELINE = 16;

interface ConnectOptions {
  readonly max: number;
  readonly name: string;
  /** Time limits of the statements; absent in scripts and tests. */
  readonly limits?: Limits;
  /** Idle time in seconds after which a connection is closed. If absent, connections stay open. */
  readonly idleS?: number;
  /**
   * Set for a pool that only runs transactions: each statement is sent without waiting for the answer to the previous
   * one.
   */
  readonly isPipelined?: boolean;
  /** Collects the metrics and the slow statements of all pools of the process. */
  readonly watches?: PoolWatches;
  /** Called with the rows of each declared statement before its caller gets them. */
  readonly onRows?: OnRows;
  /** Called with each statement before it is sent. */
  readonly onStatement?: (text: string, parameters: readonly unknown[]) => void;
}

/**
 * Parses timestamps of PostgreSQL. JavaScript reads the years 1 to 99 of `0001-01-01 00:00:00.123+00` as years of the
 * 20th century, unless the text is ISO 8601, so such a text is converted first.
 */
const instants: postgres.PostgresType<Date> = {
  to: 1184,
  from: [1184],
  parse: (text: string) =>
    new Date(text.startsWith("00") ? text.replace(" ", "T").replace(/[+-]\d{2}$/, "$&:00") : text),
  serialize: (at: Date | string) => new Date(at).toISOString(),
};

/** Parses bytes in both formats of `bytea_output`, because a single statement behind a pooler may get either. */
const bytes: postgres.PostgresType<Uint8Array> = {
  to: 17,
  from: [17],
  parse: (text: string) =>
    text.startsWith("\\x") ? Buffer.from(text.slice(2), "hex") : unescaped(text),
  serialize: (value: Uint8Array) => `\\x${Buffer.from(value).toString("hex")}`,
};

/** Reads PostgreSQL's older format of bytes: `\\` and three octal digits stand for a byte, two backslashes for one. */
function unescaped(text: string): Buffer {
  const latin = text.replaceAll(/\\(\\|[0-7]{3})/g, (_, one: string) =>
    one === "\\" ? one : String.fromCodePoint(Number.parseInt(one, 8)),
  );
  return Buffer.from(latin, "latin1");
}

/**
 * Makes options of the PostgreSQL driver that its types do not declare; `deadline`, `at_begin` and `at_open` come from
 * our patch of the driver (db/patches).
 */
function limitsOf(url: string, { limits, name, isPipelined }: ConnectOptions) {
  const isOurs = !isPooled(url);
  return {
    connection: {
      application_name: name,
      ...(isOurs ? startSettings(limits) : pooledStartSettings()),
    },
    // A standby rejects writes, and most statements write.
    ...(!/[?&]target_session_attrs=/.test(url) && { target_session_attrs: "read-write" as const }),
    // Pipelining is off by default, so that no statement waits behind one that hangs while another connection is free.
    max_pipeline: isPipelined ? MAX_PIPELINE : 0,
    ...(limits && { deadline: limits.deadlineMs / 1_000 }),
    connect_timeout: Math.min(
      hasSeveralHosts(url) ? CONNECT_TIMEOUT_OF_SEVERAL_S : CONNECT_TIMEOUT_S,
      (limits?.deadlineMs ?? Infinity) / 1_000,
    ),
    at_open: isOurs ? openingStatement(url) : undefined,
    at_begin: isOurs ? undefined : beginSettings(limits),
  };
}

/**
 * Whether the database address announces a pooler, which may run each transaction in another session. A pooler that
 * is not announced is detected when a connection is made, and rejected.
 */
export function isPooled(url: string): boolean {
  return /[?&]prepare=false(&|$)/.test(url);
}

function hasSeveralHosts(url: string): boolean {
  return /^[^/]*\/\/([^/?]*@)?[^/?@]*,/.test(url);
}

/** Matches the parameter of a database address that names a file with the authorities of the server's certificate. */
const AUTHORITIES = /(?<=[?&])sslrootcert=[^&]*/g;

/**
 * Reads the authorities of a database address. The driver reads `sslmode` itself, but it would send `sslrootcert` to
 * the server as a setting. Without authorities, `verify-full` uses those of the system.
 */
function tlsOf(url: string) {
  const [given] = url.match(AUTHORITIES) ?? [];
  const file = new URLSearchParams(given).get("sslrootcert");
  return file !== null && file !== "system" && { ssl: { ca: readFileSync(file, "utf8") } };
}

export function connect(url: string, options: ConnectOptions): RawDb {
  const { onRows, onStatement, idleS, watches = new PoolWatches(0, () => {}) } = options;
  const watch = watches.open(options.name, options.max);
  const watching = { onRows, watch, commits: false };
  const driver = limitsOf(url, options);
  const client = postgres(url.replaceAll(AUTHORITIES, ""), {
    ...driver,
    ...tlsOf(url),
    max: options.max,
    keep_alive: KEEP_ALIVE_S,
    ...(idleS !== undefined && { idle_timeout: idleS }),
    backoff: (retries) => Math.min(2 ** retries / 50, RECONNECT_MAX_S),
    onnotice: () => {},
    ...(onStatement && {
      debug: (_, text, parameters) => {
        if (text !== driver.at_open) onStatement(text, parameters);
      },
    }),
    types: {
      // Ids and sequences stay far below 2^53, so a `number` represents every bigint exactly.
      bigint: { to: 20, from: [20], parse: Number, serialize: String },
      // JSON parameters of both types (json, jsonb) are sent unchanged, because Drizzle has serialised them already.
      json: { to: 114, from: [114, 3802], parse: JSON.parse, serialize: (text: string) => text },
      date: instants,
      bytea: bytes,
    },
  });
  return Object.assign(sessionOver(client, { ...watching, commits: true }), {
    async transaction<T>(work: (tx: RawTx) => Promise<T>, given: TransactionOptions = {}) {
      const { result } = await rerun(async () => {
        const connected = watch.wait();
        let isCommitSent = false;
        try {
          return await client.begin(async (sql) => {
            connected();
            const runLast = runOver(sql, watching, (query) => {
              isCommitSent = true;
              return sql.last(query);
            });
            const tx = Object.assign(sessionOver(sql, watching), { runLast });
            // The object keeps the driver from awaiting the items of an array that `work` returns.
            const done = { result: await work(tx).catch(throwCause) };
            isCommitSent = true;
            return done;
          }, given.readsFirst);
        } catch (error) {
          throw isCommitSent ? afterCommitSent(error) : error;
        } finally {
          connected();
        }
      });
      return result;
    },
    close: () => client.end({ timeout: 5 }),
  });
}

function throwCause(error: unknown): never {
  throw causeOf(error);
}

const TRIES = 3;

/** Repeats a transaction that PostgreSQL rolled back because of a deadlock or an outdated prepared statement. */
async function rerun<T>(run: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      if (tried >= TRIES || !(isDeadlock(error) || isStatementOutdated(error))) throw error;
    }
  }
}
