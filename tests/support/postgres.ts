import { randomBytes } from "node:crypto";

import postgres from "postgres";

import { connect, type RawDb } from "../../db/client.ts";
import { checkRows } from "./statement-rows.ts";

export interface TestDatabase {
  readonly db: RawDb;
  readonly url: string;
  /**
   * Opens another pool on the same database, as a second process would have. A search path in the address stays as it is,
   * so that a test can shadow functions of PostgreSQL.
   */
  connect(searchPath?: string): RawDb;
  /** Closes all pools and drops the database. */
  drop(): Promise<void>;
}

const CONNECTIONS = 10;

/**
 * Clones the migrated template of the test command into a separate database for one test file. `direct` is the reason why
 * the file connects without the pooler of `TEST_POOLER`.
 */
export async function createDatabase(direct?: string): Promise<TestDatabase> {
  const adminUrl = required("TEST_DATABASE_URL");
  const template = required("TEST_TEMPLATE");
  // The prefix matters: the test command drops every database with the name of its template as prefix.
  const name = `${template}_${randomBytes(6).toString("hex")}`;
  // Copying files takes a third of the CPU time of `wal_log`, which writes each block to the log.
  const create = `create database "${name}" template "${template}" strategy file_copy`;
  await asAdmin(adminUrl, (sql) => sql.unsafe(create));
  // Behind a pooler, if the test command has started one (`TEST_POOLER`).
  const url = new URL((direct === undefined && process.env["TEST_POOLED_URL"]) || adminUrl);
  url.pathname = `/${name}`;
  const pools: RawDb[] = [];
  const open = (searchPath?: string) => {
    const address = new URL(url);
    if (searchPath !== undefined) address.searchParams.set("search_path", searchPath);
    const db = connect(address.href, { max: CONNECTIONS, name: "test", onRows: checkRows });
    pools.push(db);
    return db;
  };
  return {
    db: open(),
    url: url.href,
    connect: open,
    async drop() {
      await Promise.all(pools.map((pool) => pool.close()));
      await asAdmin(adminUrl, (sql) => sql.unsafe(`drop database "${name}" with (force)`));
    },
  };
}

async function asAdmin(url: string, work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "")
    throw new Error(
      `${name} is not set: run the tests with scripts/test.ts, which starts the stores.`,
    );
  return value;
}
