import { is } from "drizzle-orm";
import {
  PgColumn,
  PgDatabase,
  PgDialect,
  PgPreparedQuery,
  PgSession,
  type PreparedQueryConfig,
} from "drizzle-orm/pg-core";
import type { PostgresJsQueryResultHKT } from "drizzle-orm/postgres-js";

import { placeholders, type Placeholders, type Shapes, type ValuesOf } from "./statement.ts";

/** What a session prepares: text and parameters of a query, and how its rows are read. */
export type BuiltQuery = Parameters<PgSession["prepareQuery"]>;

interface Connection {
  runBuilt<R>(query: BuiltQuery, given: Readonly<Record<string, unknown>>): Promise<R>;
}

type Builder = PgDatabase<PostgresJsQueryResultHKT>;
/** A query of the builder. */
interface Preparable<R> {
  prepare(name: string): { execute(): Promise<R> };
}

/**
 * A query that is built once, not at every call, which costs up to 50 µs: for what runs with every request or sign-in.
 */
export function prepared<P extends Shapes, R>(
  params: P,
  build: (db: Builder, given: Placeholders<P>) => Preparable<R>,
): (db: Connection, given: ValuesOf<P>) => Promise<R> {
  const db: Builder = new PgDatabase(dialect, new Recorder(dialect), undefined);
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

const dialect = new PgDialect();

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
