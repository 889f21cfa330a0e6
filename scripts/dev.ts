// The development loop: `bun run dev`. Like the start command, but the API and the dispatcher restart when a source
// file changes, and the pages of the dashboard are replaced in the browser without a reload.
import { ensureInstalled } from "./install/install.ts";

await ensureInstalled("all");
const { start } = await import("./demo/start.ts");
await start({ isWatching: true });
