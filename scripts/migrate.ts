import { drizzle } from "drizzle-orm/postgres-js";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

import { connect } from "../db/client.ts";
import { ensurePartitions } from "../db/partitions.ts";
import { StartError } from "./start/start-error.ts";

const FOLDER = { migrationsFolder: `${import.meta.dir}/../db/migrations` };

/**
 * Brings a database to the current schema. Any number of processes may call it at once: one works, the rest wait.
 * Throws a StartError for a database with migrations that are no more.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    await sql`select pg_advisory_lock(hashtext('reviewrelay:migrate'))`;
    await refuseForeignMigrations(sql);
    await applyMigrations(drizzle(sql), FOLDER);
  } finally {
    // Ending the session gives the lock back.
    await sql.end();
  }
  const db = connect(databaseUrl, { max: 1, name: "reviewrelay-migrate" });
  try {
    await ensurePartitions(db, new Date());
  } finally {
    await db.close();
  }
}

/** The migrations up to 0010 became one baseline, which nothing leads to from there. */
async function refuseForeignMigrations(sql: postgres.Sql): Promise<void> {
  const [known] =
    await sql`select from pg_tables where schemaname = 'drizzle' and tablename = '__drizzle_migrations'`;
  if (known === undefined) return;
  const ours = readMigrationFiles(FOLDER).map(({ folderMillis }) => String(folderMillis));
  const foreign = await sql`
    select from drizzle.__drizzle_migrations where created_at <> all(${ours}::bigint[]) limit 1`;
  if (foreign.length > 0)
    throw new StartError(
      "This database was made by another version of ReviewRelay, whose migrations this version does not have.",
      "Use a fresh one: an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR.",
    );
}

if (import.meta.main) {
  const url = process.env["DATABASE_URL"];
  if (url === undefined || url === "") {
    console.error("DATABASE_URL is required (postgres://…).");
    process.exit(78);
  }
  try {
    await migrate(url);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    console.error(error.message);
    process.exit(78);
  }
  console.log("The database has the current schema.");
}
