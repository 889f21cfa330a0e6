// Builds the package of src/sdk/typescript, for releases and for tests.
import { cpSync, rmSync } from "node:fs";
import { basename, join } from "node:path";

import { ROOT } from "../db/executable.ts";

const SOURCE = join(ROOT, "src/sdk/typescript");
/** A test holds it equal to the served document. */
const DOCUMENT = join(ROOT, "tests/golden/openapi-baseline.json");

/**
 * Builds the package in a copy of its folder: installs its tools, compiles it, and has openapi-typescript write the
 * types of the API.
 */
export function buildTypescriptPackage(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  cpSync(SOURCE, folder, { recursive: true, filter: isSource });
  for (const step of [
    ["install", "--frozen-lockfile", "--ignore-scripts"],
    ["run", "--bun", "tsc"],
    ["run", "--bun", "types", DOCUMENT],
  ]) {
    const { success, stdout, stderr } = Bun.spawnSync([process.execPath, ...step], { cwd: folder });
    const said = stdout.toString() + stderr.toString();
    if (!success) throw new Error(`bun ${step.join(" ")}: ${said}`);
  }
}

const isSource = (path: string) => !["node_modules", "dist"].includes(basename(path));
