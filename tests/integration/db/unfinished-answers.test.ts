import { beforeAll, expect, test } from "bun:test";
import { connect as openSocket, createServer, type Socket } from "node:net";

import { connect, type RawDb } from "../../../db/client.ts";
import { isStoreFailure } from "../../../db/errors.ts";
import type { Limits } from "../../../db/limits.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createDatabase } from "../../support/postgres.ts";
import { listen } from "../../support/network/raw-receiver.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

// Statements that fail after their first rows, and connections that end within an answer. The driver must not pass any
// part of them to the next statement. Each pool has one connection, so that the next statement uses it.

test("a connection that ends at any byte of its start fails as a store failure, and the next one works", async () => {
  const proxy = await startCutting();
  for (const cutAfter of [0, 1, 60, 200, 400, 600, 1_000, 2_000, 4_000]) {
    await withOne({ url: proxy.url }, async (one) => {
      proxy.cutAfter = cutAfter;
      const acceptedBefore = proxy.accepted;
      const failed = await errorOf(one.sql`select 7 as n`);
      expect([cutAfter, codeOf(failed), isStoreFailure(failed)]).toEqual([
        cutAfter,
        "CONNECTION_CLOSED",
        true,
      ]);
      expect([cutAfter, proxy.accepted - acceptedBefore]).toEqual([cutAfter, 1]);
      proxy.cutAfter = Infinity;
      expect([...(await one.sql`select 7 as n`)]).toEqual([{ n: 7 }]);
    });
  }
  proxy.stop();
});

test("a connection that failed to read the types is not used, and the next one reads them", async () => {
  await withOne({ lockMs: 200 }, async (one) => {
    const list = () => one.sql<{ list: string[] }[]>`select array['a', 'b'] as list`;
    await database.db.transaction(async (tx) => {
      await tx.sql`lock table pg_catalog.pg_type in access exclusive mode`;
      expect(codeOf(await errorOf(list()))).toBe("55P03");
    });
    expect([...(await list())]).toEqual([{ list: ["a", "b"] }]);
  });
});

test("all statements of a transaction fail when its connection ends, including unsent ones", async () => {
  await withOne({}, async (one) => {
    let ends: unknown[] = [];
    const work = one.transaction(async (tx) => {
      const asked = [sleepBehindRows(tx), errorOf(tx.sql`select 1`), errorOf(tx.sql`select 2`)];
      await whenAsleep("pg_terminate_backend");
      ends = await Promise.all(asked);
    });
    await errorOf(work);
    await until("all of them have failed", () => ends.length === 3);
    expect(ends.map((end) => isStoreFailure(end))).toEqual([true, true, true]);
  });
});

const database = fixture(() => createDatabase("sessions"));

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "done",
    (error: unknown) => error,
  );

/** Returns 900 rows and sleeps at the next one. */
const sleepBehindRows = ({ sql }: Pick<RawDb, "sql">) =>
  errorOf(sql`select n, case when n > 900 then pg_sleep(30) end from generate_series(1, 1000) n`);

const ENDINGS: Record<string, { limits?: Partial<Limits>; end(one: RawDb): Promise<unknown> }> = {
  "an error at run time": {
    end: (one) => errorOf(one.sql`select 1 / (2000 - n) from generate_series(1, 3000) n`),
  },
  "a lock timeout": {
    limits: { lockMs: 200 },
    end: (one) =>
      database.db.transaction(async (tx) => {
        await tx.sql`select from lines where n = 291 for update`;
        return errorOf(one.sql`select n from lines for update`);
      }),
  },
  "a statement timeout": { limits: { statementMs: 300 }, end: sleepBehindRows },
  "a cancelled statement": {
    async end(one) {
      const ended = sleepBehindRows(one);
      await whenAsleep("pg_cancel_backend");
      return ended;
    },
  },
  "a terminated session": {
    async end(one) {
      const ended = sleepBehindRows(one);
      await whenAsleep("pg_terminate_backend");
      return ended;
    },
  },
};

for (const [name, { limits, end }] of Object.entries(ENDINGS))
  test(`after ${name} following its first rows, the next statement returns only its own row`, async () => {
    await withOne({ ...limits }, async (one) => {
      for (let round = 0; round < 2; round++) {
        expect(CODES[name]).toContain(String(codeOf(await end(one))));
        expect([...(await one.sql`select 7 as n`)]).toEqual([{ n: 7 }]);
      }
    });
  });

interface Cutting {
  readonly url: string;
  readonly accepted: number;
  /** The number of server bytes after which each new connection ends. */
  cutAfter: number;
  stop(): void;
}

/** Starts a proxy that ends its connections within an answer, cleanly and without an error. */
async function startCutting(): Promise<Cutting> {
  const target = new URL(database.url);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    proxy.accepted += 1;
    const upstream = openSocket({ host: target.hostname, port: Number(target.port) });
    let left = proxy.cutAfter;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    if (left === 0) client.end();
    client.on("data", (chunk) => void upstream.write(chunk));
    upstream.on("data", (chunk: Buffer) => {
      if (left > 0) client.write(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) client.end();
    });
    client.on("close", () => upstream.destroy());
  });
  const url = new URL(database.url);
  url.hostname = "127.0.0.1";
  url.port = String(await listen(server, "127.0.0.1"));
  const proxy = {
    url: url.href,
    accepted: 0,
    cutAfter: 0,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
  return proxy;
}

beforeAll(async () => {
  await database.db.sql`create table lines as select generate_series(1, 300) as n`;
});

const NEVER_MS = 60_000;

const NEVER: Limits = {
  lockMs: NEVER_MS,
  statementMs: NEVER_MS,
  idleMs: NEVER_MS,
  deadlineMs: NEVER_MS,
};

async function withOne(
  { url = database.url, ...limits }: Partial<Limits> & { readonly url?: string },
  use: (one: RawDb) => Promise<void>,
): Promise<void> {
  const one = connect(url, { max: 1, name: "one", limits: { ...NEVER, ...limits } });
  await use(one);
  await one.close();
}

const codeOf = (error: unknown): unknown => fieldsOf(error)["code"];

/** Cancels or terminates the session of the pool once its statement sleeps. */
async function whenAsleep(action: "pg_cancel_backend" | "pg_terminate_backend"): Promise<void> {
  const { sql } = database.db;
  await until("the statement sleeps", async () => {
    const rows = await sql`
      select ${sql(action)}(pid) from pg_stat_activity
       where application_name = 'one' and datname = current_database() and wait_event = 'PgSleep'`;
    return rows.length === 1;
  });
}

const CODES: Readonly<Record<string, readonly string[]>> = {
  "an error at run time": ["22012"],
  "a lock timeout": ["55P03"],
  "a statement timeout": ["57014"],
  "a cancelled statement": ["57014"],
  "a terminated session": ["57P01", "CONNECTION_CLOSED"],
};
