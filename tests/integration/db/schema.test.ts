import { beforeAll, describe, expect, test } from "bun:test";

import { getTableConfig } from "drizzle-orm/pg-core";

import { ensurePartitions, partitionsAhead, ulidFloor } from "../../../db/partitions.ts";
import { catalogOf, ddlOf, declaredTables } from "../../support/declared-schema.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("the tables of the query builder", async () => {
  const tables = await declaredTables();
  let declared: Record<string, string[]>;
  let migrated: Record<string, string[]>;
  beforeAll(async () => {
    const { db } = database;
    migrated = await catalogOf(db, "public");
    await db.transaction(async ({ sql }) => {
      await sql.unsafe("create schema declared; set local search_path to declared");
      for (const statement of await ddlOf(tables, "declared")) await sql.unsafe(statement);
    });
    declared = await catalogOf(db, "declared");
  });

  test("are the tables of the migrated database", () => {
    expect(Object.keys(declared)).toEqual(Object.keys(migrated));
  });

  for (const { name } of Object.values(tables).map(getTableConfig))
    test(`${name} has the columns, keys, values and unique indexes of the migrated database`, () => {
      // The other checks are in the migrations only.
      const isOther = (line: string) => / CHECK /.test(line) && !declared[name]?.includes(line);
      expect(declared[name]).toEqual((migrated[name] ?? []).filter((line) => !isOther(line)));
    });
});

describe("daily partitions", () => {
  const now = new Date("2031-05-17T23:59:59.999Z");

  test("begin with today and follow each other without a gap", () => {
    const floor = (day: string) => ulidFloor(new Date(day));
    expect(partitionsAhead(now, 2).map(({ name, from, to }) => [name, from, to])).toEqual([
      ["delivery_attempts_20310517", floor("2031-05-17"), floor("2031-05-18")],
      ["delivery_attempts_20310518", floor("2031-05-18"), floor("2031-05-19")],
      ["delivery_attempts_20310519", floor("2031-05-19"), floor("2031-05-20")],
    ]);
  });

  test("are created once, also by several concurrent processes", async () => {
    const made = await Promise.all([1, 2, 3].map(() => ensurePartitions(database.connect(), now)));
    expect(made.flat()).toHaveLength(8);
    expect(await ensurePartitions(database.db, now)).toEqual([]);
  });

  test("contain the attempts of their day, and the default partition those of other days", async () => {
    const insert = (id: string, at: Date) => database.db.sql`
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, request_headers, request_body, response_truncated)
      values (${id}, 'S', 1, 'E', 'review_received', 1, 1, ${at}, 1, 'delivered', '{}', '{}', false)`;
    const partitionOf = async (id: string) => {
      const [row] = await database.db.sql<{ name: string }[]>`
        select tableoid::regclass::text as name from delivery_attempts where id = ${id}`;
      return row?.name;
    };
    const inside = ulidFloor(now);
    const outside = ulidFloor(new Date("2040-01-01T00:00:00Z"));
    await insert(inside, now);
    await insert(outside, now);
    expect(await partitionOf(inside)).toBe("delivery_attempts_20310517");
    expect(await partitionOf(outside)).toBe("delivery_attempts_default");
  });
});
