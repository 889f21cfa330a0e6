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

test("objects that the query builder cannot declare exist in the migrations only, and are these", async () => {
  const { sql } = database.db;
  const lines = await sql<{ line: string }[]>`
    select concat_ws(' ', relname, 'partition by ' || pg_get_partkeydef(oid),
             case when relispartition then pg_get_expr(relpartbound, oid) end, array_to_string(reloptions, ' ')) as line
      from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relname ~ '_[0-9]{8}$'
       and (relkind = 'p' or relispartition or reloptions is not null)
    union all select 'function ' || proname from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'trigger ' || tgname from pg_trigger where not tgisinternal
    union all select 'view ' || relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('v', 'm', 'f')
    union all select 'type ' || typname from pg_type where typnamespace = 'public'::regnamespace and typtype in ('d', 'e')
    order by 1`;
  expect(lines.map(({ line }) => line)).toEqual([
    "batch_entries fillfactor=90 autovacuum_vacuum_scale_factor=0.02 vacuum_truncate=false",
    "delivery_attempts partition by RANGE (id)",
    "delivery_attempts_default DEFAULT",
    "function forget_normal_email",
    "function is_leaving",
    "function keep_history",
    "function keep_queued_history",
    "function keep_reported_connection",
    "function keep_reviews",
    "function longest_text_bytes",
    "function note_change",
    "function place_in_inbox",
    "mails fillfactor=80",
    "outbox fillfactor=80 autovacuum_vacuum_scale_factor=0.02 autovacuum_vacuum_cost_delay=0 vacuum_truncate=false",
    "outbox_offsets fillfactor=20",
    "outbox_sequences fillfactor=50 vacuum_truncate=false",
    "review_history vacuum_truncate=false",
    "trigger companies_changed",
    "trigger inbox_placed",
    "trigger review_history_fixed",
    "trigger review_history_kept",
    "trigger reviews_kept",
    "trigger store_review_sites_changed",
    "trigger store_review_sites_kept",
    "trigger stores_changed",
    "trigger users_forget_normal_email",
    "view queued_entries",
    "view skipped_entries",
    "webhook_subscriptions vacuum_truncate=false",
  ]);
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
