import { connect } from "../../db/client.ts";
import { isPoolerFound } from "../../db/errors.ts";
import { FOREIGN_SCHEMA, migrate, schemaState } from "../../db/migrate.ts";
import { systemClock } from "../lib/clock.ts";
import { readDatabaseUrl } from "../lib/config.ts";
import { exitIfFaulty, reachableOrExit, settingsOrExit } from "../lib/lifecycle.ts";

/** Brings the database of `DATABASE_URL` to the current schema and reports it; exits on an error. */
export async function migrateDatabase(): Promise<void> {
  const url = settingsOrExit(readDatabaseUrl);
  const db = connect(url, { max: 1, name: "reviewrelay-migrate" });
  try {
    const before = await reachableOrExit("DATABASE_URL", () => schemaState(db), {
      clock: systemClock,
      isFatal: isPoolerFound,
    });
    exitIfFaulty(before.kind === "foreign" ? FOREIGN_SCHEMA : undefined);
    await migrate(url);
    console.log(
      before.kind === "ahead"
        ? `The database has a later schema, by ${before.by}: nothing to do, this version works with it.`
        : "The database has the current schema.",
    );
  } finally {
    await db.close();
  }
}
