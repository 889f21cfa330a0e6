import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { readSettings } from "../../../scripts/demo/settings.ts";

test("the start command reads its own settings from files, too", () => {
  const file = join(folder, "url");
  writeFileSync(file, "postgres://u:p@one/name\n");
  const settings = readSettings({ DATABASE_URL_FILE: file });
  expect(settings.given.databaseUrl).toBe("postgres://u:p@one/name");
  expect(settings.env["DATABASE_URL_FILE"]).toBeUndefined();
});

test("the start command reports a file that it cannot read", () => {
  expect(() => readSettings({ MASTER_KEY_FILE: join(folder, "nowhere") })).toThrow(
    "MASTER_KEY cannot be read from MASTER_KEY_FILE (ENOENT): `bun run setup` writes it",
  );
});

const folder = mkdtempSync(join(tmpdir(), "start-settings-"));

afterAll(() => rmSync(folder, { recursive: true }));
