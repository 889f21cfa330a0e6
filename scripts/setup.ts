// `bun run setup`: prepares a database for production; see `bun run setup --help`. It statically imports only
// built-ins, because a fresh clone has no dependencies installed.
import { requireInstalled } from "./install/installed.ts";

requireInstalled();
const { main } = await import("./setup/setup.ts");
process.exitCode = await main(process.argv.slice(2));
