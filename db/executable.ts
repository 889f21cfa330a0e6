// This file imports built-ins only, because the start command reads it before the dependencies are installed.
import { join } from "node:path";

/** Whether this process is the executable of scripts/executables.ts, which has its modules and files inside. */
export const IS_EXECUTABLE = import.meta.dirname.startsWith("/$bunfs/");

/** The folder of `package.json`; all files that the product reads are below it, in the executable, too. */
export const ROOT = IS_EXECUTABLE ? import.meta.dirname : join(import.meta.dirname, "..");

/** Returns the command line of an operator's command, as messages name it. */
export function commandLine(name: string): string {
  return IS_EXECUTABLE ? `reviewrelay-server ${name}` : `bun run ${name}`;
}
