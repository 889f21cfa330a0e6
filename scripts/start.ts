// The start command: `npx -y bun@1.4.4 scripts/start.ts` (with Bun installed: `bun start`).
// Its own imports are built-ins only: on a fresh clone the dependencies are installed first.
import { ownBunFault } from "../src/lib/bun-version.ts";
import { ensureInstalled } from "./install/install.ts";

const fault = ownBunFault();
if (fault !== undefined) {
  console.error(fault);
  process.exit(78);
}

await ensureInstalled("demo");
const { start } = await import("./demo/start.ts");
await start();
