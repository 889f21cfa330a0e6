import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";

import { sql } from "drizzle-orm";

import { connect, type RawDb } from "../../db/client.ts";
import { statement, value } from "../../db/statement.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/receiver.ts";

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
  reason: "It is of a table of this test.",
  params: { id: value("integer"), by: value("text") },
  columns: { id: value("integer") },
  text: ({ id, by }) =>
    sql`insert into written (id, by) values (${id}::integer, ${by}::text) returning id`,
});

const count = statement({
  name: "test.count",
  reason: "It is of a table of this test.",
  params: {},
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

const endOf = (work: Promise<unknown>) =>
  work.then(
    () => "committed",
    (error: unknown) => Reflect.get(Object(error), "code") ?? String(error),
  );

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
      reason: "It is of a table of this test.",
      params: { id: value("integer") },
      columns: {},
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
  reason: "It is of no table.",
  params: {},
  columns: {},
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
