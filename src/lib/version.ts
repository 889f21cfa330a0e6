// This file imports built-ins only, because the start command calls it before the dependencies are installed.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import manifest from "../../package.json" with { type: "json" };

/** Whether this process is the executable of scripts/server-build.ts, which has its sources and files inside. */
export const IS_EXECUTABLE = import.meta.dirname.startsWith("/$bunfs/");

/** The folder of `package.json`; all files that the product reads are below it, in the executable, too. */
export const ROOT = IS_EXECUTABLE ? import.meta.dirname : join(import.meta.dirname, "../..");

/** The version of ReviewRelay. */
export const VERSION = manifest.version;

/** The commit of the sources, or "unknown" where they are neither a git checkout nor the executable. */
export const COMMIT = typeof BUILD_COMMIT === "string" ? BUILD_COMMIT : headCommit();

/** A constant of the executable. */
declare const BUILD_COMMIT: string | undefined;

/** Returns the command line of an operator's command, as messages name it. */
export function commandLine(name: string): string {
  return IS_EXECUTABLE ? `reviewrelay-server ${name}` : `bun run ${name}`;
}

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
