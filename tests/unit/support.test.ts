// Holds the versions that docs/SUPPORT.md names to those that the code demands.
import { expect, test } from "bun:test";
import { join } from "node:path";

import { OLDEST_MAJOR } from "../../db/session-settings.ts";
import { NEWEST_MAJOR } from "../../src/operate/doctor/database.ts";
import { OLDEST_REDIS } from "../../src/operate/doctor/surroundings.ts";
import { postgresMajor } from "../../scripts/demo/stores/postgres-versions.ts";
import manifest from "../../package.json" with { type: "json" };

test.each([
  `| Bun | ${manifest.engines.bun.replace(">=", "")} or later |`,
  `| PostgreSQL | ${OLDEST_MAJOR} to ${NEWEST_MAJOR} |`,
  `| Redis, or Valkey | ${OLDEST_REDIS} or later |`,
])("the page of support says %p", async (row) => {
  expect(await Bun.file(join(import.meta.dir, "../../docs/SUPPORT.md")).text()).toContain(row);
});

test("tests can run on every supported PostgreSQL, and on no other", () => {
  for (let major = OLDEST_MAJOR; major <= NEWEST_MAJOR; major++)
    expect(postgresMajor(String(major))).toBe(major);
  for (const other of [OLDEST_MAJOR - 1, NEWEST_MAJOR + 1])
    expect(() => postgresMajor(String(other))).toThrow(`not ${other}`);
});
