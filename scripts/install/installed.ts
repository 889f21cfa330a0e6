// Built-ins only: it is asked before there are dependencies.
import { existsSync } from "node:fs";
import { join } from "node:path";

/** EX_CONFIG of sysexits.h: starting it again cannot help. */
const EXIT_CONFIG = 78;

/** For the commands of production, which install nothing by themselves; ends the process where nothing is installed. */
export function requireInstalled(): void {
  if (existsSync(join(import.meta.dirname, "../../node_modules"))) return;
  console.error(
    "The dependencies are not installed: run `bun install --production --frozen-lockfile` here first.",
  );
  process.exit(EXIT_CONFIG);
}
