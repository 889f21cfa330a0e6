import { describe, expect, test } from "bun:test";

import { createStore } from "../../../dispatcher/store/store.ts";
import { countStats } from "../../../src/webhooks/actions/stats.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { passQueue, queueCopies } from "../../support/outbox.ts";
import { silentLog } from "../../support/dispatch.ts";
import { disable, settle, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";
import { isThorough } from "../../support/thorough.ts";

const MANY = isThorough ? 200_000 : 2_000;

const world = fixture(startWebhooks);

describe.each([
  { of: "the log", events: MANY, rows: 0 },
  { of: "rows", events: 0, rows: MANY },
  { of: "the log and of rows", events: MANY / 2, rows: MANY / 2 },
])(`${MANY} entries of $of are skipped by one row`, ({ events, rows }) => {
  test("by an enable and by a delete, and the sequence continues afterwards", async () => {
    const { id, eventIds } = await queued(1);
    const { db } = world.database;
    if (rows > 0) {
      await passQueue(db, id);
      eventIds.push(await queueCopies(db, id, rows - 1, "rows"));
    }
    if (events > 0) eventIds.push(await queueCopies(db, id, events - (rows > 0 ? 0 : 1), "log"));
    await disable(world, id);
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({ held: MANY });

    expect((await enable(id)).status).toBe(200);
    const expected = { first: expect.any(Number), last: MANY };
    expect([...(await skips(id))]).toEqual([{ ...expected, reason: "skipped" }]);
    expect(await counted("outbox", id)).toBe(rows);
    expect(await counted("skipped_entries", id)).toBe(MANY);
    for (const eventId of eventIds)
      expect(await delivery(id, eventId)).toMatchObject({
        state: "skipped",
        settled_at: expect.any(String),
      });
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({
      pending: 0,
      oldest_pending_age_s: null,
    });
    const [fresh = ""] = await world.emit(1);
    expect(await loaded(id)).toEqual([[fresh, 1]]);
    await db.sql`
      insert into stats_progress (counted_until) values (date_trunc('hour', now()) - interval '1 hour') on conflict do nothing`;
    world.clock.advance(600_000);
    await countStats({ ...world.api.deps, db }, world.clock.now());
    const stats = await db.sql`
      select distinct entries from backlog_stats where subscription_id = ${id}`;
    expect([...stats]).toEqual([{ entries: 1 }]);

    await settle(world, id, "delivered");
    await queueAgain(id);
    expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
    expect((await skips(id)).map(({ reason }) => reason)).toEqual(["deleted"]);
    await world.emit(1);
    expect(await loaded(id)).toEqual([]);
    await db.sql`delete from outbox_skips`;
    await db.sql`delete from outbox`;
  });
});

test("a skip waits for a commit of attempts, and covers the entries that this leaves queued", async () => {
  const { id, eventIds } = await queued(3);
  await disable(world, id);
  const skipping = await world.database.connect().transaction(async ({ sql }) => {
    await sql`update outbox_offsets set settled_through = 1 where subscription_id = ${id}`;
    const answer = enable(id);
    await untilSomebodyWaits(world.database.db);
    expect(await counted("skipped_entries", id)).toBe(0);
    return [answer];
  });
  expect((await skipping[0])?.status).toBe(200);
  expect([...(await skips(id))]).toEqual([{ first: 2, last: 3, reason: "skipped" }]);
  expect(await counted("skipped_entries", id)).toBe(eventIds.length - 1);
});

test.each(["log", "rows"] as const)("a skipped event is redelivered once: %s", async (kind) => {
  const { id, eventIds } = await queued(2);
  if (kind === "rows") await passQueue(world.database.db, id);
  await disable(world, id);
  await enable(id);
  const [fresh = ""] = await world.emit(1);
  const [again = ""] = eventIds;
  const path = `/${id}/deliveries/${again}/redeliver`;
  expect((await world.ask("POST", path)).status).toBe(202);
  expect((await world.ask("POST", path)).body["code"]).toBe("already_queued");
  expect(await loaded(id)).toEqual([
    [fresh, 1],
    [again, 2],
  ]);
  expect(await delivery(id, again)).toMatchObject({ state: "pending" });
  // A redelivered event is skipped like any other, together with the rest.
  await disable(world, id);
  await enable(id);
  expect(await delivery(id, again)).toMatchObject({ state: "skipped" });
  expect((await world.ask("POST", path)).status).toBe(202);
  expect(await loaded(id)).toEqual([[again, 3]]);
  await settle(world, id, "delivered");
  expect(await delivery(id, again)).toMatchObject({ state: "delivered" });
  expect(await delivery(id, fresh)).toMatchObject({ state: "skipped" });
});

const HELD = { body: { held: "skip" } };

const enable = (id: string) => world.ask("POST", `/${id}/enable`, HELD);

const delivery = async (id: string, eventId: string) =>
  (await world.ask("GET", `/${id}/deliveries/${eventId}`)).body;

/** Creates an active subscription with `count` queued events, and returns their ids. */
async function queued(count: number): Promise<{ id: string; eventIds: string[] }> {
  const { id } = await world.subscribe();
  return { id, eventIds: await world.emit(count) };
}

async function shardOf(id: string): Promise<number> {
  const [row] = await world.database.db.sql<{ shard: number }[]>`
    select shard from webhook_subscriptions where id = ${id}`;
  return row?.shard ?? 0;
}

/** Returns the event ids and rounds that a dispatcher would send next. */
async function loaded(id: string) {
  const { db } = world.database;
  const config = { batchHourMs: 1_000 };
  const store = createStore({ ...world.api.deps, db, clock: world.clock, log: silentLog, config });
  const request = {
    id,
    shard: await shardOf(id),
    generation: 1,
    after: 0,
    limit: 64,
    maxBytes: 1e6,
  };
  const [one] = await store.load([{ ...request, exceptReviews: [] }]);
  return (one?.found?.entries ?? []).map(({ eventId, round }) => [eventId, round]);
}

const skips = (id: string) =>
  world.database.db.sql<{ first: number; last: number; reason: string }[]>`
    select first, last, reason from outbox_skips where subscription_id = ${id} order by last`;

async function counted(table: "outbox" | "skipped_entries", id: string): Promise<number> {
  const { sql } = world.database.db;
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from ${sql(table)} where subscription_id = ${id}`;
  return row?.count ?? -1;
}

/** Undoes a skip, so that the skipped entries are queued again. */
const queueAgain = (id: string) => world.database.db.sql`
  with gone as (delete from outbox_skips where subscription_id = ${id})
  update outbox_offsets set settled_through = 0, skipped_through = 0 where subscription_id = ${id}`;
