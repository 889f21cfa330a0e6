// Built-ins only: it is asked before anything is connected to, and by commands before there are dependencies.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Of the driver's source with db/patches applied. */
const PATCHED = "f4b698fc657a4b784616809d6fa607a9";

const INSTALL = "run `bun install --production --frozen-lockfile` here first.";

/**
 * Why the PostgreSQL driver that is installed is not ours, or undefined where it is. Its patch holds the deadlines of
 * statements and what becomes of connections that break; only `bun install` applies it, any other installer leaves it
 * out without a word.
 */
export function driverError(source = installedSource()): string | undefined {
  if (source === undefined) return `The PostgreSQL driver is not installed: ${INSTALL}`;
  const digest = digestOf(source);
  if (digest === PATCHED) return undefined;
  return `The PostgreSQL driver in ${source} is not the one with our patch (db/patches; its digest is ${digest}): ${INSTALL}`;
}

/** The folder that our own import of the driver reads. */
function installedSource(): string | undefined {
  try {
    return dirname(fileURLToPath(import.meta.resolve("postgres")));
  } catch {
    return undefined;
  }
}

function digestOf(folder: string): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder).toSorted())
    hash
      .update(name)
      .update("\0")
      .update(readFileSync(join(folder, name)))
      .update("\0");
  return hash.digest("hex").slice(0, 32);
}
