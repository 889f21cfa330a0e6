import { beforeAll, expect, test } from "bun:test";

import { eq, sql } from "drizzle-orm";

import { connect, type DbOrTx, type RawDb } from "../../../db/client.ts";
import { violatedIndex } from "../../../db/errors.ts";
import { plans } from "../../../db/schema/companies.ts";
import { errorFields } from "../../../src/lib/log.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("sessions"));

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

test("queries of the builder are prepared by the server, once for the transaction and the pool", async () => {
  await withOne(async (one) => {
    const find = (db: DbOrTx, id: number) =>
      db.select({ name: plans.name }).from(plans).where(eq(plans.id, id));
    await find(one, 1);
    await one.transaction((tx) => find(tx, 2));
    expect(await preparedOn(one)).toEqual(['select "name" from "plans" where "plans"."id" = $1']);
  });
});

test("a list of rows is not prepared, because its text depends on its length", async () => {
  await withOne(async (one) => {
    const rows = Array.from({ length: 40 }, (_, i) => ({ name: `plan ${i}`, features: [] }));
    const { count } = await one.insert(plans).values(rows);
    expect(count).toBe(40);
    expect(await preparedOn(one)).toEqual([]);
  });
});

test("a query of the builder accepts null, lists and instants, in a transaction and outside", async () => {
  interface Given {
    name: string;
    features: string[];
    at: Date;
    brand: string | null;
  }
  const renamed = (db: DbOrTx, { name, features, at, brand }: Given) =>
    db
      .update(plans)
      .set({ name: sql`coalesce(${brand}::text, ${at}::timestamptz::text)`, features })
      .where(eq(plans.name, name))
      .returning({ name: plans.name, features: plans.features });
  await withOne(async (one) => {
    await one.insert(plans).values({ name: "before", features: [] });
    const at = new Date("2026-06-01T12:00:00.000Z");
    const given = { name: "before", features: ["a", 'b,"c'], at, brand: null };
    const undone = new Error("undone");
    const end = one.transaction(async (tx) => {
      const rows = await renamed(tx, given);
      expect(rows).toEqual([{ name: "2026-06-01 12:00:00+00", features: ["a", 'b,"c'] }]);
      throw undone;
    });
    expect(await end.catch((error: unknown) => error)).toBe(undone);
    expect(await renamed(one, { ...given, brand: "after" })).toEqual([
      { name: "after", features: ["a", 'b,"c'] },
    ]);
  });
});

test("a failed query is recognised and logged by the server's error, without the values of parameters", async () => {
  const insert = async (db: DbOrTx, name: string) =>
    db.insert(plans).values({ name, features: [] });
  const name = "a secret name";
  await withOne(async (one) => {
    await insert(one, name);
    const again = [() => insert(one, name), () => one.transaction((tx) => insert(tx, name))];
    for (const run of again) {
      const error: unknown = await run().catch((reason: unknown) => reason);
      expect(violatedIndex(error)).toBe("plans_name_key");
      const logged = errorFields(error);
      expect(logged).toMatchObject({
        name: "PostgresError",
        error: 'duplicate key value violates unique constraint "plans_name_key"',
        code: "23505",
      });
      expect(JSON.stringify(logged)).not.toContain(name);
    }
  });
});

beforeAll(async () => {
  await database.db.sql`create table written (by text)`;
});

/** Uses a pool of one connection, so that leftovers of a lost connection would reach the next user. */
async function withOne(use: (one: RawDb) => Promise<void>): Promise<void> {
  const one = connect(database.url, { max: 1, name: "one" });
  await use(one);
  await one.close();
}

/** Ends the server's side of the connection, as a restart does. */
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

/** Lists the statements about plans that the server has prepared on the connection. */
const preparedOn = async (one: RawDb): Promise<string[]> => {
  const rows = await one.sql<{ statement: string }[]>`
    select statement from pg_prepared_statements where statement ~ '^(select|insert) .*"plans"'`;
  return rows.map(({ statement }) => statement);
};

const endOf = (work: Promise<unknown>) =>
  work.then(
    () => "committed",
    () => "failed",
  );
