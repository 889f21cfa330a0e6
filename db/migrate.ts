import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

import { connect } from "./client.ts";
import { ensurePartitions } from "./partitions.ts";

/** Brings a database to the current schema. Any number of processes may call it at once: one works, the rest wait. */
export async function migrate(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    await sql`select pg_advisory_lock(hashtext('reviewrelay:migrate'))`;
    await applyMigrations(drizzle(sql), {
      migrationsFolder: `${import.meta.dir}/migrations`,
    });
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
