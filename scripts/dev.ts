// The development loop: `bun run dev [--inspect]`. It works like the start command, but the API and the dispatcher
// restart when a source file changes, and pages of the dashboard are replaced in the browser without a reload. With
// `--inspect` a debugger can attach to the API at port 6499 and to the dispatcher at port 6500.
import { ensureInstalled } from "./install/install.ts";

await ensureInstalled("all");
const { start } = await import("./demo/start.ts");
const inspectPort = process.argv.includes("--inspect") ? 6_499 : undefined;
await start({ isWatching: true, inspectPort });
