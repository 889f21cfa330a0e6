// This file imports only built-in modules, because the start command calls it before the dependencies are installed.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../db/executable.ts";
import manifest from "../../package.json" with { type: "json" };

export const VERSION = manifest.version;

/** The commit of the sources. It is "unknown" if they are neither a git checkout nor an executable. */
export const COMMIT = typeof BUILD_COMMIT === "string" ? BUILD_COMMIT : headCommit();

/** The bundler replaces this constant in an executable. */
declare const BUILD_COMMIT: string | undefined;

/** Reads the commit of a checkout from the files of git, because git itself may not be installed. */
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

/** Returns an error message if `version` of Bun does not satisfy `range`, such as ">=1.4.4". */
export function bunError(range: string, version: string): string | undefined {
  // A canary version counts as the release that it precedes.
  const [release = ""] = version.split("-");
  if (Bun.semver.satisfies(release, range)) return undefined;
  const wanted = range.replace(/^\D+/, "");
  return `ReviewRelay needs Bun ${range}; this is Bun ${version}. Install Bun ${wanted}, or run \`npx -y bun@${wanted}\` instead of \`bun\`.`;
}

/** Returns an error message if the running Bun does not satisfy `engines` of `package.json`. */
export function ownBunError(): string | undefined {
  return bunError(manifest.engines.bun, Bun.version);
}
