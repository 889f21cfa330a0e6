import { afterAll, beforeAll, expect, test } from "bun:test";

import { connect, type RawDb } from "../../db/client.ts";
import { createDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/receiver.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
  await database.db.sql`create table written (by text)`;
});
afterAll(() => database.drop());

/** One connection, so that whatever a lost one leaves behind meets the next user. */
async function withOne(use: (one: RawDb) => Promise<void>): Promise<void> {
  const one = connect(database.url, { max: 1, name: "one" });
  await use(one);
  await one.close();
}

/** Ends the server's side of it, as a restart does. */
async function terminate(): Promise<void> {
  await until("the end of the connection", async () => {
    await database.db.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'one' and datname = current_database()`;
    const [row] = await database.db.sql<{ left: number }[]>`
      select count(*) as left from pg_stat_activity
       where application_name = 'one' and datname = current_database()`;
    return row?.left === 0;
  });
}

const endOf = (work: Promise<unknown>) =>
  work.then(
    () => "committed",
    () => "failed",
  );

test("a transaction whose connection ends during a statement fails, and the next one works", async () => {
  await withOne(async (one) => {
    for (let round = 0; round < 20; round++) {
      const begun = Promise.withResolvers<void>();
      const broken = one.transaction(async (tx) => {
        await tx.sql`insert into written values ('broken')`;
        begun.resolve();
        await tx.sql`select pg_sleep(20)`;
      });
      const ended = endOf(broken);
      await begun.promise;
      await terminate();
      expect(await ended).toBe("failed");
      await one.transaction(async (tx) => {
        await tx.sql`insert into written values ('whole')`;
      });
    }
  });
  const rows = await database.db.sql<{ by: string; count: number }[]>`
    select by, count(*) as count from written group by by`;
  expect([...rows]).toEqual([{ by: "whole", count: 20 }]);
});

test("a transaction whose connection ended between two statements writes nothing on another one", async () => {
  await database.db.sql`delete from written`;
  await withOne(async (one) => {
    const goOn = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const late = Promise.withResolvers<unknown>();
    const broken = one.transaction(async (tx) => {
      await tx.sql`insert into written values ('broken')`;
      begun.resolve();
      await goOn.promise;
      await tx.sql`insert into written values ('late')`.then(late.resolve, late.resolve);
    });
    const ended = endOf(broken);
    await begun.promise;
    await terminate();
    expect(await ended).toBe("failed");
    await one.transaction(async (tx) => {
      await tx.sql`insert into written values ('whole')`;
      goOn.resolve();
      await late.promise;
      await tx.sql`select 1`;
    });
  });
  expect([...(await database.db.sql`select by from written`)]).toEqual([{ by: "whole" }]);
});
