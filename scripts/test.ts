// The test command: `npx -y bun@1.4.4 scripts/test.ts [file filters] [-t name] [flags of bun test]`.
// Starts the stores (`TEST_POSTGRES=15` to 18 chooses PostgreSQL's version, 18 if absent), makes one migrated template database, and runs the test files in parallel.
// Its own imports are built-ins only: the dependencies may not be installed yet.
import { type ChildProcess, spawn } from "node:child_process";
import { availableParallelism } from "node:os";

import { ROOT, ensureInstalled } from "./install/install.ts";

const FOLDERS = ["tests/unit", "tests/integration", "tests/conformance", "tests/attack"];
// Flags whose value is the next argument, which is therefore no file filter.
const FLAGS_WITH_VALUE = [
  "-t",
  "--test-name-pattern",
  "--timeout",
  "--retry",
  "--seed",
  "--preload",
];
/** Ends a test that hangs, and none that a loaded machine is slow at: none asserts how long anything took. */
const TEST_TIMEOUT_MS = 180_000;

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

let runner: ChildProcess | undefined;
let interrupted = false;

async function main(): Promise<number> {
  await ensureInstalled("all");
  const { withTestStores } = await import("./demo/stores/test-stores.ts");
  return withTestStores(async (environment) => {
    if (interrupted) return 1;
    const { totals, status } = await runTests(environment);
    console.log(summary(totals));
    return status === 0 && totals.failed === 0 && totals.passed > 0 ? 0 : 1;
  });
}

async function runTests(
  environment: NodeJS.ProcessEnv,
): Promise<{ totals: Totals; status: number }> {
  const given = process.argv.slice(2);
  const hasFilter = given.some(
    (argument, at) => !argument.startsWith("-") && !FLAGS_WITH_VALUE.includes(given[at - 1] ?? ""),
  );
  const child = spawn(
    process.execPath,
    [
      "test",
      // Not with --no-orphans: it kills what a killed child had started, which is what some tests look at.
      `--timeout=${TEST_TIMEOUT_MS}`,
      // More workers than processors, because many files wait for servers that fail over or drain.
      `--parallel=${availableParallelism() + 2}`,
      ...given,
      ...(hasFilter ? [] : FOLDERS),
    ],
    {
      cwd: ROOT,
      env: { ...environment, ...(process.stdout.isTTY && { FORCE_COLOR: "1" }) },
      stdio: ["ignore", "inherit", "pipe"],
    },
  );
  runner = child;
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    process.stderr.write(chunk);
    output += chunk;
  });
  const status = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  });
  return { totals: readTotals(output, status), status };
}

/** From the block of counts that bun test ends with, one `<count> <word>` a line. */
function readTotals(output: string, status: number): Totals {
  const lines = Bun.stripANSI(output).split("\n").slice(-12);
  const count = (word: string) => {
    const line = lines.findLast((text) => new RegExp(`^\\s*\\d+ ${word}$`).test(text));
    return Number.parseInt(line ?? "0", 10);
  };
  const failed = count("fail");
  return {
    passed: count("pass"),
    // An error outside any test, or a runner that died, is a failure too.
    failed: failed === 0 && status !== 0 && count("pass") > 0 ? 1 : failed,
    skipped: count("skip") + count("todo"),
  };
}

function summary({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => {
    interrupted = true;
    runner?.kill("SIGTERM");
  });
}

process.exitCode = await main();
