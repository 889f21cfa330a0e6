// `bun run advisories` exits with 1 if a used package has a known security advisory, and with 75 (EX_TEMPFAIL of
// sysexits.h) if no advisory database could be reached.
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
/** The folders that have a bun.lock. */
const LOCKED = [ROOT, join(ROOT, "src/sdk/typescript")];
const PATIENCE_MS = 60_000;

interface Advisory {
  readonly title: string;
  readonly severity: string;
  readonly url: string;
  readonly vulnerable_versions: string;
}

/** Queries the advisories of a folder. Bun uses the registry from which it installs. */
async function audit(
  cwd: string,
): Promise<{ found?: Record<string, readonly Advisory[]>; said: string }> {
  const child = Bun.spawn([process.execPath, "audit", "--json"], {
    cwd,
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
  return out.trim() === "" ? { said } : { said, found: JSON.parse(out) };
}

const lineOf = (name: string, one: Advisory) =>
  `${name} ${one.vulnerable_versions}: ${one.severity}, ${one.title} (${one.url})`;

const answers = await Promise.all(LOCKED.map(audit));
const unanswered = answers.find(({ found }) => found === undefined);
if (unanswered !== undefined) {
  const reason = unanswered.said.trim().replace(/^error: /, "") || "no answer in a minute";
  console.log(`Nothing was checked because no advisory database is reachable (${reason}).`);
  process.exitCode = 75;
} else {
  const advisories = new Set(
    answers.flatMap(({ found = {} }) =>
      Object.entries(found).flatMap(([name, list]) => list.map((one) => lineOf(name, one))),
    ),
  );
  for (const line of advisories) console.log(line);
  console.log(`${advisories.size} known advisories.`);
  process.exitCode = advisories.size === 0 ? 0 : 1;
}
