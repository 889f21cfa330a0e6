import { beforeAll, expect, test } from "bun:test";
import { createServer } from "node:net";

import { connect } from "../../../db/client.ts";
import { isStoreFailure } from "../../../db/errors.ts";
import { type Limits, LIMITS } from "../../../db/limits.ts";
import { createDatabase } from "../../support/postgres.ts";
import { listen } from "../../support/network/raw-receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(() => createDatabase("sessions"));
/** A server that accepts connections and never answers. */
const mute = fixture(() => createServer((socket) => socket.on("error", () => {})));

test("the host that answers is used, at any position in the list", async () => {
  for (const hosts of [
    (own: string) => [closed, own],
    (own: string) => [own, closed],
    (own: string) => [closed, closed, own],
    (own: string) => [silent, own],
  ])
    expect(await ends(withHosts(hosts))).toEqual(["done", "done", "done"]);
});

test("a statement fails after each host was tried once, if none answers", async () => {
  for (const hosts of [() => [closed, closed], () => [silent, closed], () => [closed, silent]]) {
    const failed = await ends(withHosts(hosts));
    expect(failed.map((error) => isStoreFailure(error))).toEqual([true, true, true]);
  }
});

test("behind two hosts that do not answer, the third one is reached within the deadline of the intake", async () => {
  const limits = LIMITS.writerPool;
  const url = withHosts((own) => [silent, silent, own]);
  const late = Bun.sleep(limits.deadlineMs).then(() => "late");
  expect(await Promise.race([ends(url, 1, limits), late])).toEqual(["done"]);
});

test("a read-only host is not used, and the error says why", async () => {
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

let silent = "";

/** An address without a listener. */
let closed = "";

beforeAll(async () => {
  silent = `127.0.0.1:${await listen(mute, "127.0.0.1")}`;
  const gone = createServer();
  closed = `127.0.0.1:${await listen(gone, "127.0.0.1")}`;
  gone.close();
});

/** The address of the database with these hosts added to its own. */
function withHosts(hosts: (own: string) => readonly string[]): string {
  const { host } = new URL(database.url);
  return database.url.replace(host, hosts(host).join(","));
}

/** Runs this many statements, on up to as many connections, and returns the result of each. */
async function ends(
  url: string,
  count = 3,
  limits: Limits = { ...LIMITS.requests, deadlineMs: 3_000 },
): Promise<unknown[]> {
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
