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
 * Why tests connect without the pooler of `TEST_POOLER`. All others, also those that start processes, work behind it.
 *
 * - `defaults`: they change settings of sessions, and a pooler keeps the sessions that began before.
 * - `roles`: they sign in as several roles, and the pooler signs in as one.
 * - `sessions`: they limit, name, count or end sessions, which a pooler shares between clients, or start a pooler.
 *
 * Pools with a search path in their address never use the pooler, because it accepts none.
 */
type Direct = "defaults" | "roles" | "sessions";

/** Clones the migrated template of the test command into a separate database for one test file. */
export async function createDatabase(direct?: Direct): Promise<TestDatabase> {
  const adminUrl = required("TEST_DATABASE_URL");
  const template = required("TEST_TEMPLATE");
  // The prefix matters: the test command drops every database with the name of its template as prefix.
  const name = `${template}_${randomBytes(6).toString("hex")}`;
  // Copying files takes a third of the CPU time of `wal_log`, which writes each block to the log.
  const create = `create database "${name}" template "${template}" strategy file_copy`;
  await asAdmin(adminUrl, (sql) => sql.unsafe(create));
  const within = (address: string) => Object.assign(new URL(address), { pathname: `/${name}` });
  // Behind a pooler, if the test command has started one.
  const url = within((direct === undefined && process.env["TEST_POOLED_URL"]) || adminUrl);
  const pools: RawDb[] = [];
  const open = (searchPath?: string) => {
    const address = searchPath === undefined ? url : within(adminUrl);
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
