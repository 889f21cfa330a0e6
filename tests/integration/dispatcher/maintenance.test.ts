import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { connect, type RawDb } from "../../../db/client.ts";
import {
  deleteExpiredDefaultRows,
  dropExpiredPartition,
  indexEndedDays,
  ensurePartitions,
  MOVED_AT_MOST,
} from "../../../db/partitions.ts";
import { addMs } from "../../../src/lib/clock.ts";
import { holding } from "../../support/holding.ts";
import { hourly, removeOnce, tickOnce } from "../../support/maintenance.ts";
import {
  attemptsByPartition,
  beginToday,
  FAKE_CLOCK,
  fakeServerClock,
  insertAttempt,
  partitionOf,
  partitions,
} from "../../support/partitions.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";

describe("dropping", () => {
  test("drops the oldest expired day, one per run, and logs its number of rows", async () => {
    await ensurePartitions(db, new Date("2020-01-01T12:00:00Z"));
    await insertAttempt(db, new Date("2020-01-01T12:00:00Z"), { count: 3 });
    await db.sql`analyze delivery_attempts_20200102`;
    const before = await partitions(db);
    const log = memoryLog();
    for (let i = 0; i < 2; i++) await removeOnce({ db, log });
    expect(log.lines.filter(({ event }) => event === "partition.dropped")).toEqual([
      {
        event: "partition.dropped",
        fields: { partition: "delivery_attempts_20200101", rows: 3, rows_counted: true },
      },
      {
        event: "partition.dropped",
        fields: { partition: "delivery_attempts_20200102", rows: 0, rows_counted: false },
      },
    ]);
    expect(await partitions(db)).toHaveLength(before.length - 2);
  });

  test("keeps a day that ended within the retention time by PostgreSQL's clock", async () => {
    await insertAttempt(db, inDays(-31));
    await insertAttempt(db, inDays(-30));
    await insertAttempt(db, inDays(-29));
    await ensurePartitions(db, NOW, 31);
    expect((await dropExpiredPartition(db, DAYS))?.name).toBe(partitionOf(inDays(-31)));
    expect(await dropExpiredPartition(db, DAYS)).toBeUndefined();
  });

  test("leaves a partition that a session reads for the next run", async () => {
    await ensurePartitions(db, new Date("2021-01-01T12:00:00Z"));
    const release = await holdTable("delivery_attempts_20210101");
    expect(await dropExpiredPartition(db, DAYS)).toBeUndefined();
    expect(await partitions(db)).toContain("delivery_attempts_20210101");
    await release();
    expect((await dropExpiredPartition(db, DAYS))?.name).toBe("delivery_attempts_20210101");
  });

  test("removes old rows from the default partition in chunks", async () => {
    await insertAttempt(db, inDays(-31), { count: 3 });
    await insertAttempt(db, inDays(-29));
    const removed = [];
    for (let i = 0; i < 3; i++) removed.push(await deleteExpiredDefaultRows(db, DAYS, 2));
    expect(removed).toEqual([2, 1, 0]);
    expect(await attemptsByPartition(db)).toEqual({ delivery_attempts_default: 1 });
  });
});

