// This file imports built-ins only, because the start command calls it before the dependencies are installed.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../db/executable.ts";
import manifest from "../../package.json" with { type: "json" };

/** The version of ReviewRelay. */
export const VERSION = manifest.version;

/** The commit of the sources, or "unknown" where they are neither a git checkout nor the executable. */
export const COMMIT = typeof BUILD_COMMIT === "string" ? BUILD_COMMIT : headCommit();

/** A constant of the executable. */
declare const BUILD_COMMIT: string | undefined;

/** Reads the commit of a checkout from its files, because the machine may have no git. */
function headCommit(): string {
  const git = join(ROOT, ".git");
  if (!existsSync(join(git, "HEAD"))) return "unknown";
  const head = readFileSync(join(git, "HEAD"), "utf8").trim();
  const reference = head.replace(/^ref: /, "");
  if (reference === head) return head;
  const loose = join(git, reference);
  if (existsSync(loose)) return readFileSync(loose, "utf8").trim();
  if (!existsSync(join(git, "packed-refs"))) return "unknown";
  const packed = readFileSync(join(git, "packed-refs"), "utf8").split("\n");
  return packed.find((line) => line.endsWith(` ${reference}`))?.split(" ")[0] ?? "unknown";
}

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
  return bunError(manifest.engines.bun, Bun.version);
}
