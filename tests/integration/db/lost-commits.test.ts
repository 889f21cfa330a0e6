// Statements and transactions whose answer is lost on its way (contract 2.10).
import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { integer, pgTable } from "drizzle-orm/pg-core";

import { connect, type Db, type Tx } from "../../../db/client.ts";
import { isOutcomeUnknown, isStoreFailure } from "../../../db/errors.ts";
import { statement } from "../../../db/statement.ts";
import { fixture } from "../../support/fixture.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";
import { createDatabase } from "../../support/postgres.ts";

const numbers = pgTable("numbers", { n: integer("n").primaryKey() });
const database = fixture(async () => {
  const created = await createDatabase();
  await created.db.sql`create table numbers (n integer primary key)`;
  return created;
});
const proxy = fixture(() => proxyBefore(database.url));

const insertOne = statement({
  name: "test.insert_one",
  text: () => sql`insert into numbers values (7)`,
});

const TRANSACTIONS: readonly (readonly [string, (tx: Tx) => Promise<unknown>])[] = [
  ["with a commit of its own", (tx) => tx.insert(numbers).values({ n: 7 })],
  ["whose commit follows its last statement", (tx) => tx.runLast(insertOne, {})],
];

describe.each([false, true])("with pipelining %p", (isPipelined) => {
  test.each(TRANSACTIONS)(
    "the outcome of a transaction %s is unknown if that answer is lost",
    async (_, work) => {
      await withOne(isPipelined, async (db) => {
        const error = await lost(() => db.transaction(work));
        expect([isOutcomeUnknown(error), isStoreFailure(error)]).toEqual([true, true]);
        expect(await count()).toBe(1);
      });
    },
  );
});

test.each([
  ["the connection ends", () => proxy.reset()],
  ["a statement fails", undefined],
])("nothing was committed if %s before the commit", async (_, fault) => {
  await withOne(false, async (db) => {
    const error = await db
      .transaction(async (tx) => {
        await tx.insert(numbers).values({ n: 7 });
        fault?.();
        await tx.insert(numbers).values({ n: 7 });
      })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(isOutcomeUnknown(error)).toBe(false);
    expect(await count()).toBe(0);
  });
});

test("the outcome of a statement outside of a transaction is unknown only if it writes", async () => {
  await withOne(false, async (db) => {
    expect(isOutcomeUnknown(await lost(() => db.insert(numbers).values({ n: 7 })))).toBe(true);
    expect(isOutcomeUnknown(await lost(() => db.run(insertOne, {})))).toBe(false);
    expect(await count()).toBe(1);
    const read = db
      .select()
      .from(numbers)
      .where(sql`pg_sleep(20) is not null`);
    const ended = read.then(
      () => undefined,
      (error: unknown) => error,
    );
    await untilAsleep();
    proxy.reset();
    const error = await ended;
    expect([isOutcomeUnknown(error), isStoreFailure(error)]).toEqual([false, true]);
  });
});

async function untilAsleep(): Promise<void> {
  for (let found = 0; found === 0; await Bun.sleep(5))
    found = (await database.db.sql`select from pg_stat_activity where wait_event = 'PgSleep'`)
      .length;
}

async function lost(work: () => Promise<unknown>): Promise<unknown> {
  proxy.losesCommit = () => true;
  try {
    return await work().then(
      () => undefined,
      (error: unknown) => error,
    );
  } finally {
    proxy.losesCommit = () => false;
  }
}

async function withOne(isPipelined: boolean, work: (db: Db) => Promise<void>): Promise<void> {
  await database.db.sql`truncate numbers`;
  const db = connect(proxy.in(database.url), { max: 1, name: "one", isPipelined });
  try {
    await work(db);
  } finally {
    await db.close();
  }
}

async function count(): Promise<number> {
  return (await database.db.select().from(numbers)).length;
}
