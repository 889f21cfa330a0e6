// This file imports only built-in modules, because the start command loads it before the dependencies are installed.
import { join } from "node:path";

/**
 * Whether this process is an executable that scripts/executables.ts has built. Its modules and files are inside of it.
 */
export const IS_EXECUTABLE = import.meta.dirname.startsWith("/$bunfs/");

/** The folder of `package.json`. All files that the product reads are below it, in an executable, too. */
export const ROOT = IS_EXECUTABLE ? import.meta.dirname : join(import.meta.dirname, "..");

/** Returns the command line of an operator's command for messages. */
export function commandLine(name: string): string {
  return IS_EXECUTABLE ? `reviewrelay-server ${name}` : `bun run ${name}`;
}
