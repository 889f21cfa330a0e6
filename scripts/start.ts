// The start command: `npx -y bun@1.4.4 scripts/start.ts`, or `bun start` if Bun is installed. It statically imports
// only built-in modules, because it first installs the dependencies of a fresh clone.
import { ownBunError } from "../src/lib/version.ts";
import { ensureInstalled } from "./install/install.ts";

const fault = ownBunError();
if (fault !== undefined) {
  console.error(fault);
  process.exit(78);
}

await ensureInstalled("demo");
const { start } = await import("./demo/start.ts");
await start();
