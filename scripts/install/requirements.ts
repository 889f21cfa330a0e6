// Imported first by whatever is started by hand: an older Bun, or a clone in which nothing is installed, would fail later
// and say something else. Built-ins only.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** EX_CONFIG of sysexits.h: starting it again cannot help. */
const EXIT_CONFIG = 78;

/** What is wrong with what runs this; nothing if it is a Bun of `range`, such as ">=1.4.4". */
export function bunFault(range: string, version: string | undefined): string | undefined {
  const wanted = range.replace(/^\D+/, "");
  const remedy = `Install Bun ${wanted}, or put \`npx -y bun@${wanted}\` where you say \`bun\`.`;
  if (version === undefined) return `ReviewRelay runs on Bun ${range}, not on Node. ${remedy}`;
  // A canary counts as the release that it leads to.
  const [release = ""] = version.split("-");
  if (Bun.semver.satisfies(release, range)) return undefined;
  return `ReviewRelay needs Bun ${range}; this is Bun ${version}. ${remedy}`;
}

/** For the commands of production, which install nothing by themselves. */
export function requireInstalled(): void {
  if (existsSync(join(ROOT, "node_modules"))) return;
  exitWith(
    "The dependencies are not installed: run `bun install --production --frozen-lockfile` here first.",
  );
}

function exitWith(fault: string): never {
  console.error(fault);
  process.exit(EXIT_CONFIG);
}

const manifest: { engines: { bun: string } } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);
const fault = bunFault(manifest.engines.bun, process.versions["bun"]);
if (fault !== undefined) exitWith(fault);
