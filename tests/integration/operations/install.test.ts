// Runs the install of the start command, and the hooks of docs/contributing.md, in a clone with its own repository.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT } from "../../../scripts/install/install.ts";
import { fixture } from "../../support/fixture.ts";
import { lacks } from "../../support/needs.ts";

const hasTools = !lacks("git", "bash");

test.skipIf(!hasTools)("an install leaves the configuration of git alone", () => {
  const before = inClone("git", "config", "--local", "--list");
  const installed = inClone(process.execPath, "-e", installOf("all"));
  expect(installed).toEqual({ status: 0, said: "" });
  expect(inClone("git", "config", "--local", "--list")).toEqual(before);
  expect(commit("Anything goes")).toMatchObject({ status: 0 });
});

test.skipIf(!hasTools)("the dependencies of the demo are enough for it, and not for tests", () => {
  const stamp = join(clone.folder, "node_modules", STAMP);
  const [lock] = readFileSync(stamp, "utf8").split(" ");
  rmSync(stamp);
  writeFileSync(stamp, `${lock} demo`);
  expect(inClone(process.execPath, "-e", installOf("demo"))).toEqual({
    status: 0,
    said: "",
  });
  // The clone has no package.json, so the install fails.
  expect(inClone(process.execPath, "-e", installOf("all"))).toEqual({
    status: 1,
    said: expect.stringMatching(/^Installing dependencies .*Could not install/s),
  });
});

test.skipIf(!hasTools)(
  "the command of the guide lets git check the subjects of commits",
  async () => {
    const guide = await Bun.file(join(ROOT, "docs/contributing.md")).text();
    const [, command = ""] = /^```sh run \S+install\.test\.ts\n([^]*?)^```$/m.exec(guide) ?? [];
    expect(inClone("bash", "-euc", command)).toEqual({ status: 0, said: "" });
    for (const subject of ["Anything goes", "area:", `area: ${"a".repeat(67)}`])
      expect(commit(subject)).toEqual({ status: 1, said: expect.stringContaining(subject) });
    expect(commit(`area: ${"a".repeat(66)}`)).toMatchObject({ status: 0 });
  },
);

const STAMP = ".bun-lock-sha256";
const installOf = (needed: string) =>
  `await (await import("./scripts/install/install.ts")).ensureInstalled("${needed}")`;

const clone = fixture(() => {
  const folder = mkdtempSync(join(tmpdir(), "install-"));
  for (const path of [
    "scripts/install",
    "scripts/hooks",
    "db/driver.ts",
    "db/executable.ts",
    "bun.lock",
  ])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  for (const path of ["postgres", STAMP])
    symlinkSync(join(ROOT, "node_modules", path), join(folder, "node_modules", path));
  spawnSync("git", ["init", "-q", folder], { env: ALONE });
  return { folder, stop: () => rmSync(folder, { recursive: true }) };
}, hasTools);

/** Ignores the git configuration of the user who runs the tests. */
const ALONE = {
  PATH: process.env["PATH"] ?? "",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
};

function inClone(program: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: clone.folder, env: ALONE });
  return { status, said: `${stdout.toString()}${stderr.toString()}` };
}

function commit(subject: string) {
  const author = ["-c", "user.name=Ada", "-c", "user.email=ada@reviews.example"];
  return inClone("git", ...author, "commit", "-q", "--allow-empty", "-m", subject);
}
