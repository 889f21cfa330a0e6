import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../../db/executable.ts";
import { acquireLock } from "../../../scripts/demo/stores/lock.ts";
import { buildExecutables } from "../../../scripts/executables/build.ts";
import { COMMIT } from "../../../src/lib/version.ts";

const CACHE = join(ROOT, ".cache/executables");

/**
 * Returns the path of the executable `reviewrelay-server` of the current sources; `reviewrelay` is beside it. The first
 * test file that calls builds both, and the others and later runs of the same sources use them.
 */
export async function builtExecutable(): Promise<string> {
  const folder = join(CACHE, digestOfSources());
  const server = join(folder, "reviewrelay-server");
  mkdirSync(CACHE, { recursive: true });
  let release = acquireLock(join(CACHE, "lock"));
  for (; release === undefined; release = acquireLock(join(CACHE, "lock"))) await Bun.sleep(100);
  try {
    if (existsSync(folder)) return server;
    // Those of earlier sources, and what a killed build left.
    for (const old of globSync("*/", { cwd: CACHE })) rmSync(join(CACHE, old), { recursive: true });
    const unfinished = join(CACHE, "unfinished");
    await buildExecutables({ folder: unfinished, commit: COMMIT });
    renameSync(unfinished, folder);
    return server;
  } finally {
    release();
  }
}

/** Returns a digest of the sources, without what the build of a package leaves in its folder. */
function digestOfSources(): string {
  const sources = ["db", "dispatcher", "scripts/executables", "src"]
    .flatMap((folder) => [...new Bun.Glob(`${folder}/**/*`).scanSync({ cwd: ROOT })].toSorted())
    .filter((name) => !/^src\/sdk\/.*\/(?:node_modules|dist|__pycache__)\//.test(name));
  const hash = createHash("sha256").update(COMMIT);
  for (const name of ["package.json", "bun.lock", "tsconfig.json", ...sources])
    hash.update(`\0${name}\0`).update(readFileSync(join(ROOT, name)));
  return hash.digest("hex").slice(0, 16);
}
