import { sql as fragment } from "drizzle-orm";
import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";

import { isDeadlock } from "./errors.ts";

/** A place to run statements: the query builder for what is written once, `sql` (prepared by name) for what is hot. */
interface Session {
  readonly orm: Pick<
    PostgresJsDatabase,
    "select" | "selectDistinctOn" | "insert" | "update" | "delete" | "execute"
  >;
  readonly sql: postgres.ISql<{ bigint: number }>;
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
}

export function connect(url: string, options: ConnectOptions): Db {
  const client = postgres(url, {
    max: options.max,
    connect_timeout: CONNECT_TIMEOUT_S,
    backoff: (retries) => Math.min(2 ** retries / 50, RECONNECT_MAX_S),
    connection: { application_name: options.name, TimeZone: "UTC", ...options.settings },
    onnotice: () => {},
    // Ids and sequences stay far below 2^53.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
  });
  // drizzle replaces the conversion of instants by none, for every user of the client; it also works with these.
  const dates = {
    parse: client.options.parsers[1184],
    serialize: client.options.serializers[1184],
  };
  const orm = drizzle(client);
  if (dates.parse) client.options.parsers[1184] = dates.parse;
  if (dates.serialize) client.options.serializers[1184] = dates.serialize;
  return {
    orm,
    sql: client,
    transaction: (work) =>
      withoutDeadlock(() =>
        orm.transaction((tx) => work({ orm: tx, sql: transactionClient(tx), inTransaction: true })),
      ),
    close: () => client.end({ timeout: 5 }),
  };
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

/** The connection under drizzle's transaction, so that both ways of writing a statement share it. */
function transactionClient(tx: unknown): postgres.TransactionSql<{ bigint: number }> {
  const session: unknown = Reflect.get(Object(tx), "session");
  const client: unknown = Reflect.get(Object(session), "client");
  if (typeof client !== "function")
    throw new Error("drizzle-orm no longer keeps its client at tx.session.client.");
  // A private field of drizzle's: no type says what it holds.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return client as postgres.TransactionSql<{ bigint: number }>;
}

/** Resolves if the database answers at all. */
export async function ping(db: Db): Promise<void> {
  await db.orm.execute(fragment`select 1`);
}
