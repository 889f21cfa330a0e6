import { connect } from "../../../db/client.ts";
import { causeOf, isPoolerFound } from "../../../db/errors.ts";
import {
  describe,
  migrate,
  SchemaError,
  type SchemaState,
  schemaState,
} from "../../../db/migrate.ts";
import { systemClock } from "../../lib/clock.ts";
import { type Config, readDatabases } from "../../lib/config.ts";
import { exitIfFaulty, reachableOrExit, settingsOrExit } from "../../lib/lifecycle.ts";

/** Migrates the database of the settings to the current schema and prints the result. Ends the process on an error. */
export async function migrateDatabase(): Promise<void> {
  const { before, applied } = await migrateOrExit(settingsOrExit(readDatabases));
  console.log(
    before.kind === "ahead"
      ? `The database schema is ahead by ${before.unknown.length} (${describe(before.unknown)}). Nothing to do: this version works with it.`
      : `The database has the current schema${applied === 0 ? "" : `, ${applied} applied`}.`,
  );
}

/**
 * Migrates the database as the user that owns the tables (`MAINTENANCE_DATABASE_URL`). Ends the process with a message
 * if the database cannot be reached or cannot be migrated to the schema of this version.
 */
export async function migrateOrExit({
  databaseUrl,
  maintenanceDatabaseUrl: url,
}: Pick<Config, "databaseUrl" | "maintenanceDatabaseUrl">): Promise<{
  readonly before: SchemaState;
  readonly applied: number;
}> {
  const db = connect(url, { max: 1, name: "reviewrelay-migrate" });
  try {
    const name = url === databaseUrl ? "DATABASE_URL" : "MAINTENANCE_DATABASE_URL";
    const before = await reachableOrExit(name, () => schemaState(db), {
      clock: systemClock,
      isFatal: isPoolerFound,
    });
    return { before, applied: await migrate(url, databaseUrl) };
  } catch (error) {
    exitIfFaulty(error instanceof SchemaError ? error.message : undefined);
    throw causeOf(error);
  } finally {
    await db.close();
  }
}
