import { beforeAll, beforeEach, expect, test } from "bun:test";

import { sql } from "drizzle-orm";

import { connect, type RawDb } from "../../../db/client.ts";
import { isStoreFailure } from "../../../db/errors.ts";
import { statement, value } from "../../../db/statement.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

// Statements that `readsFirst` and `runLast` send without waiting for an answer, and their results when one fails.

const database = fixture(() => createDatabase("sessions"));

test("the first statements are sent with the begin, and the commit with the last statement", async () => {
  await withOne({}, async (line) => {
    expect(await writeTwo(line, [1, 2])).toBe(2);
    const sent = ["begin", "select", "answer", "insert", "insert", "commit", "answer"];
    expect(line.seen).toEqual(sent);
    expect(await written()).toEqual([{ rows: 2 }]);
  });
});

test("without pipelining the commit waits for the answer", async () => {
  const sent = ["begin", "select", "answer", "insert", "insert", "answer", "commit"];
  for (const options of [{ isPipelined: false }, { isPooled: true }])
    await withOne(options, async (line) => {
      expect(await writeTwo(line, [1, 2])).toBe(2);
      expect(line.seen).toEqual(sent);
      expect(await written()).toEqual([{ rows: 2 }]);
      await database.db.sql`truncate written`;
    });
});

test("a failed statement rolls back the transaction, whether it is the last one or not", async () => {
  const UNIQUE_VIOLATION = "23505";
  for (const isPipelined of [true, false])
    await withOne({ isPipelined }, async (line) => {
      await database.db.sql`insert into written values (7, 'before')`;
      expect(await endOf(writeTwo(line, [1, 7]))).toBe(UNIQUE_VIOLATION);
      expect(await endOf(writeTwo(line, [7, 1]))).toBe(UNIQUE_VIOLATION);
      expect(await written()).toEqual([{ rows: 1 }]);
      expect(await writeTwo(line, [1, 2])).toBe(2);
      await database.db.sql`truncate written`;
    });
});

test("a constraint that is checked at the commit fails the transaction as well", async () => {
  await withOne({}, async (line) => {
    await database.db
      .sql`create table referring (id integer references written deferrable initially deferred)`;
    const refer = statement({
      name: "test.refer",
      // Uses a table of this test.
      params: { id: value("integer") },
      text: ({ id }) => sql`insert into referring values (${id}::integer)`,
    });
    const work = () => line.one.transaction((tx) => tx.runLast(refer, { id: 99 }));
    for (const round of [1, 2]) expect([round, await endOf(work())]).toEqual([round, "23503"]);
    await database.db.sql`drop table referring`;
  });
});

test("a parameter that the driver rejects rolls back the transaction, although it was never sent", async () => {
  const unspeakable = {
    toString: () => {
      throw new TypeError("unspeakable");
    },
  } as unknown as string;
  const last = { id: 2, by: "last" };
  await withOne({}, async ({ one }) => {
    const refused = (by: string, lastBy: string) =>
      one.transaction(async (tx) => {
        const before = started(tx.run(write, { id: 1, by }));
        await Promise.all([before, tx.runLast(write, { ...last, by: lastBy })]);
      });
    expect(await endOf(refused(unspeakable, "last"))).toContain("unspeakable");
    expect(await endOf(refused("first", unspeakable))).toContain("unspeakable");
    expect(await written()).toEqual([{ rows: 0 }]);
    expect(await endOf(refused("first", "last"))).toBe("committed");
  });
});

test("a statement after the last one is rejected", async () => {
  await withOne({}, async ({ one }) => {
    const work = one.transaction(async (tx) => {
      await tx.runLast(write, { id: 1, by: "last" });
      await tx.run(write, { id: 2, by: "late" });
    });
    expect(await endOf(work)).toBe("COMMIT_SENT");
    expect(await written()).toEqual([{ rows: 1 }]);
  });
});

const sleep = statement({
  name: "test.sleep",
  // Selects from no table.
  text: () => sql`select pg_sleep(20)`,
});

test("a connection that ends after the commit was sent fails the transaction, and the next one works", async () => {
  await withOne({}, async ({ one, seen }) => {
    for (const by of ["one", "another"]) {
      seen.length = 0;
      const ended = endOf(
        one.transaction(async (tx) => {
          await tx.run(write, { id: 1, by });
          await tx.runLast(sleep, {});
        }),
      );
      await until("the commit", () => seen.at(-1) === "commit");
      await database.db.sql`
        select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'one' and datname = current_database()`;
      expect(await ended).toBe("OUTCOME_UNKNOWN");
    }
    expect(await written()).toEqual([{ rows: 0 }]);
  });
});

