import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";

import { sql } from "drizzle-orm";

import { connect, type RawDb } from "../../../db/client.ts";
import { isStoreFailure } from "../../../db/errors.ts";
import { statement, value } from "../../../db/statement.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";

// What `readsFirst` and `runLast` send without waiting for an answer, and what becomes of it when something fails.

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
  await database.db.sql`create table written (id integer primary key, by text)`;
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.db.sql`truncate written`;
});

const write = statement({
  name: "test.write",
  // It is of a table of this test.
  params: { id: value("integer"), by: value("text") },
  columns: { id: value("integer") },
  text: ({ id, by }) =>
    sql`insert into written (id, by) values (${id}::integer, ${by}::text) returning id`,
});

const count = statement({
  name: "test.count",
  // It is of a table of this test.
  columns: { rows: value("bigint") },
  text: () => sql`select count(*) as rows from written`,
});

interface Line {
  /** One connection, so that whatever is left behind meets the next user. */
  readonly one: RawDb;
  /** The first words of what was sent, and "answer" where the work had one. */
  readonly seen: string[];
}

/** A pooler's address says that nothing is prepared. */
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
  // The connection is free again, and whole.
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
const codeOf = (error: unknown): unknown => Reflect.get(Object(error), "code");

/** A statement is run when it is awaited, which is now. */
const started = <T>(run: Promise<T>): Promise<T> => run.then((rows) => rows);

/** Reads, then writes two rows, the second of them last. */
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

test("what comes first goes out with the begin, and the commit with what comes last", async () => {
  await withOne({}, async (line) => {
    expect(await writeTwo(line, [1, 2])).toBe(2);
    const sent = ["begin", "select", "answer", "insert", "insert", "commit", "answer"];
    expect(line.seen).toEqual(sent);
    expect(await written()).toEqual([{ rows: 2 }]);
  });
});

test("where nothing may be sent ahead, the commit waits for the answer", async () => {
  const sent = ["begin", "select", "answer", "insert", "insert", "answer", "commit"];
  for (const options of [{ isPipelined: false }, { isPooled: true }])
    await withOne(options, async (line) => {
      expect(await writeTwo(line, [1, 2])).toBe(2);
      expect(line.seen).toEqual(sent);
      expect(await written()).toEqual([{ rows: 2 }]);
      await database.db.sql`truncate written`;
    });
});

test("a statement that fails undoes all, the last one or one before it", async () => {
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

test("what only the commit finds fails as well", async () => {
  await withOne({}, async (line) => {
    await database.db
      .sql`create table referring (id integer references written deferrable initially deferred)`;
    const refer = statement({
      name: "test.refer",
      // It is of a table of this test.
      params: { id: value("integer") },
      text: ({ id }) => sql`insert into referring values (${id}::integer)`,
    });
    const work = () => line.one.transaction((tx) => tx.runLast(refer, { id: 99 }));
    for (const round of [1, 2]) expect([round, await endOf(work())]).toEqual([round, "23503"]);
    await database.db.sql`drop table referring`;
  });
});

test("a parameter that the driver refuses undoes all, although it was never sent", async () => {
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

test("what is run after the last statement is refused", async () => {
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
  // It is of no table.
  text: () => sql`select pg_sleep(20)`,
});

test("a connection that ends behind the commit fails the transaction, and the next one works", async () => {
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
      expect(["57P01", "CONNECTION_CLOSED"]).toContain(await ended);
    }
    expect(await written()).toEqual([{ rows: 0 }]);
  });
});

test("a begin that fails lets nothing be written, and its connection is not used again", async () => {
  const url = new URL(database.url);
  url.searchParams.set("prepare", "false");
  // Behind a pooler a transaction begins with its limits: this one is none.
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

/** Two tables, of which a transaction writes the first and then, behind it, the second and the commit at once. */
async function withTwoTables(
  use: (writeBoth: (id: number) => Promise<unknown>, one: RawDb) => Promise<void>,
): Promise<void> {
  await database.db.sql`drop table if exists first_table, last_table`;
  await database.db.sql`create table first_table (id integer, size integer)`;
  await database.db.sql`create table last_table (id integer, size integer)`;
  const into = (table: "first_table" | "last_table") =>
    statement({
      name: `test.into_${table}`,
      // It is of a table of this test.
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
  "a column of the last one's answer has another type": () =>
    database.db.sql`alter table last_table alter column size type bigint`,
  "a column of the first one's answer has another type": () =>
    database.db.sql`alter table first_table alter column size type bigint`,
  "the session has lost its prepared statements": ({ sql: own }) => own.unsafe("deallocate all"),
};
for (const [name, outdate] of Object.entries(OUTDATING))
  test(`a transaction is written whole, and once, after ${name}`, async () => {
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

test("a statement outside of a transaction is not undone by one that is sent behind it", async () => {
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

test("statements behind one that fails are not run, and each of them is told", async () => {
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

test("a statement that is to be sent again is not sent into the transaction behind it", async () => {
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
