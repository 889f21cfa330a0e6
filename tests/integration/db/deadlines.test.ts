import { beforeAll, beforeEach, expect, test } from "bun:test";

import { connect, type RawDb } from "../../../db/client.ts";
import { isLockTimeout, isStoreFailure } from "../../../db/errors.ts";
import type { Limits } from "../../../db/limits.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createDatabase } from "../../support/postgres.ts";
import { until } from "../../support/network/receiver.ts";
import { proxyBefore } from "../../support/network/tcp-proxy.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("sessions"));
const proxy = fixture(() => proxyBefore(database.url));

test("a statement without an answer fails, and the next one uses a new connection", async () => {
  await withPool({ deadlineMs: 500 }, async (db) => {
    await db.sql`select 1`;
    const before = proxy.accepted;
    proxy.freeze();
    const end = await endOf(db.sql`select 2`);
    expect(codeOf(end)).toBe("DEADLINE_EXCEEDED");
    expect(isStoreFailure(end)).toBe(true);
    expect([...(await db.sql<{ n: number }[]>`select 3 as n`)]).toEqual([{ n: 3 }]);
    expect(proxy.accepted).toBe(before + 1);
  });
});

test("a pool recovers after all of its connections went silent, for statements and transactions", async () => {
  await withPool(
    { deadlineMs: 500 },
    async (db) => {
      const work = (id: number) =>
        db.transaction((tx) => tx.sql`update counted set n = n + 1 where id = ${id}`);
      await Promise.all([work(1), work(2), db.sql`select 1`]);
      proxy.freeze();
      const ends = await Promise.all(
        Array.from({ length: 12 }, () => endOf(db.transaction((tx) => tx.sql`select 1`))),
      );
      expect(ends.filter((end) => end !== "done" && !isStoreFailure(end))).toEqual([]);
      await Promise.all([work(1), work(2)]);
      const rows = await database.db.sql<{ n: number }[]>`select n from counted order by id`;
      expect(rows.map(({ n }) => n)).toEqual([2, 2]);
    },
    { max: 3 },
  );
});

test("one deadline is enough for all connections that are idle", async () => {
  await withPool(
    { deadlineMs: 500 },
    async (db) => {
      await Promise.all([1, 2, 3].map((n) => db.sql`select ${n}::int, pg_sleep(0.1)`));
      proxy.freeze();
      expect(codeOf(await endOf(db.sql`select 1`))).toBe("DEADLINE_EXCEEDED");
      for (let i = 0; i < 3; i++) expect(await endOf(db.sql`select 1`)).toBe("done");
    },
    { max: 3 },
  );
});

test("the server ends the session of a lost client, and releases its row lock", async () => {
  await withPool({ deadlineMs: 500, idleMs: 1_000 }, async (db) => {
    const end = await endOf(
      db.transaction(async (tx) => {
        await tx.sql`update counted set n = n + 1 where id = 1`;
        proxy.freeze();
        await tx.sql`select 1`;
      }),
    );
    expect(isStoreFailure(end)).toBe(true);
    // Waits for the lock, and would never return if the server did not end the session.
    await database.db.sql`update counted set n = n + 10 where id = 1`;
    const [row] = await database.db.sql<{ n: number }[]>`select n from counted where id = 1`;
    expect(row?.n).toBe(10);
  });
});

test("a connection that goes silent during the handshake fails its statement", async () => {
  const silent = await proxyBefore(database.url);
  const url = silent.in(database.url);
  const frozen = setInterval(() => silent.freeze(), 1);
  await withPool(
    { deadlineMs: 500 },
    async (db) => {
      expect(isStoreFailure(await endOf(db.sql`select 1`))).toBe(true);
      clearInterval(frozen);
      await until("an answer", async () => (await endOf(db.sql`select 1`)) === "done");
    },
    { url },
  );
  silent.stop();
});

