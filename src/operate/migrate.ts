import { connect, ping } from "../../db/client.ts";
import { isPoolerFound } from "../../db/errors.ts";
import { ForeignSchemaError, migrate, schemaState } from "../../db/migrate.ts";
import { systemClock } from "../lib/clock.ts";
import { readDatabaseUrl } from "../lib/config.ts";
import { exitIfFaulty, reachableOrExit, settingsOrExit } from "../lib/lifecycle.ts";

/** Brings the database of `DATABASE_URL` to the current schema and reports it; exits on an error. */
export async function migrateDatabase(): Promise<void> {
  const url = settingsOrExit(readDatabaseUrl);
  const db = connect(url, { max: 1, name: "reviewrelay-migrate" });
  try {
    await reachableOrExit("DATABASE_URL", () => ping(db), {
      clock: systemClock,
      isFatal: isPoolerFound,
    });
    await migrate(url);
    const state = await schemaState(db);
    console.log(
      state.kind === "ahead"
        ? `The database has a later schema, by ${state.by}: nothing to do, this version works with it.`
        : "The database has the current schema.",
    );
  } catch (error) {
    if (!(error instanceof ForeignSchemaError)) throw error;
    exitIfFaulty(error.message);
  } finally {
    await db.close();
  }
}
