// Deleting and skipping a batch subscription for which more events wait than one statement may delete.
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import { CHUNK } from "../../../db/log.ts";
import type { RawDb } from "../../../db/client.ts";
import { dispatchBatch } from "../../../dispatcher/store/batch-queries.ts";
import { removeBatchEntries } from "../../../dispatcher/maintenance/removal-queries.ts";
import { removeAll } from "../../support/maintenance.ts";
import {
  insertTenant,
  record,
  recordFirst,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { holding } from "../../support/holding.ts";
import { disable, HOUR_MS, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

describe("a delete of a batch slot", () => {
  test("drops the first chunk of waiting events, and maintenance drops the rest in chunks", async () => {
    const id = await waiting(MANY);
    expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
    expect([await left(id), await sizes()]).toEqual([MANY - CHUNK, [CHUNK]]);
    expect(await removeAll(removeBatchEntries, db, 30)).toBe(MANY - CHUNK);
    expect(await left(id)).toBe(0);
    expect(Math.max(...(await sizes()))).toBe(CHUNK);
  });

  test.each([CHUNK, CHUNK + 1])("leaves the events after the first chunk, of %d", async (count) => {
    const id = await waiting(count);
    await world.ask("DELETE", `/${id}`);
    expect(await left(id)).toBe(count - CHUNK);
    await removeAll(removeBatchEntries, db, 30);
  });
});

describe("an enable of a batch slot that skips", () => {
  test("drops the first chunk of waiting events, and maintenance drops the rest in chunks", async () => {
    const id = await waiting(MANY);
    await skip(id);
    expect([await left(id), await sizes()]).toEqual([MANY - CHUNK, [CHUNK]]);
    await record(db, [reviewAction(tenant)]);
    expect(await removeAll(removeBatchEntries, db, 30)).toBe(MANY - CHUNK);
    expect(await left(id)).toBe(1);
    expect(Math.max(...(await sizes()))).toBe(CHUNK);
  });

  test("leaves none of the dropped events to the next batch, which has all later events, also of the same review", async () => {
    const id = await waiting(MANY);
    await skip(id);
    const [review = 0, other = 0] = tenant.reviewIds;
    // One review has more events than a chunk, so that the next chunk continues in the middle of it.
    const of = [...Array.from({ length: CHUNK }, () => review), other, review];
    const after = of.map((reviewId) => reviewAction(tenant, { reviewId }));
    await record(db, after);
    const ids = after.map(({ eventId }) => eventId);
    const [beforeLast = "", last = ""] = ids.splice(-2);
    expect(await dispatched(id)).toEqual([...ids, last, beforeLast]);
    await world.ask("DELETE", `/${id}`);
    await removeAll(removeBatchEntries, db, 30);
  });

  test("waits for an event that is being committed, and drops it", async () => {
    const id = await waiting(1);
    await disable(world, id);
    const commit = await holding(db, (tx) => recordFirst(tx, [reviewAction(tenant)]));
    const skipping = world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
    await untilSomebodyWaits(db);
    await commit();
    expect((await skipping).status).toBe(200);
    expect(await dispatched(id)).toEqual([]);
  });

  test("keeps an event that waits for its lock, because the event gets a later id", async () => {
    const id = await waiting(1);
    const release = await holding(
      db,
      ({ sql }) => sql`select from outbox_sequences where subscription_id = ${id} for update`,
    );
    const lastId = async () => (await db.sql`select last_value from review_history_id_seq`)[0];
    const before = await lastId();
    const recording = record(db, [reviewAction(tenant)]);
    await untilSomebodyWaits(db);
    expect(await lastId()).toEqual(before);
    await Promise.all([release(), recording]);
    expect(await left(id)).toBe(2);
  });

  test("leaves dropped events to be recovered", async () => {
    const since = world.clock.now();
    world.clock.advance(1);
    const id = await waiting(CHUNK + 2);
    await db.transaction(async ({ sql }) => {
      await sql`set local session_replication_role = replica`;
      await sql`update review_history set recorded_at = ${world.clock.now()}
                 where id in (select review_history_id from batch_entries where subscription_id = ${id})`;
    });
    await skip(id);
    world.clock.advance(1);
    const body = { since: since.toISOString() };
    const answer = await world.ask("POST", `/${id}/recover`, { body });
    expect(answer.body).toEqual({ queued: CHUNK + 2 });
  });
});

const MANY = 2 * CHUNK + 500;

const batch = { delivery_kind: "batch", batch_interval_hours: 1 };

let db: RawDb;

let tenant: Tenant;

beforeAll(async () => {
  ({ db } = world.database);
  tenant = { ...(await insertTenant(db, 2)), partnerId: world.tenants.partners[0].id };
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values ('D', now(), now())`;
});

/** Returns the numbers of rows that statements deleted from `batch_entries`. */
const sizes = async () =>
  (await db.sql<{ rows: number }[]>`select rows from deletes order by rows desc`).map(
    ({ rows }) => rows,
  );

beforeEach(async () => {
  await db.sql.unsafe(`
    create table deletes (rows int);
    create function count_deletes() returns trigger language plpgsql as $$
    begin insert into deletes select count(*) from old_rows; return null; end $$;
    create trigger count_deletes after delete on batch_entries referencing old table as old_rows
      for each statement execute function count_deletes()`);
});

afterEach(async () => {
  await db.sql.unsafe(
    "drop trigger count_deletes on batch_entries; drop function count_deletes; drop table deletes",
  );
});

/** Creates a batch subscription for which `count` events of one review wait. */
async function waiting(count: number): Promise<string> {
  const { id } = await world.subscribe(batch);
  await record(db, [reviewAction(tenant)]);
  await db.sql`
    with copies as (
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                  actor, review, metadata, occurred_at, recorded_at)
      select h.event_id || n, h.partner_id, h.account_id, h.store_id, h.review_id, h.store_review_site_id, h.event,
             h.actor, h.review, h.metadata, h.occurred_at, h.recorded_at
        from batch_entries b join review_history h on h.id = b.review_history_id, generate_series(2, ${count}::int) n
       where b.subscription_id = ${id}
      returning id
    )
    insert into batch_entries (subscription_id, review_history_id) select ${id}, id from copies`;
  return id;
}

async function left(id: string): Promise<number> {
  const [row] = await db.sql<{ count: number }[]>`
    select count(*)::int as count from batch_entries where subscription_id = ${id}`;
  return row?.count ?? 0;
}

async function skip(id: string): Promise<void> {
  await disable(world, id);
  const { status } = await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
  expect(status).toBe(200);
}

/** Dispatches the next batch, and returns its events. */
async function dispatched(id: string): Promise<string[]> {
  const [due] = await db.sql<{ at: Date }[]>`
    select next_batch_at as at from webhook_subscriptions where id = ${id}`;
  const now = new Date((due?.at.getTime() ?? 0) + 1);
  const at = { id: `B${now.getTime()}`, dispatcherId: "D", hourMs: HOUR_MS, now };
  await dispatchBatch(db, { ...at, subscriptionId: id });
  const rows = await db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from queued_entries where subscription_id = ${id} order by sequence`;
  return rows.map(({ eventId }) => eventId);
}
