// `bun run advisories` exits with 1 if a used package has a known security advisory, and with 75 (EX_TEMPFAIL of
// sysexits.h) if no advisory is known but a lock file could not be checked.
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const LOCK_FILES = ["bun.lock", "src/sdk/typescript/bun.lock"];
const PATIENCE_MS = 60_000;

interface Advisory {
  readonly title: string;
  readonly severity: string;
  readonly url: string;
  readonly vulnerable_versions: string;
}

interface Answer {
  readonly file: string;
  /** The advisories by package, unless the file was not checked. */
  readonly found?: Readonly<Record<string, readonly Advisory[]>>;
  readonly said: string;
}

/** Queries the advisories of a lock file. Bun uses the registry from which it installs. */
async function audit(file: string): Promise<Answer> {
  const child = Bun.spawn([process.execPath, "audit", "--json"], {
    cwd: join(ROOT, dirname(file)),
    stdout: "pipe",
    stderr: "pipe",
    timeout: PATIENCE_MS,
  });
  const [out, said] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  // The exit status is 1 both for an advisory and for an unreachable database, but only a real response is JSON.
  return { file, said, ...(out.trim() !== "" && { found: JSON.parse(out) }) };
}

const lineOf = (name: string, one: Advisory) =>
  `${name} ${one.vulnerable_versions}: ${one.severity}, ${one.title} (${one.url})`;

const answers = await Promise.all(LOCK_FILES.map(audit));
const unchecked = answers.filter(({ found }) => found === undefined);
const advisories = new Set(
  answers.flatMap(({ found = {} }) =>
    Object.entries(found).flatMap(([name, list]) => list.map((one) => lineOf(name, one))),
  ),
);
for (const line of advisories) console.log(line);
for (const { file, said } of unchecked) {
  const reason = said.trim().replace(/^error: /, "") || "no answer in a minute";
  console.log(`${file} was not checked: ${reason}`);
}
if (unchecked.length < answers.length) console.log(`${advisories.size} known advisories.`);
if (unchecked.length > 0) process.exitCode = 75;
if (advisories.size > 0) process.exitCode = 1;
