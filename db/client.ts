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
   * Runs `work` in one transaction. The transaction runs again if PostgreSQL rolls it back because of a deadlock or an
   * outdated prepared statement, so `work` may only run statements and must have no other effect. Throws an
   * `OutcomeUnknown` if the response to the commit is lost.
   */
  transaction<T>(work: (tx: Opened) => Promise<T>, options?: TransactionOptions): Promise<T>;
  close(): Promise<void>;
}

interface TransactionOptions {
  /**
   * Set if the first statements of the transaction only read or take locks. They are then sent together with `begin`,
   * without waiting for its response, which saves a round trip. They must not write, because they would run outside of
   * the transaction if `begin` failed. Statements that are sent after any response run inside the transaction.
   */
  readonly readsFirst?: boolean;
}

/** An open transaction. All its statements run on one connection. */
export interface Tx extends Session {
  /**
   * Runs the last statement of the transaction. The commit is sent immediately after it, which saves a round trip. If
   * the statement fails, the transaction is rolled back nevertheless. Later statements are rejected.
   */
  readonly runLast: Run;
}

export interface RawDb extends Db<RawTx>, Raw {}
export interface RawTx extends Tx, Raw {}

/** A pool or a transaction, for functions that can use either. */
export type DbOrTx = Session;

/** Time limit in s for connecting to one database host, unless the pool's deadline is shorter. */
const CONNECT_TIMEOUT_S = 5;
/**
 * Time limit in s for each of several hosts. One of them is often down while the others work, so a statement must have
 * time left for the next host.
 */
const CONNECT_TIMEOUT_OF_SEVERAL_S = 2;
const KEEP_ALIVE_S = 10;
/**
 * Maximum pause in s between two tries to connect. The driver's default grows to 20 s, so it would notice a recovered
 * database late.
 */
const RECONNECT_MAX_S = 1;
const MAX_PIPELINE = 16;

interface ConnectOptions {
  readonly max: number;
  readonly name: string;
  /** Time limits of the statements; absent in scripts and tests. */
  readonly limits?: Limits;
  /** Idle time in s after which a connection is closed. If absent, connections stay open. */
  readonly idleS?: number;
  /**
   * Set for a pool that only runs transactions. Each statement is then sent without waiting for the response to the
   * previous one.
   */
  readonly isPipelined?: boolean;
  /** Counts the waits and reports the slow statements of all pools of the process. */
  readonly watches?: PoolWatches;
  /** Called with the rows of each declared statement before the caller receives them. */
  readonly onRows?: OnRows;
  /** Called with each statement before it is sent. */
  readonly onStatement?: (text: string, parameters: readonly unknown[]) => void;
}

/**
 * Parses timestamps of PostgreSQL. Text that is not ISO 8601 is converted first, because JavaScript reads the years 1
 * to 99 in `0001-01-01 00:00:00.123+00` as years of the 20th century.
 */
const instantType: postgres.PostgresType<Date> = {
  to: 1184,
  from: [1184],
  parse: (text: string) =>
    new Date(text.startsWith("00") ? text.replace(" ", "T").replace(/[+-]\d{2}$/, "$&:00") : text),
  serialize: (at: Date | string) => new Date(at).toISOString(),
};

/** Parses bytes in both formats of `bytea_output`, because a single statement behind a pooler may return either. */
const bytesType: postgres.PostgresType<Uint8Array> = {
  to: 17,
  from: [17],
  parse: (text: string) =>
    text.startsWith("\\x") ? Buffer.from(text.slice(2), "hex") : unescaped(text),
  serialize: (value: Uint8Array) => `\\x${Buffer.from(value).toString("hex")}`,
};

/**
 * Decodes PostgreSQL's escape format of bytes: a backslash and three octal digits mean one byte, two backslashes mean
 * one backslash.
 */
function unescaped(text: string): Buffer {
  const latin = text.replaceAll(/\\(\\|[0-7]{3})/g, (_, one: string) =>
    one === "\\" ? one : String.fromCodePoint(Number.parseInt(one, 8)),
  );
  return Buffer.from(latin, "latin1");
}

/**
 * Returns options of the PostgreSQL driver that its types do not declare. `deadline`, `at_begin` and `at_open` come
 * from the patch in db/patches.
 */
function limitsOf(url: string, { limits, name, isPipelined }: ConnectOptions) {
  const isOurs = !isPooled(url);
  return {
    connection: {
      application_name: name,
      ...(isOurs ? startSettings(limits) : pooledStartSettings()),
    },
    // A standby is not accepted, because it rejects writes and most statements write.
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
 * Returns whether the database URL declares a pooler, which may run each transaction in another session. A pooler that
 * is not declared is detected when a connection is opened, and rejected.
 */
export function isPooled(url: string): boolean {
  return /[?&]prepare=false(&|$)/.test(url);
}

function hasSeveralHosts(url: string): boolean {
  return /^[^/]*\/\/([^/?]*@)?[^/?@]*,/.test(url);
}

/** Matches the parameter of a database URL for the file with the certificate authorities of the server. */
const AUTHORITIES_PARAMETER = /(?<=[?&])sslrootcert=[^&]*/g;

/**
 * Reads the certificate authorities of a database URL. The driver reads `sslmode` itself, but it would send
 * `sslrootcert` to the server as a setting. Without this parameter, `verify-full` trusts the authorities of the system.
 */
function tlsOf(url: string) {
  const [given] = url.match(AUTHORITIES_PARAMETER) ?? [];
  const file = new URLSearchParams(given).get("sslrootcert");
  return file !== null && file !== "system" && { ssl: { ca: readFileSync(file, "utf8") } };
}

export function connect(url: string, options: ConnectOptions): RawDb {
  const { onRows, onStatement, idleS, watches = new PoolWatches(() => {}) } = options;
  const watch = watches.open(options.name);
  const watching = { onRows, watch, commits: false };
  const driver = limitsOf(url, options);
  const client = postgres(url.replaceAll(AUTHORITIES_PARAMETER, ""), {
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
      date: instantType,
      bytea: bytesType,
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
            // Wrapped in an object, because the driver would await the items of an array that `work` returns.
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

const RERUN_TRIES = 3;

/** Repeats a transaction that PostgreSQL rolled back because of a deadlock or an outdated prepared statement. */
async function rerun<T>(run: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      if (tried >= RERUN_TRIES || !(isDeadlock(error) || isStatementOutdated(error))) throw error;
    }
  }
}
