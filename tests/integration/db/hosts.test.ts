import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";

import { connect } from "../../../db/client.ts";
import { isStoreFailure } from "../../../db/errors.ts";
import { LIMITS } from "../../../db/limits.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { listen } from "../../support/network/raw-receiver.ts";

let database: TestDatabase;
/** Takes connections and says nothing. */
let mute: Server;
let silent = "";
/** Nobody listens here. */
let closed = "";

beforeAll(async () => {
  database = await createDatabase();
  mute = createServer((socket) => socket.on("error", () => {}));
  silent = `127.0.0.1:${await listen(mute, "127.0.0.1")}`;
  const gone = createServer();
  closed = `127.0.0.1:${await listen(gone, "127.0.0.1")}`;
  gone.close();
});
afterAll(async () => {
  mute.close();
  await database.drop();
});

/** The address of the database with these hosts around its own. */
function withHosts(hosts: (own: string) => readonly string[]): string {
  const { host } = new URL(database.url);
  return database.url.replace(host, hosts(host).join(","));
}

/** How each of so many statements ended, on up to as many connections. */
async function ends(url: string, count = 3): Promise<unknown[]> {
  const limits = { ...LIMITS.requests, deadlineMs: 500 };
  const db = connect(url, { max: count, name: "hosts", limits });
  const all = await Promise.all(
    Array.from({ length: count }, () =>
      db.sql`select 1`.then(
        () => "done",
        (error: unknown) => error,
      ),
    ),
  );
  await db.close();
  return all;
}

test("of several hosts the one that answers is used, wherever it stands", async () => {
  for (const hosts of [
    (own: string) => [closed, own],
    (own: string) => [own, closed],
    (own: string) => [closed, closed, own],
    (own: string) => [silent, own],
  ])
    expect(await ends(withHosts(hosts))).toEqual(["done", "done", "done"]);
});

test("with no host that answers a statement fails after each was tried once", async () => {
  for (const hosts of [() => [closed, closed], () => [silent, closed], () => [closed, silent]]) {
    const failed = await ends(withHosts(hosts));
    expect(failed.map((error) => isStoreFailure(error))).toEqual([true, true, true]);
  }
});

test("a host that is read-only is not connected to, and the statement says why", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await database.db.sql.unsafe(`alter database "${name}" set default_transaction_read_only = on`);
  for (const url of [
    database.url,
    withHosts((own) => [own, closed]),
    withHosts((own) => [own, own]),
  ]) {
    const [error] = await ends(url, 1);
    expect(isStoreFailure(error)).toBe(true);
  }
  const [error] = await ends(database.url, 1);
  expect(String(error)).toContain("No host of DATABASE_URL is read-write");
  await database.db.transaction(async (tx) => {
    await tx.sql`set local transaction_read_only = off`;
    await tx.sql.unsafe(`alter database "${name}" reset default_transaction_read_only`);
  });
  expect(
    await ends(
      withHosts((own) => [closed, own]),
      1,
    ),
  ).toEqual(["done"]);
});
