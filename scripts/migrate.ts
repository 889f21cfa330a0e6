// `bun run migrate`: brings the database of DATABASE_URL to the current schema.
// Its own imports are built-ins only: on a fresh clone nothing is installed yet.
import { requireInstalled } from "./install/installed.ts";

requireInstalled();
const { migrateDatabase } = await import("./operate/migrate-database.ts");
await migrateDatabase();
