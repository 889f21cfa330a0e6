// Runs the commands of docs/operations/backup.md, with a small load, where there is a PostgreSQL of Debian.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";

import { runCommand } from "../support/command.ts";

const hasPostgres =
  existsSync("/usr/lib/postgresql/15/bin/pg_basebackup") && Bun.which("psql") !== null;
if (!hasPostgres) console.log("Skipped, because there is no PostgreSQL 15 of Debian: backups.");

test.skipIf(!hasPostgres)(
  "a restore to a moment keeps what was accepted before, and takes the rest when it is sent again",
  async () => {
    const { status, said } = await runCommand(["scripts/restore.ts", "--seconds", "0.5"], {});
    expect([status, said]).toEqual([0, expect.stringContaining("delivered again")]);
  },
  120_000,
);
