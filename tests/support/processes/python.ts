import { existsSync } from "node:fs";
import { join } from "node:path";
import { lacks, skipped } from "../needs.ts";

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
  if (lacks("python")) return undefined;
  const options = isPipShared() ? ["--without-pip"] : [];
  if (!existsSync(python) && !succeeds("python3", "-m", "venv", ...options, folder))
    return undefined;
  if (succeeds(...pipFor(python), "install", "--quiet", ...packages)) return python;
  skipped(`registry with ${packages.join(", ")}`);
  return undefined;
}

/** The command that installs packages for the interpreter of an environment. */
export const pipFor = (python: string): string[] =>
  isPipShared() ? ["python3", "-m", "pip", "--python", python] : [python, "-m", "pip"];

function succeeds(...command: string[]): boolean {
  const options = { env: process.env, stdout: "ignore", stderr: "ignore" } as const;
  return Bun.spawnSync(command, options).success;
}
