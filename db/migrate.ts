import { readMigrationFiles } from "drizzle-orm/migrator";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

import { connect } from "./client.ts";
import { ensurePages } from "./pages.ts";
import { ensurePartitions } from "./partitions.ts";
import { serverTime } from "./server-time.ts";

const FOLDER = { migrationsFolder: `${import.meta.dir}/migrations` };

/** A database has migrations that this version does not know: nothing leads from them to its schema. */
export class ForeignSchemaError extends Error {
  override readonly name = "ForeignSchemaError";

  constructor() {
    super(
      "This database was made by another version of ReviewRelay, whose migrations this version does not have.\n" +
        "Use a fresh one: an empty database as DATABASE_URL or, with the embedded store, a new DATA_DIR.",
    );
  }
}

/**
 * Brings a database to the current schema. Any number of processes may call it at once: one works, the rest wait.
 * Throws a ForeignSchemaError where it cannot.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    await sql`select pg_advisory_lock(hashtext('reviewrelay:migrate'))`;
    await refuseForeignSchema(sql);
    await applyMigrations(drizzle(sql), FOLDER);
  } finally {
    // Ending the session gives the lock back.
    await sql.end();
  }
  const db = connect(databaseUrl, { max: 1, name: "reviewrelay-migrate" });
  try {
    await ensurePages(db);
    await ensurePartitions(db, await serverTime(db));
  } finally {
    await db.close();
  }
}

async function refuseForeignSchema(sql: postgres.Sql): Promise<void> {
  const [known] =
    await sql`select from pg_tables where schemaname = 'drizzle' and tablename = '__drizzle_migrations'`;
  if (known === undefined) return;
  const ours = readMigrationFiles(FOLDER).map(({ folderMillis }) => String(folderMillis));
  const foreign = await sql`
    select from drizzle.__drizzle_migrations where created_at <> all(${ours}::bigint[]) limit 1`;
  if (foreign.length > 0) throw new ForeignSchemaError();
}
