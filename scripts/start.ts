// The start command: `npx -y bun@1.4.4 scripts/start.ts` (with Bun installed: `bun start`).
// Its own imports are built-ins only: on a fresh clone the dependencies are installed first.
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
