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

/** Conversions that are not the driver's own. */
type DriverTypes = { bigint: number };
export type Transaction = postgres.TransactionSql<DriverTypes>;

/**
 * Drizzle's query builder, whose queries run when they are awaited, and beside it, on the same connection, what is declared
 * as SQL, which is sent at once.
 */
export interface Session extends Builder {
  /** Runs a declared statement. */
  run<P extends Shapes, C extends Shapes>(
    statement: Statement<P, C>,
    given: ValuesOf<P>,
  ): Promise<Rows<C>>;
  /** Runs what `prepared` has built. */
  runBuilt<R>(query: BuiltQuery, given: Readonly<Record<string, unknown>>): Promise<R>;
}

/** The driver itself beside it: for scripts and tests, and for partitions, which no builder makes. */
export interface Raw {
  readonly sql: postgres.ISql<DriverTypes>;
}
export type OnRows = (statement: Statement, rows: readonly unknown[]) => void;

const dialect = new PgDialect();

/** More parameters than this are a list of rows, whose text is hardly ever the same twice. */
const MAX_PREPARED_PARAMETERS = 64;

type NoRelations = Record<string, never>;
type Answer<R> = { execute: R; all: unknown; values: unknown };

/** Has the server prepare what the builder makes: once per connection, by its text, as the driver does with `sql`. */
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
    made.execute = (given) => this.#watch.time(query.sql, () => execute(given)).catch(throwCause);
    return made;
  }
}

/** Drizzle's own error names the values of the parameters, hashes and addresses among them, and would be logged. */
function throwCause(error: unknown): never {
  throw error instanceof DrizzleQueryError ? error.cause : error;
}

interface Watching {
  readonly onRows?: OnRows | undefined;
  readonly watch: PoolWatch;
}

/** What runs declared statements on such a connection. */
export function runOver(sql: StatementClient, { onRows, watch }: Watching): Session["run"] {
  const run: Session["run"] = (declared, given) =>
    watch.time(declared.name, () => runStatement(sql, declared, given));
  if (onRows === undefined) return run;
  return async (declared, given) => {
    const rows = await run(declared, given);
    onRows(declared, rows);
    return rows;
  };
}

export function sessionOver(sql: postgres.Sql<DriverTypes> | Transaction, watching: Watching) {
  // Drizzle's types ask for a pool; it only calls `unsafe`, which a transaction of the driver has as well.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const client = sql as postgres.Sql;
  const session = new PreparingSession(client, watching.watch);
  const run = runOver(sql, watching);
  const runBuilt: Session["runBuilt"] = <R>(query: BuiltQuery, given: Record<string, unknown>) =>
    session.prepareQuery<Answer<R>>(...query).execute(given);
  return Object.assign(new PostgresJsDatabase(dialect, session, undefined), { run, runBuilt, sql });
}

/** What a session prepares: text and parameters of a query, and how its rows are read. */
type BuiltQuery = Parameters<PgSession["prepareQuery"]>;

type Recording = PgDatabase<PostgresJsQueryResultHKT>;
/** A query of the builder. */
interface Preparable<R> {
  prepare(name: string): { execute(): Promise<R> };
}

/**
 * A query that is built once, not at every call, which costs up to 50 µs: for what runs with every request or sign-in.
 */
export function prepared<P extends Shapes, R>(
  params: P,
  build: (db: Recording, given: Placeholders<P>) => Preparable<R>,
): (db: Session, given: ValuesOf<P>) => Promise<R> {
  const db: Recording = new PgDatabase(dialect, new Recorder(dialect), undefined);
  const made = build(db, placeholders(params)).prepare("");
  if (!(made instanceof Recorded)) throw new Error("drizzle-orm prepared the query elsewhere.");
  return (connection, given) => connection.runBuilt<R>(made.built, encoded(params, given));
}

/** Values as the driver takes them. Left to its placeholders, drizzle would also encode nulls, and fail. */
function encoded(params: Shapes, given: Readonly<Record<string, unknown>>) {
  const values: Record<string, unknown> = {};
  for (const name in params) {
    const [shape, value] = [params[name], given[name]];
    values[name] = is(shape, PgColumn) && value !== null ? shape.mapToDriverValue(value) : value;
  }
  return values;
}

/** A session without a connection, which keeps what it is to prepare. */
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
