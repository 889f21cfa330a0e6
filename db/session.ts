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
 * The server types that the options in db/client.ts convert to JavaScript, in addition to those that the driver
 * converts by default.
 */
type DriverTypes = { bigint: number };

/** Runs a declared statement with the values of its parameters. */
export type Run = <P extends Shapes, C extends Shapes>(
  statement: Statement<P, C>,
  values: ValuesOf<P>,
) => Promise<Rows<C>>;

/**
 * A connection for both kinds of queries: those of Drizzle, which are sent when they are awaited, and declared SQL
 * statements, which are sent immediately.
 */
export interface Session extends Builder {
  /** Runs a declared SQL statement (db/statement.ts). */
  readonly run: Run;
}

/**
 * Gives access to the driver itself, for scripts, tests and partitions. Drizzle's query builder cannot express
 * partitions.
 */
export interface Raw {
  readonly sql: postgres.ISql<DriverTypes>;
}
export type OnRows = (statement: Statement, rows: readonly unknown[]) => void;

/**
 * Maximum number of parameters of a prepared query. A query with more parameters contains a list of rows, and its text
 * is rarely repeated.
 */
const MAX_PREPARED_PARAMETERS = 64;

interface WatchDeps {
  readonly onRows?: OnRows | undefined;
  readonly watch: PoolWatch;
  /** Whether each statement is committed by itself, because it runs outside of a transaction. */
  readonly commits: boolean;
}

/** Matches a statement that writes. `for update` is excluded, because it only locks. */
const WRITES = /\b(insert into|(?<!for (no key )?)update|delete from|merge into)\b/i;

/**
 * Waits for a statement outside of a transaction. If its response is lost, the error says that the outcome is unknown.
 */
async function toldOf<T>(answer: Promise<T>, query: object, text: string): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // The query was sent if its `state` is set: the driver sets it when it sends the query.
    const isSent = Reflect.get(query, "state") !== null;
    throw isSent && WRITES.test(text) ? afterCommitSent(error) : error;
  }
}

/** Creates the function that runs declared statements on a connection. `send` receives each query before it is sent. */
export function runOver(
  sql: postgres.ISql<DriverTypes>,
  { onRows, watch, commits }: WatchDeps,
  send = <T>(query: Promise<T>) => query,
): Run {
  return <P extends Shapes, C extends Shapes>(declared: Statement<P, C>, values: ValuesOf<P>) =>
    watch.time(declared.name, () => {
      const bound = fillPlaceholders(declared.binds, values);
      // The cast is safe: the types of the parameters restrict the values, and the driver accepts all of them.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const query = sql.unsafe<ValuesOf<C>[]>(declared.text, bound as never[], PREPARED_OPTIONS);
      // The driver sends a query when `then` is called. Calling it here sends statements in the order of the calls.
      const sent = send(query).then((rows) => {
        readInstants(declared, rows);
        onRows?.(declared, rows);
        return rows;
      });
      return commits ? toldOf(sent, query, declared.text) : sent;
    });
}

/** Options that force preparation: by default the driver does not prepare a statement without parameters. */
const PREPARED_OPTIONS = { prepare: true, simple: false };

/** Converts the instants in table columns to dates; JSON contains them as text. */
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

/** Creates the session with Drizzle and with declared statements, on a pool or a transaction of the driver. */
export function sessionOver(
  sql: postgres.Sql<DriverTypes> | postgres.TransactionSql<DriverTypes>,
  watching: WatchDeps,
) {
  const client = clientOver(sql, watching);
  return Object.assign(drizzle({ client }), { run: runOver(sql, watching), sql });
}

/**
 * Creates the driver client that Drizzle uses. It measures each query and prepares it on the server, once per
 * connection and text; Drizzle itself does this only for queries with a name. It also keeps the driver's type
 * conversions, which Drizzle would replace.
 */
function clientOver(sql: postgres.ISql<DriverTypes>, { watch, commits }: WatchDeps): postgres.Sql {
  const client = {
    options: { parsers: {}, serializers: {} },
    unsafe(text: string, values: postgres.ParameterOrJSON<never>[]) {
      const options = { prepare: values.length <= MAX_PREPARED_PARAMETERS, simple: false };
      const query = sql.unsafe(text, values, options);
      const answer = watch.time(text, async () => (commits ? toldOf(query, query, text) : query));
      return Object.assign(answer, { values: () => (query.values(), answer) });
    },
  };
  // Drizzle's types require a pool, but Drizzle uses only these members, because it opens no transaction here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return client as unknown as postgres.Sql;
}
