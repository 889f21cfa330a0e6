// Runs before there are dependencies, so it imports only built-ins and files that do the same.
import { existsSync } from "node:fs";
import { join } from "node:path";

import { driverError } from "../../db/driver.ts";
import { IS_EXECUTABLE, ROOT } from "../../db/executable.ts";

/** EX_CONFIG of sysexits.h: a restart cannot help. */
const EXIT_CONFIG = 78;

/**
 * Ends the process if the dependencies are missing or incorrect. It is for production commands, which install nothing
 * themselves.
 */
export function requireInstalled(): void {
  if (IS_EXECUTABLE) return;
  const fault = existsSync(join(ROOT, "node_modules"))
    ? driverError()
    : "The dependencies are not installed: run `bun install --production --frozen-lockfile` here first.";
  if (fault === undefined) return;
  console.error(fault);
  process.exit(EXIT_CONFIG);
}
