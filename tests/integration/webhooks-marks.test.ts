import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { CHUNK, openMarks } from "../../db/marks.ts";
import { createStore } from "../../dispatcher/store/store.ts";
import { settleMarks } from "../../dispatcher/store/settle-marks.ts";
import { countStats } from "../../src/webhooks/actions/stats.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createTestBox, silentLog } from "../support/dispatch.ts";
import { until } from "../support/receiver.ts";
import { disable, startWebhooks, type WebhookWorld } from "../support/webhooks.ts";

/** More than what is settled at once. */
const MANY = 2 * CHUNK + 500;
const SHARDS = Array.from({ length: 64 }, (_, shard) => shard);

let world: WebhookWorld;

beforeAll(async () => {
  world = await startWebhooks();
});
afterAll(() => world.stop());

/** A disabled subscription with so many copies of one event held. */
async function holding(count: number): Promise<{ id: string; eventIds: string[] }> {
  const { id } = await world.subscribe();
  const [eventId = ""] = await world.emit(1);
  const { sql } = world.database.db;
  await sql`
    insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at)
    select shard, subscription_id, sequence + n, '01' || lpad(n::text, 24, '0'), event, payload_mode, review_history_id, review_id, recorded_at
      from outbox, generate_series(1, ${count - 1}::int) n where subscription_id = ${id}`;
  await sql`update outbox_sequences set last_sequence = ${count} where subscription_id = ${id}`;
  await disable(world, id);
  return { id, eventIds: [eventId, `01${String(count - 1).padStart(24, "0")}`] };
}

async function left(id: string): Promise<number> {
  const [row] = await world.database.db.sql<{ count: number }[]>`
    select count(*)::int as count from outbox where subscription_id = ${id}`;
  return row?.count ?? 0;
}

async function skipped(id: string): Promise<{ reasons: string[]; count: number }> {
  const [row] = await world.database.db.sql<{ reasons: string[]; count: number }[]>`
    select array_agg(distinct reason) as reasons, count(*)::int as count from settled_entries
     where subscription_id = ${id}`;
  return row ?? { reasons: [], count: 0 };
}

function store() {
  const { db } = world.database;
  const config = { batchHourMs: 1_000, serverRoot: "http://localhost:3000" };
  return createStore({ db, clock: systemClock, box: createTestBox(), log: silentLog, config });
}

async function settleAll(): Promise<void> {
  const stop = new AbortController();
  const deps = { store: store(), clock: systemClock, log: silentLog };
  const settling = settleMarks(deps, () => SHARDS, stop.signal);
  const { db } = world.database;
  await until("no mark", async () => (await openMarks(db, SHARDS)).length === 0);
  stop.abort();
  await settling;
}

describe("an enable that skips a long queue", () => {
  test("marks it, and every answer shows it as skipped before it is", async () => {
    const { id, eventIds } = await holding(MANY);
    expect((await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } })).status).toBe(200);
    expect(await left(id)).toBe(MANY - CHUNK);
    for (const eventId of eventIds) {
      const { body } = await world.ask("GET", `/${id}/deliveries/${eventId}`);
      expect(body).toMatchObject({ state: "skipped", settled_at: expect.any(String) });
    }
    const { body: health } = await world.ask("GET", `/${id}/health`);
    expect(health).toMatchObject({ pending: 0, held: 0, oldest_pending_age_s: null });
    expect((await loaded(id)).length).toBe(0);
    await countStats({ ...world.api.deps, db: world.database.db }, world.clock.now());
    const { sql } = world.database.db;
    expect(await sql`select from backlog_stats where subscription_id = ${id}`).toHaveLength(0);
    await settleAll();
    expect([await left(id), await skipped(id)]).toEqual([0, { reasons: ["skipped"], count: MANY }]);
  });

  test("lets through what is recorded after it, and what is asked for again", async () => {
    const { id, eventIds } = await holding(MANY);
    await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
    const fresh = await world.emit(1);
    const again = eventIds[1] ?? "";
    const path = `/${id}/deliveries/${again}/redeliver`;
    expect((await world.ask("POST", path)).status).toBe(202);
    expect((await world.ask("POST", path)).body["code"]).toBe("already_queued");
    expect((await loaded(id)).map((one) => [one.eventId, one.round])).toEqual([
      [fresh[0] ?? "", 1],
      [again, 2],
    ]);
    const { body } = await world.ask("GET", `/${id}/deliveries/${again}`);
    expect(body).toMatchObject({ state: "pending" });
    await settleAll();
    expect(await left(id)).toBe(2);
  });

  async function loaded(id: string) {
    const [row] = await world.database.db.sql<{ shard: number }[]>`
      select shard from webhook_subscriptions where id = ${id}`;
    const deps = { ...world.api.deps, db: world.database.db, log: silentLog };
    const config = { batchHourMs: 1_000, serverRoot: "http://localhost:3000" };
    const [one] = await createStore({ ...deps, clock: world.clock, config }).load([
      {
        id,
        shard: row?.shard ?? 0,
        generation: 1,
        after: 0,
        limit: 64,
        exceptReviews: [],
        inherits: false,
      },
    ]);
    return one?.found?.entries ?? [];
  }
});

describe("a delete of a subscription with a long queue", () => {
  test("is answered before it is settled, and leaves nothing in the end", async () => {
    const { id } = await holding(MANY);
    expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
    expect(await left(id)).toBe(MANY - CHUNK);
    await settleAll();
    expect([await left(id), await skipped(id)]).toEqual([0, { reasons: ["deleted"], count: MANY }]);
  });

  test("goes round an entry that somebody has locked, which is settled later", async () => {
    const { id } = await holding(MANY);
    const { db, connect } = world.database;
    const other = connect();
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const locked = Promise.withResolvers<void>();
    const holder = other.transaction(async ({ sql }) => {
      await sql`select from outbox where subscription_id = ${id} and sequence in (3, ${MANY}) for update`;
      locked.resolve();
      await released;
    });
    await locked.promise;
    expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
    const settling = settleAll();
    await until("all but two settled", async () => (await left(id)) === 2);
    expect(await openMarks(db, SHARDS)).toHaveLength(1);
    release();
    await Promise.all([holder, settling]);
    expect(await left(id)).toBe(0);
  });
});