test("a failed begin writes nothing, and its connection is not used again", async () => {
  const url = new URL(database.url);
  url.searchParams.set("prepare", "false");
  // A transaction behind a pooler begins with its limits; this one is invalid.
  const limits = { lockMs: Number.NaN, statementMs: 1_000, idleMs: 1_000, deadlineMs: 5_000 };
  const one = connect(url.href, { max: 1, name: "one", isPipelined: true, limits });
  const work = () =>
    one.transaction(
      async (tx) => {
        await tx.run(count, {});
        await tx.run(write, { id: 1, by: "late" });
      },
      { readsFirst: true },
    );
  const INVALID_PARAMETER_VALUE = "22023";
  for (const round of [1, 2, 3])
    expect([round, await endOf(work())]).toEqual([round, INVALID_PARAMETER_VALUE]);
  expect(await written()).toEqual([{ rows: 0 }]);
  expect([...(await one.run(count, {}))]).toEqual([{ rows: 0 }]);
  await one.close();
});

/**
 * Creates two tables. The transaction writes the first one, and sends the write to the second one and the commit
 * behind it.
 */
async function withTwoTables(
  use: (writeBoth: (id: number) => Promise<unknown>, one: RawDb) => Promise<void>,
): Promise<void> {
  await database.db.sql`drop table if exists first_table, last_table`;
  await database.db.sql`create table first_table (id integer, size integer)`;
  await database.db.sql`create table last_table (id integer, size integer)`;
  const into = (table: "first_table" | "last_table") =>
    statement({
      name: `test.into_${table}`,
      // Uses a table of this test.
      params: { id: value("integer") },
      columns: { size: value("text") },
      text: ({ id }) =>
        sql`insert into ${sql.identifier(table)} values (${id}::integer, 7) returning size`,
    });
  const [first, last] = [into("first_table"), into("last_table")];
  await withOne({}, async ({ one }) => {
    const writeBoth = (id: number) =>
      endOf(
        one.transaction(async (tx) => {
          const before = started(tx.run(first, { id }));
          await Promise.all([before, tx.runLast(last, { id })]);
        }),
      );
    for (const id of [1, 2, 3]) expect([id, await writeBoth(id)]).toEqual([id, "committed"]);
    await use(writeBoth, one);
  });
}

const idsIn = async (table: string) => {
  const rows = await database.db.sql<{ id: number }[]>`
    select id from ${database.db.sql(table)} order by id`;
  return rows.map(({ id }) => id);
};

const OUTDATING: Record<string, (one: RawDb) => Promise<unknown>> = {
  "a result column of the last statement has another type": () =>
    database.db.sql`alter table last_table alter column size type bigint`,
  "a result column of the first statement has another type": () =>
    database.db.sql`alter table first_table alter column size type bigint`,
  "the session has lost its prepared statements": ({ sql: own }) => own.unsafe("deallocate all"),
};
for (const [name, outdate] of Object.entries(OUTDATING))
  test(`a transaction is written completely and once after ${name}`, async () => {
    await withTwoTables(async (writeBoth, one) => {
      for (const id of [4, 5]) {
        await outdate(one);
        expect([id, await writeBoth(id)]).toEqual([id, "committed"]);
      }
      expect(await idsIn("first_table")).toEqual([1, 2, 3, 4, 5]);
      expect(await idsIn("last_table")).toEqual([1, 2, 3, 4, 5]);
    });
  });

test("a transaction that loses a prepared statement in each of three runs fails, and writes nothing", async () => {
  await withOne({}, async ({ one }) => {
    let runs = 0;
    const losing = one.transaction(async (tx) => {
      runs += 1;
      await tx.run(write, { id: 1, by: "kept" });
      await tx.sql.unsafe("deallocate all");
      await tx.runLast(write, { id: 2, by: "lost" });
    });
    const error = await losing.catch((thrown: unknown) => thrown);
    expect([codeOf(error), isStoreFailure(error), runs]).toEqual(["STATEMENT_OUTDATED", true, 3]);
    expect(await written()).toEqual([{ rows: 0 }]);
    expect(await endOf(one.transaction((tx) => tx.runLast(write, { id: 1, by: "next" })))).toBe(
      "committed",
    );
  });
});

