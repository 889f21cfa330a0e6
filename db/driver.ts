// This file imports only built-in modules: it runs before PostgreSQL is connected, and in commands before the
// dependencies are installed.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { IS_EXECUTABLE } from "./executable.ts";

/** The expected digest of the driver's source code with the patch of db/patches. */
const PATCHED_DIGEST = "b560741e8712e0217d91b644a2ba9f95";

const INSTALL = "run `bun install --production --frozen-lockfile` here first.";

/**
 * Returns an error message if the installed PostgreSQL driver lacks the patch of db/patches, which adds deadlines of
 * statements and the handling of broken connections. Only `bun install` applies the patch; other installers silently
 * omit it.
 */
export function driverError(source = installedSource()): string | undefined {
  // The driver inside an executable needs no check, because the build of the executable has checked it.
  if (IS_EXECUTABLE) return undefined;
  if (source === undefined) return `The PostgreSQL driver is not installed: ${INSTALL}`;
  const digest = digestOf(source);
  if (digest === PATCHED_DIGEST) return undefined;
  return `The PostgreSQL driver in ${source} does not contain our patch (db/patches; its digest is ${digest}): ${INSTALL}`;
}

/** Returns the folder from which this process imports the driver. */
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
