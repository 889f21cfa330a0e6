import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { getTableConfig, PgTable } from "drizzle-orm/pg-core";

import { ensurePartitions, partitionsAhead, ulidFloor } from "../../db/partitions.ts";
import * as schema from "../../db/schema.ts";
import { migrate } from "../../db/migrate.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

describe("the query builder's table", () => {
  for (const table of Object.values(schema).filter((one) => one instanceof PgTable)) {
    const { name, columns } = getTableConfig(table);
    test(`${name} has the columns of the migrated database`, async () => {
      const rows = await database.db.sql<{ column_name: string; is_nullable: string }[]>`
        select column_name, is_nullable from information_schema.columns where table_name = ${name}`;
      const migrated = Object.fromEntries(
        rows.map((row) => [row.column_name, row.is_nullable === "NO"]),
      );
      const declared = Object.fromEntries(columns.map((column) => [column.name, column.notNull]));
      expect(declared).toEqual(migrated);
    });
  }
});

test("migrating from several processes at once, and again, changes nothing", async () => {
  const count = async () => {
    const [row] = await database.db.sql<
      { count: number }[]
    >`select count(*) from drizzle.__drizzle_migrations`;
    return row?.count;
  };
  const before = await count();
  await Promise.all(Array.from({ length: 4 }, () => migrate(database.url)));
  expect(await count()).toBe(before);
});

describe("daily partitions", () => {
  const now = new Date("2031-05-17T23:59:59.999Z");

  test("begin with today and follow each other without a gap", () => {
    const settled = partitionsAhead(now, 2).filter(({ parent }) => parent === "settled_entries");
    expect(settled.map(({ name, from, to }) => [name, from, to])).toEqual([
      ["settled_entries_20310517", "2031-05-17T00:00:00.000Z", "2031-05-18T00:00:00.000Z"],
      ["settled_entries_20310518", "2031-05-18T00:00:00.000Z", "2031-05-19T00:00:00.000Z"],
      ["settled_entries_20310519", "2031-05-19T00:00:00.000Z", "2031-05-20T00:00:00.000Z"],
    ]);
  });

  test("are made once, also by several processes at the same time", async () => {
    const made = await Promise.all([1, 2, 3].map(() => ensurePartitions(database.connect(), now)));
    expect(made.flat()).toHaveLength(16);
    expect(await ensurePartitions(database.db, now)).toEqual([]);
  });

  test("take the attempts of their day, and the default one those of no day", async () => {
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
