import { readFileSync } from "node:fs";
import { join } from "node:path";

const file: { version: string } = JSON.parse(
  readFileSync(join(import.meta.dir, "../../package.json"), "utf8"),
);

/** The version of ReviewRelay. */
export const VERSION = file.version;

// This file imports built-ins only, because the start command calls it before the dependencies are installed.

/** Returns an error message unless `version` of Bun satisfies `range`, such as ">=1.4.4". */
export function bunError(range: string, version: string): string | undefined {
  // A canary counts as the release that it precedes.
  const [release = ""] = version.split("-");
  if (Bun.semver.satisfies(release, range)) return undefined;
  const wanted = range.replace(/^\D+/, "");
  return `ReviewRelay needs Bun ${range}; this is Bun ${version}. Install Bun ${wanted}, or put \`npx -y bun@${wanted}\` where you say \`bun\`.`;
}

/** Checks the Bun of this process against `engines` of `package.json`. */
export function ownBunError(): string | undefined {
  const manifest: { engines: { bun: string } } = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
  );
  return bunError(manifest.engines.bun, Bun.version);
}
