// The start command: `npx -y bun@1.4.4 scripts/start.ts` (with Bun installed: `bun start`). It statically imports
// only built-ins, because it installs the dependencies of a fresh clone first.
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
