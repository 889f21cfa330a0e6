import { existsSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "../../../.cache/python");

/** Tells whether Python has pip outside of environments; an own one takes most of the time to create an environment. */
const isPipShared = () => succeeds("python3", "-m", "pip", "--version");

/**
 * Installs packages into a virtual environment, and answers its interpreter; undefined without Python or its
 * packages.
 */
export function pythonWith(name: string, packages: readonly string[]): string | undefined {
  const folder = join(FOLDER, name);
  const python = join(folder, "bin/python3");
  if (Bun.which("python3") === null) return undefined;
  const options = isPipShared() ? ["--without-pip"] : [];
  if (!existsSync(python) && !succeeds("python3", "-m", "venv", ...options, folder))
    return undefined;
  return succeeds(...pipFor(python), "install", "--quiet", ...packages) ? python : undefined;
}

/** The command that installs packages for the interpreter of an environment. */
export const pipFor = (python: string): string[] =>
  isPipShared() ? ["python3", "-m", "pip", "--python", python] : [python, "-m", "pip"];

function succeeds(...command: string[]): boolean {
  return Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" }).success;
}
