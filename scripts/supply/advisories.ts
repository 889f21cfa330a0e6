// `bun run advisories` exits with 1 if a used package has a known security advisory, and with 75 (EX_TEMPFAIL of
// sysexits.h) if no advisory database could be reached.
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const PATIENCE_MS = 60_000;

interface Advisory {
  readonly title: string;
  readonly severity: string;
  readonly url: string;
  readonly vulnerable_versions: string;
}

/** Queries the advisories. Bun uses the registry from which it installs. */
async function audit(): Promise<{ found?: Record<string, readonly Advisory[]>; said: string }> {
  const child = Bun.spawn([process.execPath, "audit", "--json"], {
    cwd: ROOT,
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

const { found, said } = await audit();
if (found === undefined) {
  const reason = said.trim().replace(/^error: /, "") || "no answer in a minute";
  console.log(`Nothing was checked because no advisory database is reachable (${reason}).`);
  process.exitCode = 75;
} else {
  const advisories = Object.entries(found).flatMap(([name, list]) =>
    list.map((one) => ({ name, ...one })),
  );
  for (const { name, severity, title, url, vulnerable_versions: versions } of advisories)
    console.log(`${name} ${versions}: ${severity}, ${title} (${url})`);
  console.log(`${advisories.length} known advisories for the packages of bun.lock.`);
  process.exitCode = advisories.length === 0 ? 0 : 1;
}
