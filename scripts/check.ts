// Runs every check that needs no store: `bun run check`.
import { join } from "node:path";

import { ensureInstalled } from "./install/install.ts";

const ROOT = join(import.meta.dir, "..");
const FOLDERS = ["db", "dispatcher", "scripts", "src", "tests"];

const CHECKS: [name: string, command: string[]][] = [
  ["format", ["oxfmt", "--check", ...FOLDERS]],
  // Type-aware rules need all types anyway, so the same pass checks the types; each file uses its own tsconfig.
  ["lint and types", ["oxlint", "--type-check", "-c", "scripts/lint/oxlintrc.json", ...FOLDERS]],
  ["dead code", ["knip"]],
  ["imports", [process.execPath, "scripts/check/imports.ts"]],
  ["citations", [process.execPath, "scripts/check/citations.ts"]],
  ["migrations", ["drizzle-kit", "check", "--config", "db/drizzle.config.ts"]],
  ["licences", [process.execPath, "scripts/supply/licenses.ts"]],
  ["links", [process.execPath, "scripts/check/links.ts"]],
  ["blocks", [process.execPath, "scripts/check/blocks.ts"]],
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

await ensureInstalled("all");
const startedAt = performance.now();
const findings = await Promise.all(CHECKS.map(run));
for (const { name, output, ok, seconds } of findings) {
  if (!ok) console.log(`\n${output.trim()}\n`);
  // All checks share the processors, so each takes longer here than alone.
  console.log(`${ok ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
}
const seconds = secondsSince(startedAt);
const failed = findings.filter(({ ok }) => !ok).length;
console.log(
  failed === 0
    ? `All checks pass (${seconds} s).`
    : `${failed} of ${findings.length} checks fail (${seconds} s).`,
);
process.exit(failed === 0 ? 0 : 1);