test("a slow statement does not delay others while a connection is free", async () => {
  await withPool(
    { deadlineMs: 20_000 },
    async (db) => {
      const slow = endOf(db.sql`select pg_sleep(1000)`);
      const sleeping = async () =>
        (
          await database.db.sql`
            select pid from pg_stat_activity
             where query = 'select pg_sleep(1000)' and wait_event = 'PgSleep'`
        ).length > 0;
      await until("the slow one runs", sleeping);
      // Sequential and concurrent statements must all return while the slow one does not.
      for (let i = 0; i < 5; i++) await db.sql`select ${i}::int`;
      await Promise.all(Array.from({ length: 20 }, (_, i) => db.sql`select ${i}::int`));
      await database.db.sql`
        select pg_cancel_backend(pid) from pg_stat_activity 
         where query = 'select pg_sleep(1000)'`;
      expect(codeOf(await slow)).toBe("57014");
    },
    { max: 2 },
  );
});

test("a statement without a free connection in time fails, and is not executed later", async () => {
  await withPool({ deadlineMs: 500 }, async (db) => {
    const held = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.sql`select 1`;
      await held.promise;
    });
    const end = await endOf(db.sql`update counted set n = 99`);
    expect(codeOf(end)).toBe("NO_CONNECTION");
    expect(isStoreFailure(end)).toBe(true);
    held.resolve();
    await holder;
    await db.sql`select 1`;
    const rows = await database.db.sql<{ n: number }[]>`select n from counted`;
    expect(rows.map(({ n }) => n)).toEqual([0, 0]);
  });
});

test("the server cancels a lock wait and a slow statement, and the connection stays", async () => {
  await withPool({ lockMs: 100, statementMs: 1_000 }, async (db) => {
    await db.sql`select 1`;
    const before = proxy.accepted;
    await database.db.transaction(async (tx) => {
      await tx.sql`update counted set n = 1 where id = 1`;
      const end = await endOf(db.sql`update counted set n = 2 where id = 1`);
      expect(isLockTimeout(end)).toBe(true);
      expect(isStoreFailure(end)).toBe(true);
    });
    const end = await endOf(db.sql`select pg_sleep(1000)`);
    expect(codeOf(end)).toBe("57014");
    expect(isStoreFailure(end)).toBe(true);
    await db.sql`select 1`;
    expect(proxy.accepted).toBe(before);
  });
});

test("a connection to a server that became read-only is replaced", async () => {
  await withPool({}, async (db) => {
    await db.sql`set default_transaction_read_only = on`;
    const before = proxy.accepted;
    const end = await endOf(db.sql`update counted set n = 1`);
    expect(codeOf(end)).toBe("25006");
    expect(isStoreFailure(end)).toBe(true);
    await db.sql`update counted set n = 1`;
    expect(proxy.accepted).toBe(before + 1);
    await db.sql`set default_transaction_read_only = on`;
    const inside = endOf(db.transaction((tx) => tx.sql`update counted set n = 2`));
    expect(codeOf(await inside)).toBe("25006");
    await db.transaction((tx) => tx.sql`update counted set n = 3`);
  });
});

beforeAll(async () => {
  await database.db.sql`create table counted (id int primary key, n int not null)`;
});

beforeEach(async () => {
  await database.db.sql`truncate counted`;
  await database.db.sql`insert into counted values (1, 0), (2, 0)`;
});

const PATIENT = 60_000;

const NEVER: Limits = {
  lockMs: PATIENT,
  statementMs: PATIENT,
  idleMs: PATIENT,
  deadlineMs: PATIENT,
};

async function withPool(
  limits: Partial<Limits>,
  use: (db: RawDb) => Promise<void>,
  { max = 1, url = proxy.in(database.url) } = {},
): Promise<void> {
  const db = connect(url, { max, name: "limited", limits: { ...NEVER, ...limits } });
  await use(db);
  await db.close();
}

const endOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "done",
    (error: unknown) => error,
  );

const codeOf = (error: unknown): unknown => fieldsOf(error)["code"];
