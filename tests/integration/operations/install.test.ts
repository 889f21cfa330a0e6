// Runs the install of the start command, and the hooks of docs/contributing.md, in a clone with its own repository.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT } from "../../../scripts/install/install.ts";
import { fixture } from "../../support/fixture.ts";
import { lacks } from "../../support/needs.ts";

const hasTools = !lacks("git", "bash");

test.skipIf(!hasTools)("an install leaves the configuration of git alone", () => {
  const before = inClone("git", "config", "--local", "--list");
  const installed = inClone(process.execPath, "-e", INSTALL);
  expect(installed).toEqual({ status: 0, said: "" });
  expect(inClone("git", "config", "--local", "--list")).toEqual(before);
  expect(commit("Anything goes")).toMatchObject({ status: 0 });
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

const INSTALL = `await (await import("./scripts/install/install.ts")).ensureInstalled("all")`;

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
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
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
