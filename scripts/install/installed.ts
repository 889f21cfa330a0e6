// Built-ins only, and what needs no more itself: it is asked before there are dependencies.
import { existsSync } from "node:fs";
import { join } from "node:path";

import { driverError } from "../../db/driver.ts";

/** EX_CONFIG of sysexits.h: starting it again cannot help. */
const EXIT_CONFIG = 78;

/**
 * For the commands of production, which install nothing by themselves; ends the process where nothing is installed, or
 * not as it has to be.
 */
export function requireInstalled(): void {
  const fault = existsSync(join(import.meta.dirname, "../../node_modules"))
    ? driverError()
    : "The dependencies are not installed: run `bun install --production --frozen-lockfile` here first.";
  if (fault === undefined) return;
  console.error(fault);
  process.exit(EXIT_CONFIG);
}
