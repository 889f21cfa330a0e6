// The test command: `npx -y bun@1.4.4 scripts/test.ts [file filters] [-t name] [flags of bun test]`. It starts the
// stores, creates one migrated template database, and runs the test files in parallel. `TEST_POSTGRES=15` to 18 selects
// the PostgreSQL version (18 by default). `TEST_POSTGRES_DEFAULTS=hostile` gives all databases the defaults of another
// program, and `TEST_POOLER=pgbouncer` puts PgBouncer in front of them (scripts/demo/stores/test-ground.ts).
//
// Tests whose needs (scripts/needs.ts) the machine does not meet are skipped; with `NO_SKIPS=1` a skipped test counts
// as failed. This file statically imports only built-in modules, because the dependencies may not be installed yet.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT, ensureInstalled } from "./install/install.ts";
import { installing, linkPrograms, NEED_NAMES, OPTIONAL } from "./needs.ts";

const FOLDERS = ["tests/unit", "tests/integration", "tests/conformance", "tests/attack"];
/**
 * The files of this folder run one after another, because they put load on the machine and kill stores and processes.
 */
const ONE_BY_ONE = "tests/operations";
// Flags whose next argument is their value and not a file filter.
const FLAGS_WITH_VALUE = [
  "-t",
  "--test-name-pattern",
  "--timeout",
  "--retry",
  "--seed",
  "--preload",
];
/** Time limit in ms for a test that hangs. It is long enough for a busy machine, because no test asserts durations. */
const TEST_TIMEOUT_MS = process.env["THOROUGH"] === "1" ? 900_000 : 180_000;
/** Maximum number of output lines of a failed test that are printed again at the end. */
const MOST_LINES = 60;

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

const given = process.argv.slice(2);
const hasFilter = given.some(
  (argument, at) => !argument.startsWith("-") && !FLAGS_WITH_VALUE.includes(given[at - 1] ?? ""),
);

let runner: ChildProcess | undefined;
let interrupted = false;

async function main(): Promise<number> {
  await ensureInstalled("all");
  // The dashboard is built once while the stores start. Otherwise each worker would build it while browsers wait for
  // their first page.
  const dashboard = hasFilter ? undefined : import("../src/dashboard/assets.ts");
  const built = dashboard?.then(({ builtDashboard }) => builtDashboard());
  const { withTestStores } = await import("./demo/stores/test-stores.ts");
  return withTestStores(async (environment) => {
    await built;
    if (interrupted) return 1;
    const programs = mkdtempSync(join(tmpdir(), "reviewrelay-programs-"));
    // Some tests start programs as another user, who must be able to read this folder.
    chmodSync(programs, 0o755);
    try {
      linkPrograms(programs);
      const { totals, status } = await runTests(environment, programs);
      const missing = readMissing(programs);
      if (missing.size > 0) console.log(listMissing(missing));
      if (process.env["NO_SKIPS"] === "1") forbidSkips(totals, missing);
      console.log(summary(totals));
      return status === 0 && totals.failed === 0 && totals.passed > 0 ? 0 : 1;
    } finally {
      rmSync(programs, { recursive: true });
    }
  });
}

