// `bun run setup`: brings a database into use. `bun run setup --help` says what it asks for.
// Its own imports are built-ins only: on a fresh clone nothing is installed yet.
import { requireInstalled } from "./install/installed.ts";

requireInstalled();
const { main } = await import("./setup/setup.ts");
process.exitCode = await main(process.argv.slice(2));
