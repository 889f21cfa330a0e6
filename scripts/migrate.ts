// `bun run migrate`: brings the database of DATABASE_URL to the current schema.
import { ForeignSchemaError, migrate } from "../db/migrate.ts";
import { EXIT_CONFIG } from "../src/lib/config.ts";

const url = process.env["DATABASE_URL"];
if (url === undefined || url === "") {
  console.error("DATABASE_URL is required (postgres://…).");
  process.exit(EXIT_CONFIG);
}
try {
  await migrate(url);
} catch (error) {
  if (!(error instanceof ForeignSchemaError)) throw error;
  console.error(error.message);
  process.exit(EXIT_CONFIG);
}
console.log("The database has the current schema.");
