// Runs the checks that need no store: all of them (`bun run check`), or the named ones (`bun scripts/check.ts imports
// links`).
import { join } from "node:path";

import { ensureInstalled } from "./install/install.ts";

const ROOT = join(import.meta.dir, "..");
const FOLDERS = ["db", "dispatcher", "scripts", "src", "tests"];
/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

const CHECKS: [name: string, command: string[]][] = [
  ["format", ["oxfmt", "--check", ...FOLDERS]],
  // Type-aware rules need all types, so the same pass also checks the types. Each file uses its own tsconfig.
  ["lint-and-types", ["oxlint", "--type-check", "-c", "scripts/lint/oxlintrc.json", ...FOLDERS]],
  ["dead-code", ["knip"]],
  ["imports", [process.execPath, "scripts/check/imports.ts"]],
  ["citations", [process.execPath, "scripts/check/citations.ts"]],
  ["migrations", ["drizzle-kit", "check", "--config", "db/drizzle.config.ts"]],
  ["licences", [process.execPath, "scripts/supply/licenses.ts"]],
  ["links", [process.execPath, "scripts/check/links.ts"]],
  ["spelling", [process.execPath, "scripts/check/spelling.ts"]],
  ["language", [process.execPath, "scripts/check/language.ts"]],
];

interface Finding {
  name: string;
  output: string;
  ok: boolean;
  seconds: string;
}

async function run([name, [program = "", ...rest]]: (typeof CHECKS)[number]): Promise<Finding> {
  const beganAt = performance.now();
  const own = program === process.execPath;
  const command = own ? [program] : [process.execPath, "--bun", "run", "--silent", program];
  const child = Bun.spawn([...command, ...rest], {
    cwd: ROOT,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const ok = (await child.exited) === 0;
  return { name, output: stdout + stderr, ok, seconds: secondsSince(beganAt) };
}

const secondsSince = (beganAt: number) => ((performance.now() - beganAt) / 1_000).toFixed(1);

const names = process.argv.slice(2);
const unknown = names.filter((one) => CHECKS.every(([name]) => name !== one));
if (unknown.length > 0) {
  const all = CHECKS.map(([name]) => name).join(", ");
  console.error(`Unknown check: ${unknown.join(", ")}. The checks are: ${all}.`);
  process.exit(EXIT_USAGE);
}
await ensureInstalled("all");
const startedAt = performance.now();
const chosen = CHECKS.filter(([name]) => names.length === 0 || names.includes(name));
const findings = await Promise.all(chosen.map(run));
for (const { name, output, ok, seconds } of findings) {
  if (!ok) console.log(`\n${output.trim()}\n`);
  // The checks run in parallel and share the processors, so each takes longer than alone.
  console.log(`${ok ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
}
const seconds = secondsSince(startedAt);
const failed = findings.filter(({ ok }) => !ok).length;
console.log(
  failed === 0
    ? `${names.length === 0 ? "All" : names.length} checks pass (${seconds} s).`
    : `${failed} of ${findings.length} checks fail (${seconds} s).`,
);
process.exit(failed === 0 ? 0 : 1);
