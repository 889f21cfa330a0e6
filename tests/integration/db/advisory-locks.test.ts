import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";

const database = fixture(createDatabase);
const ROOT = join(import.meta.dir, "../../..");

test("every advisory lock is of one job by its name, or has its kind as the first of two keys", async () => {
  const sources = ["src", "dispatcher", "db"].flatMap((tree) => [
    ...new Bun.Glob(`${tree}/**/*.ts`).scanSync({ cwd: ROOT }),
  ]);
  const text = sources.map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n");
  const keys = [...text.matchAll(/pg_(?:try_)?advisory\w*\((.*?)\)+[`'" ]/g)].map(([, key]) => key);
  expect(keys.length).toBeGreaterThanOrEqual(6);
  expect(keys.filter((key) => !JOB.test(key ?? "") && !THING.test(key ?? ""))).toEqual([]);
  const named = [...text.matchAll(/'reviewrelay:([a-z-]+)'/g)].map(([, job]) => String(job));
  const turns = [...text.matchAll(/(?:tryJobLock|waitForTurn)\(tx, "([a-z-]+)"\)/g)];
  const jobs = [...new Set([...named, ...turns.map(([, job]) => String(job))])];
  const hashes = await database.db.sql<{ hash: number }[]>`
    select distinct hashtext('reviewrelay:' || job) as hash from unnest(${jobs}::text[]) job`;
  expect(jobs.length).toBeGreaterThanOrEqual(5);
  expect(hashes).toHaveLength(jobs.length);
});

const JOB = /^(?:\$\{lockOf\(job|hashtext\('reviewrelay:[a-z-]+')/;
const THING = /^\$\{LOCKED_THINGS\[kind\]\}::int, /;
