import { fillPlaceholders } from "drizzle-orm";
import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import type postgres from "postgres";

import { afterCommitSent } from "./errors.ts";
import type { PoolWatch } from "./pool-watch.ts";
import type { Rows, Shapes, Statement, ValuesOf } from "./statement.ts";

type Builder = Omit<
  PostgresJsDatabase,
  "transaction" | "query" | "refreshMaterializedView" | "$cache" | "_"
>;

/**
 * The server types that our options of the driver convert to JavaScript, besides those that the driver converts by
 * default.
 */
type DriverTypes = { bigint: number };

/** Runs a declared statement with the values of its parameters. */
export type Run = <P extends Shapes, C extends Shapes>(
  statement: Statement<P, C>,
  values: ValuesOf<P>,
) => Promise<Rows<C>>;

/**
 * A connection for both kinds of queries: those of Drizzle, which run when they are awaited, and declared SQL
 * statements, which are sent immediately.
 */
export interface Session extends Builder {
  /** Runs a declared SQL statement (db/statement.ts). */
  readonly run: Run;
}

/**
 * Gives access to the driver itself, for scripts, tests and partitions, which Drizzle's query builder cannot express.
 */
export interface Raw {
  readonly sql: postgres.ISql<DriverTypes>;
}
export type OnRows = (statement: Statement, rows: readonly unknown[]) => void;

/**
 * The highest number of parameters of a prepared query. A query with more parameters lists rows, and its text is
 * rarely repeated.
 */
const MAX_PREPARED_PARAMETERS = 64;

interface Watching {
  readonly onRows?: OnRows | undefined;
  readonly watch: PoolWatch;
  /** Whether each statement commits by itself, because it runs outside of a transaction. */
  readonly commits: boolean;
}

/** Matches a statement that writes; `for update` only locks. */
const WRITES = /\b(insert into|(?<!for (no key )?)update|delete from|merge into)\b/i;

/** Waits for a statement that commits by itself. If its answer is lost, the error hides whether it was carried out. */
async function toldOf<T>(answer: Promise<T>, query: object, text: string): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // The driver sets the state of a query when it sends the query.
    const isSent = Reflect.get(query, "state") !== null;
    throw isSent && WRITES.test(text) ? afterCommitSent(error) : error;
  }
}

/** Makes the function that runs declared statements on a connection. `send` gets each query before it is sent. */
export function runOver(
  sql: postgres.ISql<DriverTypes>,
  { onRows, watch, commits }: Watching,
  send = <T>(query: Promise<T>) => query,
): Run {
  return <P extends Shapes, C extends Shapes>(declared: Statement<P, C>, values: ValuesOf<P>) =>
    watch.time(declared.name, () => {
      const bound = fillPlaceholders(declared.binds, values);
      // The types of the parameters restrict the values of a caller; the driver accepts all of them.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const query = sql.unsafe<ValuesOf<C>[]>(declared.text, bound as never[], PREPARED);
      // The driver sends a query when `then` is called. Calling it here sends statements in the order of the calls.
      const sent = send(query).then((rows) => {
        readInstants(declared, rows);
        onRows?.(declared, rows);
        return rows;
      });
      return commits ? toldOf(sent, query, declared.text) : sent;
    });
}

/** Forces preparation: the driver would not prepare a statement without parameters. */
const PREPARED = { prepare: true, simple: false };

/** Converts the instants in table columns, which are texts in JSON. */
function readInstants({ instants }: Statement, rows: readonly object[]): void {
  for (const { column, field } of instants)
    for (const row of rows) {
      const held: Record<string, unknown>[] = Reflect.get(row, column);
      for (const one of held) {
        const text = one[field];
        if (typeof text === "string") one[field] = new Date(text);
      }
    }
}

/** Opens Drizzle, and the declared statements, on a pool or a transaction of the driver. */
export function sessionOver(
  sql: postgres.Sql<DriverTypes> | postgres.TransactionSql<DriverTypes>,
  watching: Watching,
) {
  const client = clientOver(sql, watching);
  return Object.assign(drizzle({ client }), { run: runOver(sql, watching), sql });
}

/**
 * Makes the client that Drizzle gets. It measures each query and has the server prepare it, once per connection and
 * text; Drizzle asks for neither, unless a query has a name. It also keeps the driver's conversions of types, which
 * Drizzle would replace.
 */
function clientOver(sql: postgres.ISql<DriverTypes>, { watch, commits }: Watching): postgres.Sql {
  const client = {
    options: { parsers: {}, serializers: {} },
    unsafe(text: string, values: postgres.ParameterOrJSON<never>[]) {
      const options = { prepare: values.length <= MAX_PREPARED_PARAMETERS, simple: false };
      const query = sql.unsafe(text, values, options);
      const answer = watch.time(text, async () => (commits ? toldOf(query, query, text) : query));
      return Object.assign(answer, { values: () => (query.values(), answer) });
    },
  };
  // Drizzle's types ask for a pool, but Drizzle uses these members only: it opens no transaction here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return client as unknown as postgres.Sql;
}
