// `bun run advisories`: fails where a package that we use has a known advisory. Where no database of advisories can be
// reached it says so, and fails nobody.
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const PATIENCE_MS = 60_000;

interface Advisory {
  readonly title: string;
  readonly severity: string;
  readonly url: string;
  readonly vulnerable_versions: string;
}

/** Bun asks the registry that it installs from. */
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
  // Its status is 1 for an advisory as well as for a database that is away; only an answer is JSON.
  return out.trim() === "" ? { said } : { said, found: JSON.parse(out) };
}

const { found, said } = await audit();
if (found === undefined) {
  const reason = said.trim().replace(/^error: /, "") || "no answer in a minute";
  console.log(`Nothing was checked: no database of advisories can be reached (${reason}).`);
} else {
  const advisories = Object.entries(found).flatMap(([name, list]) =>
    list.map((one) => ({ name, ...one })),
  );
  for (const { name, severity, title, url, vulnerable_versions: versions } of advisories)
    console.log(`${name} ${versions}: ${severity}, ${title} (${url})`);
  console.log(`${advisories.length} known advisories for the packages of bun.lock.`);
  process.exitCode = advisories.length === 0 ? 0 : 1;
}
