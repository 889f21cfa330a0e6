import { DrizzleQueryError, is } from "drizzle-orm";
import {
  PgDialect,
  type PreparedQueryConfig,
  PgColumn,
  PgDatabase,
  PgPreparedQuery,
  PgSession,
} from "drizzle-orm/pg-core";
import {
  PostgresJsDatabase,
  PostgresJsSession,
  type PostgresJsQueryResultHKT,
} from "drizzle-orm/postgres-js";
import type postgres from "postgres";

import type { PoolWatch } from "./pool-watch.ts";
import {
  runStatement,
  type Rows,
  type Shapes,
  type Statement,
  type StatementClient,
  type ValuesOf,
  placeholders,
  type Placeholders,
} from "./statement.ts";

type Builder = Omit<
  PostgresJsDatabase,
  "execute" | "transaction" | "query" | "refreshMaterializedView" | "$cache" | "_"
>;

/**
 * The server types that our options of the driver convert to JavaScript, besides those that the driver converts by
 * default.
 */
type DriverTypes = { bigint: number };
export type Transaction = postgres.TransactionSql<DriverTypes>;

/**
 * A connection for both kinds of queries: those of Drizzle's query builder, which run when they are awaited, and
 * declared SQL statements, which are sent immediately.
 */
export interface Session extends Builder {
  /** Runs a declared SQL statement (db/statement.ts). */
  run<P extends Shapes, C extends Shapes>(
    statement: Statement<P, C>,
    values: ValuesOf<P>,
  ): Promise<Rows<C>>;
  /** Runs a query that `prepared` has built. */
  runBuilt<R>(query: BuiltQuery, values: Readonly<Record<string, unknown>>): Promise<R>;
}

/**
 * Gives access to the driver itself, for scripts, tests and partitions, which Drizzle's query builder cannot express.
 */
export interface Raw {
  readonly sql: postgres.ISql<DriverTypes>;
}
export type OnRows = (statement: Statement, rows: readonly unknown[]) => void;

const dialect = new PgDialect();

/**
 * The highest number of parameters of a prepared query. A query with more parameters lists rows, and its text is
 * rarely repeated.
 */
const MAX_PREPARED_PARAMETERS = 64;

type NoRelations = Record<string, never>;
type Answer<R> = { execute: R; all: unknown; values: unknown };

/**
 * Prepares the queries of Drizzle's builder on the server, once per connection and text, as the driver does with
 * `sql`.
 */
class PreparingSession extends PostgresJsSession<postgres.Sql, NoRelations, NoRelations> {
  readonly #watch: PoolWatch;

  constructor(client: postgres.Sql, watch: PoolWatch) {
    super(client, dialect, undefined);
    this.#watch = watch;
  }

  override prepareQuery<T extends PreparedQueryConfig>(
    ...[query, fields, name, ...rest]: BuiltQuery
  ): PgPreparedQuery<T> {
    const byText = query.params.length > MAX_PREPARED_PARAMETERS ? undefined : "";
    const made = super.prepareQuery<T>(query, fields, name ?? byText, ...rest);
    const execute = made.execute.bind(made);
    made.execute = (values) => this.#watch.time(query.sql, () => execute(values)).catch(throwCause);
    return made;
  }
}

/**
 * Throws the driver's error instead of Drizzle's, whose message contains the parameters, such as hashes and addresses,
 * and would be logged.
 */
function throwCause(error: unknown): never {
  throw error instanceof DrizzleQueryError ? error.cause : error;
}

interface Watching {
  readonly onRows?: OnRows | undefined;
  readonly watch: PoolWatch;
}

/** Makes the function that runs declared statements on a connection. */
export function runOver(sql: StatementClient, { onRows, watch }: Watching): Session["run"] {
  const run: Session["run"] = (declared, values) =>
    watch.time(declared.name, () => runStatement(sql, declared, values));
  if (onRows === undefined) return run;
  return async (declared, values) => {
    const rows = await run(declared, values);
    onRows(declared, rows);
    return rows;
  };
}

export function sessionOver(sql: postgres.Sql<DriverTypes> | Transaction, watching: Watching) {
  // Drizzle's types require a pool, but it only calls `unsafe`, which a transaction of the driver has as well.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const client = sql as postgres.Sql;
  const session = new PreparingSession(client, watching.watch);
  const run = runOver(sql, watching);
  const runBuilt: Session["runBuilt"] = <R>(query: BuiltQuery, values: Record<string, unknown>) =>
    session.prepareQuery<Answer<R>>(...query).execute(values);
  return Object.assign(new PostgresJsDatabase(dialect, session, undefined), { run, runBuilt, sql });
}

/** The arguments with which Drizzle prepares a query: text, parameters, and the fields of its rows. */
type BuiltQuery = Parameters<PgSession["prepareQuery"]>;

type Recording = PgDatabase<PostgresJsQueryResultHKT>;
/** A Drizzle query that can be prepared. */
interface Preparable<R> {
  prepare(name: string): { execute(): Promise<R> };
}

/**
 * Builds a Drizzle query once instead of at every call, which would cost up to 50 µs. This is for queries that run
 * with every request or sign-in.
 */
export function prepared<P extends Shapes, R>(
  params: P,
  build: (db: Recording, values: Placeholders<P>) => Preparable<R>,
): (db: Session, values: ValuesOf<P>) => Promise<R> {
  const db: Recording = new PgDatabase(dialect, new Recorder(dialect), undefined);
  const made = build(db, placeholders(params)).prepare("");
  if (!(made instanceof Recorded)) throw new Error("drizzle-orm prepared the query elsewhere.");
  return (connection, values) => connection.runBuilt<R>(made.built, encoded(params, values));
}

/** Encodes parameter values for the driver. Drizzle's placeholders would also encode nulls, and fail. */
function encoded(params: Shapes, values: Readonly<Record<string, unknown>>) {
  const result: Record<string, unknown> = {};
  for (const name in params) {
    const [shape, value] = [params[name], values[name]];
    result[name] = is(shape, PgColumn) && value !== null ? shape.mapToDriverValue(value) : value;
  }
  return result;
}

/** A Drizzle session without a connection; it records the query that Drizzle asks it to prepare. */
class Recorder extends PgSession<PostgresJsQueryResultHKT> {
  prepareQuery<T extends PreparedQueryConfig>(...built: BuiltQuery): PgPreparedQuery<T> {
    return new Recorded<T>(built);
  }

  transaction(): never {
    throw new Error("A recorder runs nothing.");
  }
}

class Recorded<T extends PreparedQueryConfig> extends PgPreparedQuery<T> {
  readonly built: BuiltQuery;

  constructor(built: BuiltQuery) {
    super(built[0], undefined, undefined);
    this.built = built;
  }

  execute(): never {
    throw new Error("A recorder runs nothing.");
  }
}
