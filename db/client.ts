import { sql as fragment } from "drizzle-orm";
import postgres from "postgres";

import { isDeadlock } from "./errors.ts";
import { sessionOver, type OnRows, type Raw, type Session, type Transaction } from "./session.ts";
import { statement } from "./statement.ts";

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

export interface RawDb extends Db, Raw {
  transaction<T>(work: (tx: RawTx) => Promise<T>): Promise<T>;
}
export interface RawTx extends Tx, Raw {}

/** For statements that need no transaction of their own and run just as well inside one. */
export type DbOrTx = Session;

const CONNECT_TIMEOUT_S = 10;
/** Between two tries to connect; the driver's own waits grow to 20 s, so that a database that is back goes unnoticed. */
const RECONNECT_MAX_S = 1;

interface ConnectOptions {
  readonly max: number;
  readonly name: string;
  /** Of the server, for each of the connections. */
  readonly settings?: Readonly<Record<string, string>>;
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