async function runTests(
  environment: NodeJS.ProcessEnv,
  programs: string,
): Promise<{ totals: Totals; status: number }> {
  const child = spawn(
    process.execPath,
    [
      "test",
      // Workers keep their modules and compiled code between files, which saves a quarter of the CPU time.
      "--no-isolate",
      // `--no-orphans` is not set: it would kill the children of killed processes, which some tests observe.
      `--timeout=${TEST_TIMEOUT_MS}`,
      "--preload=./tests/support/needs.ts",
      // There are more workers than processors, because many files wait for processes and timers.
      `--parallel=${given.some((one) => one.startsWith(ONE_BY_ONE)) ? 1 : availableParallelism() + 2}`,
      ...given,
      ...(hasFilter ? [] : FOLDERS),
    ],
    {
      cwd: ROOT,
      env: {
        ...environment,
        PATH: join(programs, "base"),
        TEST_PROGRAMS: programs,
        // The workers keep all processors busy, so additional threads for garbage collection would only take time.
        BUN_JSC_numberOfGCMarkers: "1",
        // Most functions in tests do not run long enough to benefit from the last tier of the optimising compiler.
        BUN_JSC_useFTLJIT: "0",
        // This turns off a collection of garbage every second, which takes a seventh of a worker's CPU time.
        BUN_GC_TIMER_DISABLE: "1",
        // Freed memory is kept for the next file, because returning it and allocating it again takes time.
        MIMALLOC_PURGE_DELAY: "-1",
        ...(process.stdout.isTTY && { FORCE_COLOR: "1" }),
      },
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
  if (!hasFilter) {
    console.log(failures(output));
    console.log(slowestFiles(output));
  }
  return { totals: readTotals(output, status), status };
}

/** Reads the unmet needs. Each maps to the files that skipped tests because of it, once per skipped test. */
function readMissing(programs: string): Map<string, string[]> {
  const list = join(programs, "skipped");
  const files = new Map<string, string[]>();
  if (existsSync(list))
    for (const line of readFileSync(list, "utf8").trim().split("\n").toSorted()) {
      const [need = "", file = ""] = line.split("\t");
      files.set(need, [...(files.get(need) ?? []), file]);
    }
  return files;
}

/** Lists the unmet needs, and the command that installs them. */
function listMissing(missing: ReadonlyMap<string, readonly string[]>): string {
  const lines = [...missing].map(([need, files]) => `  ${need}: ${[...new Set(files)].join(", ")}`);
  const names = NEED_NAMES.filter((name) => missing.has(name));
  return [
    "\nTests were skipped because this machine lacks",
    ...lines,
    ...(names.length > 0 ? ["This installs it on Debian, as root:", ...installing(names)] : []),
  ].join("\n");
}

/**
 * Counts skipped tests as failed, except one for each time that an optional registry was missing. Any other unmet need
 * also counts as a failure, because a file may omit tests that are not even counted as skipped.
 */
function forbidSkips(totals: Totals, missing: ReadonlyMap<string, readonly string[]>): void {
  const allowed = [...OPTIONAL].flatMap((need) => missing.get(need) ?? []).length;
  const isLacking = [...missing.keys()].some((need) => !OPTIONAL.has(need));
  const forbidden = Math.max(totals.skipped - allowed, isLacking ? 1 : 0);
  totals.failed += forbidden;
  totals.skipped = Math.max(totals.skipped - forbidden, 0);
}

/** Collects the output of failed tests, so that their errors are at the end of a long output. */
function failures(output: string): string {
  const failed: string[] = [];
  let printed: string[] = [];
  for (const line of Bun.stripANSI(output).split("\n")) {
    // The totals follow this line, with the names of all failed tests.
    if (/^\d+ tests? (failed|skipped):$/.test(line)) break;
    printed.push(line);
    if (/^(\(fail\)|✗) /.test(line)) failed.push(...printed.slice(-MOST_LINES));
    if (/^(\(\w+\)|[✓✗»]) |^tests\/\S+:$/.test(line)) printed = [];
  }
  return failed.join("\n");
}

/** Lists the ten files whose tests took longest, with the sum of their times. */
function slowestFiles(output: string): string {
  const times = new Map<string, number>();
  let file = "";
  for (const line of Bun.stripANSI(output).split("\n")) {
    file = /(tests\/\S+\.test\.tsx?):$/.exec(line)?.[1] ?? file;
    const ms = Number(/^(?:\((?:pass|fail)\)|[✓✗]) .* \[([\d.]+)ms\]$/.exec(line)?.[1] ?? 0);
    if (ms > 0) times.set(file, (times.get(file) ?? 0) + ms);
  }
  const slowest = [...times].toSorted(([, a], [, b]) => b - a).slice(0, 10);
  return slowest.map(([name, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${name}`).join("\n");
}

/** Parses the counts at the end of bun test's output, one `<count> <word>` per line. */
function readTotals(output: string, status: number): Totals {
  const lines = Bun.stripANSI(output).split("\n").slice(-12);
  const count = (word: string) => {
    const line = lines.findLast((text) => new RegExp(`^\\s*\\d+ ${word}$`).test(text));
    return Number.parseInt(line ?? "0", 10);
  };
  const failed = count("fail");
  return {
    passed: count("pass"),
    // An error outside of any test, or a crashed runner, counts as a failure.
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
