// `bun run migrate`: brings the database of DATABASE_URL to the current schema.
import { migrate } from "../db/migrate.ts";
import { EXIT_CONFIG } from "../src/lib/config.ts";

const url = process.env["DATABASE_URL"];
if (url === undefined || url === "") {
  console.error("DATABASE_URL is required (postgres://…).");
  process.exit(EXIT_CONFIG);
}
await migrate(url);
console.log("The database has the current schema.");
