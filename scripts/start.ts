// The start command: `npx -y bun@1.4.4 scripts/start.ts`, or `bun start` if Bun is installed. It statically imports
// only built-in modules, because it first installs the dependencies of a fresh clone.
import { ownBunError } from "../src/lib/version.ts";
import { ensureInstalled } from "./install/install.ts";

const USAGE = `Usage: npx -y bun@1.4.4 scripts/start.ts

Starts the product with its stores and demo data, and runs it until Ctrl-C. It writes to the folder .data, or to
DATA_DIR. Settings are environment variables, such as PORT=8090; docs/operations/settings.md lists them all.

  -h, --help  print this text and start nothing`;

const [argument] = process.argv.slice(2);
if (argument === "--help" || argument === "-h") {
  console.log(USAGE);
  process.exit(0);
}
if (argument !== undefined) {
  console.error(`Unknown argument: ${argument}\n\n${USAGE}`);
  process.exit(2);
}

const fault = ownBunError();
if (fault !== undefined) {
  console.error(fault);
  process.exit(78);
}

await ensureInstalled("demo");
const { start } = await import("./demo/start.ts");
await start();
