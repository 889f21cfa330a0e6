import { expect, test } from "bun:test";

import { runCommand } from "../../support/processes/command.ts";

test("runs the named checks alone", async () => {
  const { status, said } = await runCommand(["scripts/check.ts", "migrations", "links"], {});
  const lines = said.trim().split("\n");
  expect(lines.map((line) => line.replace(/ \([\d.]+ s\)/, ""))).toEqual([
    "ok     migrations",
    "ok     links",
    "2 checks pass.",
  ]);
  expect(status).toBe(0);
});

test("an unknown name runs nothing, and tells all names", async () => {
  const { status, said } = await runCommand(["scripts/check.ts", "links", "typos"], {});
  expect([status, said]).toEqual([
    64,
    expect.stringMatching(/^Unknown check: typos\. The checks are: format, .*, links, .*\.\n$/),
  ]);
});
