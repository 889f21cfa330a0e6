import { readFileSync } from "node:fs";
import { join } from "node:path";

const file: { version: string } = JSON.parse(
  readFileSync(join(import.meta.dir, "../../package.json"), "utf8"),
);

/** Of the product. */
export const VERSION = file.version;

// Built-ins only: the start command asks before there are dependencies.

/** What is wrong with what runs this; nothing if it is a Bun of `range`, such as ">=1.4.4". */
export function bunError(range: string, version: string): string | undefined {
  // A canary counts as the release that it leads to.
  const [release = ""] = version.split("-");
  if (Bun.semver.satisfies(release, range)) return undefined;
  const wanted = range.replace(/^\D+/, "");
  return `ReviewRelay needs Bun ${range}; this is Bun ${version}. Install Bun ${wanted}, or put \`npx -y bun@${wanted}\` where you say \`bun\`.`;
}

/** The same of this process, by what `package.json` wants. */
export function ownBunError(): string | undefined {
  const manifest: { engines: { bun: string } } = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
  );
  return bunError(manifest.engines.bun, Bun.version);
}
