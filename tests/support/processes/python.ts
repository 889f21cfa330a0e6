import { existsSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "../../../.cache/python");

/**
 * Installs packages into a virtual environment, and answers its interpreter; undefined without Python or its
 * packages.
 */
export function pythonWith(name: string, packages: readonly string[]): string | undefined {
  const folder = join(FOLDER, name);
  const python = join(folder, "bin/python3");
  const succeeds = (...command: string[]) =>
    Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" }).success;
  if (Bun.which("python3") === null) return undefined;
  if (!existsSync(python) && !succeeds("python3", "-m", "venv", folder)) return undefined;
  return succeeds(python, "-m", "pip", "install", "--quiet", ...packages) ? python : undefined;
}
