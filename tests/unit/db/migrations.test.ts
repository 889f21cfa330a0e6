import { expect, test } from "bun:test";

import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";

import { declaredTables } from "../../support/declared-schema.ts";

test("the migrations lead to the tables of db/schema: `bun run db:generate` has nothing to write", async () => {
  const folder = `${import.meta.dir}/../../../db/migrations/meta`;
  const last = [...new Bun.Glob("*_snapshot.json").scanSync(folder)].toSorted().at(-1);
  const migrated = await Bun.file(`${folder}/${last}`).json();
  const declared = generateDrizzleJson(await declaredTables());
  expect(await generateMigration(migrated, declared)).toEqual([]);
});
