// `bun run advisories`: fails if a package in use has a known security advisory (1), or if no advisory database could be
// reached (75, EX_TEMPFAIL of sysexits.h).
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const PATIENCE_MS = 60_000;

interface Advisory {
  readonly title: string;
  readonly severity: string;
  readonly url: string;
  readonly vulnerable_versions: string;
}

/** Bun queries the registry from which it installs. */
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
  // The exit status is 1 for an advisory and for an unreachable database; only a real answer is JSON.
  return out.trim() === "" ? { said } : { said, found: JSON.parse(out) };
}

const { found, said } = await audit();
if (found === undefined) {
  const reason = said.trim().replace(/^error: /, "") || "no answer in a minute";
  console.log(`Nothing was checked: no advisory database can be reached (${reason}).`);
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