test("a statement outside a transaction is not rolled back by a transaction that is sent behind it", async () => {
  await withOne({}, async ({ one }) => {
    const alone = started(one.run(write, { id: 1, by: "alone" }));
    const failing = one.transaction(
      (tx) => Promise.all([tx.run(count, {}), tx.runLast(write, { id: 1, by: "again" })]),
      { readsFirst: true },
    );
    expect(await endOf(failing)).toBe("23505");
    expect([...(await alone)]).toEqual([{ id: 1 }]);
    expect(await written()).toEqual([{ rows: 1 }]);
  });
});

test("statements after a failed one are not run, and each of them fails", async () => {
  await withOne({}, async ({ one }) => {
    const ends: string[] = [];
    const failing = one.transaction(async (tx) => {
      const runs = [
        tx.run(write, { id: 1, by: "first" }),
        tx.run(write, { id: 1, by: "twice" }),
        tx.run(write, { id: 2, by: "behind" }),
        tx.runLast(write, { id: 3, by: "last" }),
      ];
      ends.push(...(await Promise.all(runs.map(endOf))));
    });
    expect(await endOf(failing)).toBe("23505");
    expect(ends).toEqual(["committed", "23505", "23505", "23505"]);
    expect(await written()).toEqual([{ rows: 0 }]);
  });
});

test("a statement that is sent again does not get into the transaction behind it", async () => {
  await withOne({}, async ({ one }) => {
    await one.run(write, { id: 1, by: "before" });
    await one.sql.unsafe("deallocate all");
    const alone = endOf(one.run(write, { id: 2, by: "alone" }));
    const undone = one.transaction(async (tx) => {
      await tx.run(count, {});
      throw new Error("undone");
    });
    expect(await endOf(undone)).toContain("undone");
    const rows = (await alone) === "committed" ? 2 : 1;
    expect(await written()).toEqual([{ rows }]);
  });
});

beforeAll(async () => {
  await database.db.sql`create table written (id integer primary key, by text)`;
});

beforeEach(async () => {
  await database.db.sql`truncate written`;
});

const write = statement({
  name: "test.write",
  // Uses a table of this test.
  params: { id: value("integer"), by: value("text") },
  columns: { id: value("integer") },
  text: ({ id, by }) =>
    sql`insert into written (id, by) values (${id}::integer, ${by}::text) returning id`,
});

const count = statement({
  name: "test.count",
  // Uses a table of this test.
  columns: { rows: value("bigint") },
  text: () => sql`select count(*) as rows from written`,
});

interface Line {
  /** One connection, so that leftovers would reach the next user. */
  readonly one: RawDb;
  /** The first word of each sent statement, and "answer" for each answer that the work received. */
  readonly seen: string[];
}

/** Uses a pool of one connection. A pooler's address turns prepared statements off. */
async function withOne(
  { isPooled = false, isPipelined = true },
  use: (line: Line) => Promise<void>,
): Promise<void> {
  const url = new URL(database.url);
  if (isPooled) url.searchParams.set("prepare", "false");
  const seen: string[] = [];
  const one = connect(url.href, {
    max: 1,
    name: "one",
    isPipelined,
    onStatement: (text) => seen.push(/\w+/.exec(text)?.[0] ?? ""),
  });
  const warm = await one.transaction(async (tx) => {
    await tx.run(count, {});
    return tx.run(write, { id: 0, by: "warm" });
  });
  expect([...warm]).toEqual([{ id: 0 }]);
  await database.db.sql`truncate written`;
  seen.length = 0;
  await use({ one, seen });
  // The connection is free again and works.
  expect([...(await one.run(count, {}))]).toEqual(await written());
  await one.close();
}

const written = async () => {
  const [row] = await database.db.sql<{ rows: number }[]>`select count(*) as rows from written`;
  return [{ rows: row?.rows ?? -1 }];
};

const endOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "committed",
    (error: unknown) => String(codeOf(error) ?? error),
  );

const codeOf = (error: unknown): unknown => fieldsOf(error)["code"];

/** A statement runs when it is awaited; `then` starts it now. */
const started = <T>(run: Promise<T>): Promise<T> => run.then((rows) => rows);

/** Reads, then writes two rows; the second one is the last statement. */
const writeTwo = ({ one, seen }: Line, ids: readonly [number, number]) =>
  one.transaction(
    async (tx) => {
      await tx.run(count, {});
      seen.push("answer");
      const first = started(tx.run(write, { id: ids[0], by: "first" }));
      const [, [last]] = await Promise.all([first, tx.runLast(write, { id: ids[1], by: "last" })]);
      seen.push("answer");
      return last?.id;
    },
    { readsFirst: true },
  );
