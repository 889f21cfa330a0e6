// The start command: `npx -y bun@1.4.4 scripts/start.ts` (with Bun installed: `bun start`).
// Its own imports are built-ins only: on a fresh clone the dependencies are installed first.
import "./install/requirements.ts";

import { ensureInstalled } from "./install/install.ts";

await ensureInstalled("production");
const { start } = await import("./demo/start.ts");
await start();