describe("creating partitions", () => {
  test("moves the rows of these days out of the default partition", async () => {
    await insertAttempt(db, inDays(10), { count: 2 });
    expect(await attemptsByPartition(db)).toEqual({ delivery_attempts_default: 2 });
    await ensurePartitions(db, inDays(5));
    expect(await attemptsByPartition(db)).toEqual({ [partitionOf(inDays(10))]: 2 });
  });

  test("creates past days only if the default partition has rows of them", async () => {
    await insertAttempt(db, inDays(-3));
    expect(await ensurePartitions(db, NOW, DAYS)).toEqual([partitionOf(inDays(-3))]);
    expect(await attemptsByPartition(db)).toEqual({ [partitionOf(inDays(-3))]: 1 });
  });

  test("leaves out a day with too many rows in the default partition, and creates the others", async () => {
    await insertAttempt(db, inDays(9), { count: MOVED_AT_MOST + 1 });
    const made = await ensurePartitions(db, inDays(4));
    expect(made).not.toContain(partitionOf(inDays(9)));
    expect(made).toContain(partitionOf(inDays(10)));
    expect(await attemptsByPartition(db)).toEqual({ delivery_attempts_default: MOVED_AT_MOST + 1 });
  });

  test("shows every row to concurrent readers exactly once at any time", async () => {
    await insertAttempt(db, inDays(10), { count: 20_000 });
    const seen = new Set<number>();
    const made = new AbortController();
    const reader = database.connect();
    const reading = (async () => {
      while (!made.signal.aborted) {
        const rows = await reader.sql.unsafe("select count(*) from delivery_attempts");
        seen.add(rows[0]?.count ?? -1);
      }
    })();
    await ensurePartitions(db, inDays(5));
    made.abort();
    await reading;
    expect([...seen]).toEqual([20_000]);
  });

  test("gives up if a dump holds its lock, without blocking readers, and succeeds in the next run", async () => {
    const release = await holdTable("delivery_attempts_default");
    const name = partitionOf(inDays(8));
    expect(await ensurePartitions(db, inDays(1))).not.toContain(name);
    expect(await db.sql`select from delivery_attempts`).toHaveLength(0);
    await release();
    expect(await ensurePartitions(db, inDays(1))).toContain(name);
  });

  test("creates the other partitions if one cannot be created, and throws its error", async () => {
    const name = partitionOf(inDays(8));
    await db.sql.unsafe(`create view ${name} as select 1`);
    const failure: unknown = await ensurePartitions(db, inDays(3)).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(await partitions(db)).toContain(partitionOf(inDays(10)));
  });
});

describe("the index by event value", () => {
  const daysBack = (...days: number[]) => days.map((one) => partitionOf(inDays(-one)));
  const indexed = async () => {
    const rows = await db.sql<{ name: string }[]>`
      select indrelid::regclass::text as name from pg_index
       where indexrelid::regclass::text ~ '_[0-9]{8}_of_value$' and indisvalid order by 1 desc`;
    return rows.map(({ name }) => name);
  };

  test("is built on days that have ended, the newest first, four per run, and once", async () => {
    await ensurePartitions(db, inDays(-10));
    expect(await indexed()).toEqual([]);
    expect(await indexEndedDays(db)).toEqual(daysBack(3, 4, 5, 6));
    expect(await indexEndedDays(db)).toEqual(daysBack(7, 8, 9, 10));
    expect(await indexEndedDays(db)).toEqual([]);
    expect(await indexed()).toEqual(daysBack(3, 4, 5, 6, 7, 8, 9, 10));
    const made = await Promise.all([1, 2].map(() => indexEndedDays(database.connect())));
    expect(made.flat()).toEqual([]);
  });

  test("leaves a day with an open write for a later run without blocking other writers, and does not wait for readers", async () => {
    await ensurePartitions(db, inDays(-10));
    const written = partitionOf(inDays(-3));
    const release = await holdTable(partitionOf(inDays(-4)));
    await database.connect().transaction(async (tx) => {
      await insertAttempt(tx, inDays(-3));
      expect(await indexEndedDays(db)).toEqual(daysBack(4, 5, 6));
      await insertAttempt(db, addMs(inDays(-3), 1));
    });
    await release();
    expect(await indexEndedDays(db)).toContain(written);
  });

  test("is built once if several processes run, the newest days first", async () => {
    await ensurePartitions(db, inDays(-10));
    await Promise.all([1, 2, 3].map(() => indexEndedDays(database.connect())));
    // A process that starts after the first has finished builds the next four.
    expect((await indexed()).slice(0, 4)).toEqual(daysBack(3, 4, 5, 6));
  });
});

