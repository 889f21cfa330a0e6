import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { installHooks } from "../../../scripts/install/install.ts";

const hasGit = spawnSync("git", ["--version"]).status === 0;

test.skipIf(!hasGit)("sets the hooks of a fresh clone once and reports it", () => {
  git("init", "-q");
  installHooks(folder);
  installHooks(folder);
  expect(git("config", "core.hooksPath")).toBe("scripts/hooks");
  expect(said).toEqual(["Commits are checked by the hooks in scripts/hooks."]);
});

test.skipIf(!hasGit)("keeps hooks that are already configured", () => {
  git("init", "-q");
  git("config", "core.hooksPath", "mine");
  installHooks(folder);
  expect(git("config", "core.hooksPath")).toBe("mine");
  expect(said).toEqual([]);
});

test("does nothing in a copy without .git", () => {
  installHooks(folder);
  expect(said).toEqual([]);
});

// Ignores the git configuration of the user who runs the tests.
const ALONE = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };

const before = Object.keys(ALONE).map((name) => [name, process.env[name]] as const);

let folder: string;

let said: string[];

const log = spyOn(console, "log");

beforeEach(() => {
  Object.assign(process.env, ALONE);
  folder = mkdtempSync(join(tmpdir(), "install-"));
  said = [];
  log.mockImplementation((text: string) => void said.push(text));
});

afterEach(() => {
  for (const [name, value] of before)
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  log.mockRestore();
  rmSync(folder, { recursive: true });
});

const git = (...args: string[]) =>
  spawnSync("git", ["-C", folder, ...args])
    .stdout.toString()
    .trim();
