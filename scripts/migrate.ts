// `bun run migrate`: brings the database of DATABASE_URL to the current schema. It statically imports only built-ins,
// because a fresh clone has no dependencies installed.
import { requireInstalled } from "./install/installed.ts";

requireInstalled();
const { migrateDatabase } = await import("./operate/migrate-database.ts");
await migrateDatabase();
