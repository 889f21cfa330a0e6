import { sql as fragment } from "drizzle-orm";
import { PgDialect, type PgPreparedQuery, type PreparedQueryConfig } from "drizzle-orm/pg-core";
import { PostgresJsDatabase, PostgresJsSession } from "drizzle-orm/postgres-js";
import postgres from "postgres";

import { isDeadlock } from "./errors.ts";
import type { BuiltQuery } from "./prepared.ts";
import {
  runStatement,
  statement,
  type Rows,
  type Shapes,
  type Statement,
  type ValuesOf,
} from "./statement.ts";

type Builder = Pick<
  PostgresJsDatabase,
  | "select"
  | "selectDistinct"
  | "selectDistinctOn"
  | "insert"
  | "update"
  | "delete"
  | "with"
  | "$with"
  | "$count"
>;

/** Conversions that are not the driver's own. */
type DriverTypes = { bigint: number };
type Transaction = postgres.TransactionSql<DriverTypes>;

/** Drizzle's query builder, and beside it, on the same connection, what is written as SQL. */
interface Session extends Builder {
  /** Runs a declared statement. */
  run<P extends Shapes, C extends Shapes>(
    statement: Statement<P, C>,
    given: ValuesOf<P>,
  ): Promise<Rows<C>>;
  /** Runs what `prepared` has built. */
  runBuilt<R>(query: BuiltQuery, given: Readonly<Record<string, unknown>>): Promise<R>;
}

/** A pool of connections. */
export interface Db extends Session {
  /**
   * Runs `work` in one transaction: all of it is committed, or nothing. Chosen as the victim of a deadlock it runs
   * again, so `work` does nothing but statements.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** One open transaction. */
export interface Tx extends Session {
  readonly inTransaction: true;
}

/** The driver itself beside it: for scripts and tests, and for partitions, which no builder makes. */
interface Raw {
  readonly sql: postgres.ISql<DriverTypes>;
}
export interface RawDb extends Db, Raw {
  transaction<T>(work: (tx: RawTx) => Promise<T>): Promise<T>;
}
export interface RawTx extends Tx, Raw {}

/** For statements that need no transaction of their own and run just as well inside one. */
export type DbOrTx = Session;

const CONNECT_TIMEOUT_S = 10;
/** Between two tries to connect; the driver's own waits grow to 20 s, so that a database that is back goes unnoticed. */
const RECONNECT_MAX_S = 1;

export interface ConnectOptions {
  readonly max: number;
  readonly name: string;
  /** Of the server, for each of the connections. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Sees the answer of each declared statement before its caller does. */
  readonly onRows?: OnRows;
  /** Sees each statement before it is sent. */
  readonly onStatement?: (text: string, parameters: readonly unknown[]) => void;
}

type OnRows = (statement: Statement, rows: readonly unknown[]) => void;

/** The builder writes the text of JSON itself; read, it is whatever the column's type says. */
const jsonAsText = (oid: number): postgres.PostgresType<string> => ({
  to: oid,
  from: [oid],
  parse: JSON.parse,
  serialize: (text) => text,
});

export function connect(url: string, options: ConnectOptions): RawDb {
  const { onRows, onStatement } = options;
  const client = postgres(url, {
    max: options.max,
    connect_timeout: CONNECT_TIMEOUT_S,
    backoff: (retries) => Math.min(2 ** retries / 50, RECONNECT_MAX_S),
    connection: { application_name: options.name, TimeZone: "UTC", ...options.settings },
    onnotice: () => {},
    ...(onStatement && { debug: (_, text, parameters) => onStatement(text, parameters) }),
    types: {
      // Ids and sequences stay far below 2^53.
      bigint: { to: 20, from: [20], parse: Number, serialize: String },
      json: jsonAsText(114),
      jsonb: jsonAsText(3802),
    },
  });
  return Object.assign(sessionOver(client, onRows), {
    async transaction<T>(work: (tx: RawTx) => Promise<T>) {
      const run = (sql: Transaction) =>
        work(Object.assign(sessionOver(sql, onRows), { inTransaction: true as const }));
      // The box keeps the driver from awaiting the items of a list.
      const { result } = await withoutDeadlock(() =>
        client.begin(async (sql) => ({ result: await run(sql) })),
      );
      return result;
    },
    close: () => client.end({ timeout: 5 }),
  });
}

const dialect = new PgDialect();

/** More parameters than this are a list of rows, whose text is hardly ever the same twice. */
const MAX_PREPARED_PARAMETERS = 64;

type NoRelations = Record<string, never>;
type Answer<R> = { execute: R; all: unknown; values: unknown };

/** Has the server prepare what the builder makes: once per connection, by its text, as the driver does with `sql`. */
class PreparingSession extends PostgresJsSession<postgres.Sql, NoRelations, NoRelations> {
  override prepareQuery<T extends PreparedQueryConfig>(
    ...[query, fields, name, ...rest]: BuiltQuery
  ): PgPreparedQuery<T> {
    const byText = query.params.length > MAX_PREPARED_PARAMETERS ? undefined : "";
    return super.prepareQuery<T>(query, fields, name ?? byText, ...rest);
  }
}

function sessionOver(sql: postgres.Sql<DriverTypes> | Transaction, onRows?: OnRows): Session & Raw {
  // Drizzle's types ask for a pool; it only calls `unsafe`, which a transaction of the driver has as well.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const client = sql as postgres.Sql;
  const session = new PreparingSession(client, dialect, undefined);
  const plain: Session["run"] = (declared, given) => runStatement(sql, declared, given);
  const seen: Session["run"] = async (declared, given) => {
    const rows = await plain(declared, given);
    onRows?.(declared, rows);
    return rows;
  };
  const run = onRows === undefined ? plain : seen;
  const runBuilt: Session["runBuilt"] = <R>(query: BuiltQuery, given: Record<string, unknown>) =>
    session.prepareQuery<Answer<R>>(...query).execute(given);
  return Object.assign(new PostgresJsDatabase(dialect, session, undefined), { run, runBuilt, sql });
}

const DEADLOCK_TRIES = 3;

async function withoutDeadlock<T>(run: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      if (tried >= DEADLOCK_TRIES || !isDeadlock(error)) throw error;
    }
  }
}

const anyAnswer = statement({
  name: "ping",
  reason: "It is of no table.",
  params: {},
  columns: {},
  text: () => fragment`select`,
});

/** Resolves if the database answers at all. */
export async function ping(db: Db): Promise<void> {
  await db.run(anyAnswer, {});
}