describe("the hourly jobs", () => {
  const tick = (log: ReturnType<typeof memoryLog>, over: { db?: RawDb; agree?: boolean } = {}) => {
    const { db: own = db, agree = true } = over;
    return tickOnce({ db: own, log, jobs: hourly({ db: own, log }), clocksAgree: () => agree });
  };
  const anHourLater = () => db.sql`
    update maintenance_jobs set began_at = began_at - interval '1 hour', next_at = next_at - interval '1 hour'`;

  test("run once an hour in all processes together, and remove nothing in their first run", async () => {
    await ensurePartitions(db, new Date("2020-01-01T12:00:00Z"));
    const all = async () => {
      const log = memoryLog();
      await Promise.all([1, 2, 3].map(() => tick(log)));
      return log.lines.map(({ event }) => event).filter((event) => event !== "maintenance.done");
    };
    const removals = hourly({ db }).filter(({ isRemoval }) => isRemoval);
    expect(await all()).toEqual(removals.map(() => "maintenance.deferred"));
    expect(await all()).toEqual([]);
    await anHourLater();
    expect(await all()).toEqual(["partition.dropped"]);
    expect(await all()).toEqual([]);
  });

  test("remove nothing in the first hour after PostgreSQL's clock jumps ahead 40 days, then one day, and nothing after it jumps back", async () => {
    for (const days of [-25, -20, -15]) await insertAttempt(db, inDays(days));
    await ensurePartitions(db, NOW, DAYS);
    const setClock = await fakeServerClock(db);
    const log = memoryLog();
    const run = () => tick(log, { db: database.connect(FAKE_CLOCK) });
    await run();
    await setClock("40 days");
    await run();
    expect(Object.values(await attemptsByPartition(db))).toEqual([1, 1, 1]);
    await anHourLater();
    await run();
    expect(Object.values(await attemptsByPartition(db))).toEqual([1, 1]);
    await setClock("0");
    await run();
    await anHourLater();
    await run();
    expect(Object.values(await attemptsByPartition(db))).toEqual([1, 1]);
    const dropped = log.lines.filter(({ event }) => event === "partition.dropped");
    expect(dropped.map(({ fields }) => fields["partition"])).toEqual([partitionOf(inDays(-25))]);
    expect(log.lines.filter(({ event }) => event === "maintenance.failed")).toEqual([]);
  });

  test("are not run by a process with a wrong clock", async () => {
    await ensurePartitions(db, new Date("2020-01-01T12:00:00Z"));
    await tick(memoryLog());
    await anHourLater();
    const log = memoryLog();
    await tick(log, { agree: false });
    expect(log.lines).toEqual([]);
    expect(await partitions(db)).toContain("delivery_attempts_20200101");
  });

  test("still remove rows if their role may not create or drop tables", async () => {
    await tick(memoryLog());
    await anHourLater();
    await db.sql.unsafe(`drop table ${partitionOf(inDays(7))}`);
    await ensurePartitions(db, new Date("2020-01-01T12:00:00Z"));
    await insertAttempt(db, inDays(-31));
    const role = `plain_${crypto.randomUUID().slice(0, 8)}`;
    const url = new URL(database.url);
    url.username = role;
    url.password = role;
    await db.sql.unsafe(`create role ${role} login password '${role}';
      grant all on all tables in schema public to ${role}`);
    const plain = connect(url.href, { max: 2, name: "test" });
    try {
      const log = memoryLog();
      await tick(log, { db: plain });
      const failed = log.lines.filter(({ event }) => event === "maintenance.failed");
      expect(failed.map(({ fields }) => fields["job"]).toSorted()).toEqual([
        "attempts",
        "day_indexes",
        "partitions",
      ]);
      expect(log.lines).toContainEqual({
        event: "maintenance.done",
        fields: { job: "default_partitions", rows: 1 },
      });
    } finally {
      await plain.close();
      await db.sql.unsafe(`drop owned by ${role}; drop role ${role}`);
    }
  });
});

const DAY_MS = 86_400_000;
const NOW = new Date();
const inDays = (days: number) => addMs(NOW, days * DAY_MS);
let db: RawDb;

const DAYS = 30;

let database: TestDatabase;

beforeEach(async () => {
  database = await createDatabase("roles");
  db = database.db;
  await beginToday(db, NOW);
});

afterEach(() => database.drop());

/** Opens another session that reads a table and keeps its transaction open, as a dump does. */
const holdTable = (table: string) =>
  holding(database.connect(), ({ sql }) => sql.unsafe(`select count(*) from ${table}`));

function memoryLog() {
  const lines: { event: string; fields: Record<string, unknown> }[] = [];
  const note = (event: string, fields: Record<string, unknown> = {}) =>
    void lines.push({ event, fields });
  return { lines, debug: note, info: note, warn: note, error: note };
}
