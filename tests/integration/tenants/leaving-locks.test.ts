// The deletion of an account delays no other request, whatever holds a lock (contract 10.8).
import { afterEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { LIMITS } from "../../../db/limits.ts";
import { LOCK_MS } from "../../../db/locks.ts";
import { deletionChunk } from "../../../src/tenants/actions/delete-companies.ts";
import { connectionsBy } from "../../../src/transfer/queries/import.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { connectStore, created, report } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { addPartner } from "../../support/tenants.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: stores.schedule }));

afterEach(async () => {
  for (const release of held.splice(0)) await release();
});

test("an account is deleted while a dump reads every table, and requests no lock that a reader waits for", async () => {
  const { id, siteId } = await leavingAccount("dumped");
  const tables = await world.database.db.sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
     where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace`;
  expect(tables.length).toBeGreaterThan(30);
  await hold(`lock table ${tables.map(({ name }) => name).join(", ")} in access share mode`);
  const { waits } = await runOnce();
  expect(waits).toEqual([]);
  expect(await rowsOf(id, siteId)).toEqual([0, 0, 0, 0]);
});

test("a deletion waits for a transaction that may write about the account, without a lock, and says so", async () => {
  const { id, siteId } = await leavingAccount("open");
  // Like the look-up of a report: it has read the connection, and writes later.
  const { write, end } = await hold(
    `select from store_review_sites where id = ${siteId};
     select from reviews where false for no key update`,
  );
  const first = await runOnce();
  expect(await rowsOf(id, siteId)).toEqual([1, 0, 1, 1]);
  expect(first.waits).toEqual([[expect.stringMatching(/ \d+$/)]]);
  // It waits without a request for a lock, so that reports queue behind nothing.
  await report(world.api, world.provider, [created(world.siteId, "meanwhile")]);
  expect((await runOnce()).waits).toHaveLength(1);

  await write(`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content, reviewed_at,
                         created_at, updated_at)
    select partner_id, account_id, store_id, store_review_site_id, 'late', rate, content, reviewed_at, now(), now()
      from reviews where account_id = ${id} limit 1`);
  await end();
  expect((await runOnce()).waits).toEqual([]);
  expect(await rowsOf(id, siteId)).toEqual([0, 0, 0, 0]);
});

test("a deletion waits for an import that has read the connection, and writes a review of it later", async () => {
  const { id, siteId } = await leavingAccount("imported");
  await world.database.connect().transaction(async (tx) => {
    const [site] = await connectionsBy(tx, [siteId]);
    if (site === undefined) throw new Error("The connection is missing.");
    expect((await runOnce()).waits).toHaveLength(1);
    expect(await rowsOf(id, siteId)).toEqual([1, 0, 1, 1]);
    await tx.sql`
      insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content, reviewed_at,
                           created_at, updated_at)
      values (${site.partnerId}, ${id}, ${site.storeId}, ${siteId}, 'late', 5, '', now(), now(), now())`;
  });
  expect((await runOnce()).waits).toEqual([]);
  expect(await rowsOf(id, siteId)).toEqual([0, 0, 0, 0]);
});

test("a lock on a table that others need is requested in short tries by one function", () => {
  const root = join(import.meta.dir, "../../..");
  const strong =
    /\b(lock table|detach partition|attach partition|drop table|truncate table|alter table|create (unique )?index|reindex|cluster |vacuum full)\b/i;
  const files = ["src", "dispatcher", "db"].flatMap((tree) => [
    ...new Bun.Glob(`${tree}/**/*.ts`).scanSync({ cwd: root }),
  ]);
  const lines = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .filter((line) => strong.test(line) && !/^\s*(\*|\/\/|\/\*)/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(lines.filter((line) => !line.startsWith("db/partitions.ts"))).toEqual([
    expect.stringContaining("db/locks.ts"),
  ]);
  expect(LOCK_MS).toBeLessThan(100);
  for (const pool of ["maintenance", "indexing"] as const)
    expect(LIMITS[pool].lockMs).toBeLessThanOrEqual(100);
});

const held: (() => Promise<void>)[] = [];

/** Begins a transaction of another session, which stays open. */
async function hold(text: string) {
  const connection = world.database.connect();
  const ended = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<(more: string) => Promise<void>>();
  const holding = connection.transaction(async (tx) => {
    await tx.sql.unsafe("set local idle_in_transaction_session_timeout = 0");
    await tx.sql.unsafe(text);
    begun.resolve(async (more) => void (await tx.sql.unsafe(more)));
    await ended.promise;
  });
  const end = async () => {
    ended.resolve();
    await holding;
  };
  held.push(end);
  return { write: await begun.promise, end };
}

/** Makes an account with a connection, a review and an event, whose deletion is due. */
async function leavingAccount(name: string) {
  const { api, database, provider, tokens } = world;
  const [plan] = await database.db.sql<{ id: number }[]>`select id from plans limit 1`;
  const [account] = (await addPartner(database.db, name, plan?.id ?? 0)).accounts;
  const siteId = await connectStore(database.db, account, { provider });
  await report(api, provider, [created(siteId, name)]);
  const path = `/admin/accounts/${account.id}`;
  await api.call("POST", `${path}/deactivate`, { token: tokens.root, body: {} });
  const body = { name: `${name}-a1` };
  const { status } = await api.call("POST", `${path}/deletion`, { token: tokens.root, body });
  expect(status).toBe(202);
  await database.db.sql`update company_deletions set due_at = now() - interval '1 second'`;
  return { id: account.id, siteId };
}

/** Runs the chunks of one run of the job, and lists the sessions for which it waits. */
async function runOnce() {
  const waits: unknown[] = [];
  const log = memoryLog();
  const { db } = world.database;
  for (let next: string | undefined = ""; next !== undefined; world.clock.advance(1_000))
    ({ next } = await deletionChunk({ db, clock: world.clock, log }));
  for (const { event, fields } of log.lines)
    if (event === "company.deletion_waits") waits.push(fields["sessions"]);
  return { waits };
}

/** Counts what is left of an account: its row, its connection, its reviews and its events. */
async function rowsOf(id: number, siteId: number): Promise<number[]> {
  const [row] = await world.database.db.sql<{ counts: number[] }[]>`
    select array[(select count(*) from companies where id = ${id}),
                 (select count(*) from store_review_sites where id = ${siteId}),
                 (select count(*) from reviews where account_id = ${id}),
                 (select count(*) from review_history where account_id = ${id})]::int[] as counts`;
  return row?.counts ?? [];
}

function memoryLog() {
  const lines: { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[] =
    [];
  const write = (event: string, fields: object = {}) =>
    void lines.push({ event, fields: { ...fields } });
  return { lines, debug: write, info: write, warn: write, error: write };
}
