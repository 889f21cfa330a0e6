import { afterAll } from "bun:test";
import { appendFileSync, existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import { isHere, type NeedName } from "../../scripts/needs.ts";

/** The folder of `linkPrograms`; unset if Bun runs the tests without scripts/test.ts. */
const FOLDER = process.env["TEST_PROGRAMS"];
const PATH = process.env["PATH"] ?? "";
const declared = new Set<NeedName>();

// The test command preloads this module, which runs this after each file. `chaos` uses it without the test runner.
if (process.env.NODE_ENV === "test")
  afterAll(() => {
    declared.clear();
    process.env["PATH"] = PATH;
  });

/**
 * Declares what this test file needs of the machine (the list is in scripts/needs.ts), and tells whether something of it is
 * missing: `test.skipIf(lacks("php", "go"))`. Until the end of the file, `process.env.PATH` has the programs; what a file does not
 * declare is on no PATH, as on a machine without it.
 */
export function lacks(...names: readonly NeedName[]): boolean {
  const missing = names.filter((name) => !isPresent(name));
  for (const name of missing) if (!declared.has(name)) skipped(name);
  for (const name of names) declared.add(name);
  if (FOLDER !== undefined) {
    const folders = [...declared].map((name) => join(FOLDER, name));
    process.env["PATH"] = [...folders, PATH].join(delimiter);
  }
  return missing.length > 0;
}

/** Tells whether the machine has something of the list, for the hooks of tests that declare it. */
export const isPresent = (name: NeedName): boolean =>
  FOLDER === undefined ? isHere(name) : existsSync(join(FOLDER, name));

/** Returns the path of a program of a need that this file declares. */
export function program(need: NeedName, name: string = need): string {
  if (!declared.has(need)) throw new Error(`This test needs ${need} and does not declare it.`);
  const path = Bun.which(name, { PATH: process.env["PATH"] ?? "" });
  if (path === null) throw new Error(`There is no ${name}.`);
  return path;
}

/** Records for the end of the run that tests are skipped because something is missing, such as packages of a registry. */
export function skipped(reason: string): true {
  const [file = ""] = /tests\/[\w/.-]+\.test\.tsx?/.exec(new Error().stack ?? "") ?? [];
  console.log(`Skipped, because there is no ${reason}: ${file}`);
  if (FOLDER !== undefined) appendFileSync(join(FOLDER, "skipped"), `${reason}\t${file}\n`);
  return true;
}
