// Runs one benchmark: `bun run bench <name>` prints its table and writes JSON to bench-results/.
import { exit } from "node:process";

import { fieldsOf } from "../src/lib/fields.ts";

const BENCHMARKS: Record<string, () => Promise<unknown>> = {
  auth: () => import("./bench/auth.ts"),
  dispatch: () => import("./bench/dispatch.ts"),
  ingest: () => import("./bench/ingest.ts"),
  live: () => import("./bench/live.ts"),
  memory: () => import("./bench/memory.ts"),
  reviews: () => import("./bench/reviews.ts"),
};
/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

// Removes the name, so that a benchmark sees only its own arguments.
const [name = ""] = process.argv.splice(2, 1);
const run = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
if (run === undefined) {
  console.error(`Usage: bun run bench <name>, with one of: ${Object.keys(BENCHMARKS).join(", ")}`);
  console.error("live measures a running product of any checkout: bun run bench live --help");
  exit(EXIT_USAGE);
}
try {
  await run();
} catch (error) {
  const { code, message } = fieldsOf(error);
  if (!String(code).startsWith("ERR_PARSE_ARGS_")) throw error;
  console.error(
    `${String(message)}. See bun run bench live --help, or the first lines of scripts/bench/${name}.ts.`,
  );
  exit(EXIT_USAGE);
}
// Ends connections and child processes that a benchmark has left open.
exit();
