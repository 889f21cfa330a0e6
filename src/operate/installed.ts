// This file may run before the dependencies are installed. So it imports only built-in modules, and files that also
// import nothing else.
import { existsSync } from "node:fs";
import { join } from "node:path";

import { driverError } from "../../db/driver.ts";
import { IS_EXECUTABLE, ROOT } from "../../db/executable.ts";

/** Exit status for a wrong configuration (EX_CONFIG of sysexits.h), in which case a restart cannot help. */
const EXIT_CONFIG = 78;

/**
 * Ends the process if the dependencies are missing or incorrect. Production commands call it, because they do not
 * install dependencies themselves.
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
