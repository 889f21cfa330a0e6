// A recovery of a window with more events than one statement may read.
import { beforeAll, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import type { RawDb } from "../../../db/client.ts";
import { SUBSCRIBABLE_EVENTS } from "../../../src/outbox/event.ts";
import { recover } from "../../../src/webhooks/actions/queue-events.ts";
import { BATCH_ROWS, undelivered } from "../../../src/webhooks/queries/missed.ts";
import { subscriptionById } from "../../../src/webhooks/queries/subscriptions.ts";
import {
  forgetQueue,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
} from "../../support/outbox.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

test("finds the missed events of several batches", async () => {
  const { id, since, missed } = await busy(2 * BATCH_ROWS + 1, 1_000);
  const window = { since, until: world.clock.now(), settledSince: since, limit: 10_000 };
  const found = await undelivered(db, await find(id), { ...window, events: ["review_received"] });
  expect(missed.length).toBeGreaterThan(2);
  expect(found.ids).toEqual(missed);
});

test("finds the last event of a full batch", async () => {
  const { id, since } = await busy(BATCH_ROWS, 1);
  const window = { since, until: world.clock.now(), settledSince: since, limit: 2 * BATCH_ROWS };
  const found = await undelivered(db, await find(id), { ...window, events: ["review_received"] });
  expect(found.ids).toHaveLength(BATCH_ROWS);
});

test("that is interrupted is completed by the next call, which queues nothing twice", async () => {
  const { id, since, missed } = await busy(BATCH_ROWS + 1, 5);
  let transactions = 0;
  const deps = {
    ...world.api.deps,
    writerPool: {
      ...world.api.deps.writerPool,
      transaction: <T>(...given: Parameters<typeof world.api.deps.writerPool.transaction<T>>) => {
        if (++transactions === 3) throw new Error("The process died.");
        return world.api.deps.writerPool.transaction(...given);
      },
    },
  };
  const actor = { id: 1, email: "a@example.com", role: "PARTNER_OWNER", tokenKind: "web" };
  const call = { id: "r", ip: "127.0.0.1", userAgent: null, headers: new Headers() };
  const caller = Object.assign(Object.create(null), { principal: actor, call });
  const broken = recover(deps, caller, await find(id), { since, until: undefined });
  expect(String(await broken.catch((error: unknown) => error))).toContain("died");
  const body = { since: since.toISOString() };
  const again = await world.ask("POST", `/${id}/recover`, { body });
  const queued = await db.sql<{ id: number }[]>`
    select review_history_id as id from queued_entries where subscription_id = ${id} order by sequence`;
  expect(queued.map((row) => row.id)).toEqual(missed);
  expect(Number(again.body["queued"])).toBeLessThan(missed.length);
  expect((await world.ask("POST", `/${id}/recover`, { body })).body).toEqual({ queued: 0 });
});

test("finds what an earlier call did not look for: other event values, and an earlier time", async () => {
  const { id, since, missed } = await busy(20, 4);
  const queued = async (from: Date) => {
    const body = { since: from.toISOString() };
    return Number((await world.ask("POST", `/${id}/recover`, { body })).body["queued"]);
  };
  await world.ask("PATCH", `/${id}`, { body: { events: ["review_flagged"] } });
  expect(await queued(since)).toBe(0);
  await world.ask("PATCH", `/${id}`, { body: { events: ["review_received"] } });
  const late = await queued(new Date(since.getTime() + 10));
  expect(late).toBeGreaterThan(0);
  expect([late, await queued(since)]).toEqual([late, missed.length - late]);
});

/** The most events that one call queues (contract 6.15). */
const LIMIT = 10_000;

describe("a call after earlier ones", () => {
  let id = "";
  let since = new Date();
  let missed: readonly number[] = [];
  beforeAll(async () => {
    ({ id, since, missed } = await busy(LIMIT + 500, 1));
    const first = await world.ask("POST", `/${id}/recover`, {
      body: { since: since.toISOString() },
    });
    expect(first.body["queued"]).toBe(LIMIT);
  });
  const look = async () => {
    const window = { since, until: world.clock.now(), settledSince: since, limit: LIMIT };
    // Every event value, as for a subscription without a filter.
    const events = SUBSCRIBABLE_EVENTS;
    return (await undelivered(db, await find(id), { ...window, events })).ids;
  };

  test("queues again what has failed since", async () => {
    const [again = 0] = missed;
    await db.sql`
      with gone as (delete from outbox where subscription_id = ${id} and review_history_id = ${again} returning *)
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, request_headers, request_body, response_truncated, payload_mode, recorded_at)
      select ${ulid(world.clock.now().getTime())}, subscription_id, sequence, event_id, event, round, 4,
             ${world.clock.now()}, 1, 'failed', '{}', '{}', false, 'full', recorded_at
        from gone`;
    expect(await look()).toEqual([again, ...missed.slice(LIMIT)]);
  });

  test("finds all again once something was skipped", async () => {
    await world.ask("POST", `/${id}/disable`);
    await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } });
    expect(await look()).toEqual(missed.slice(0, LIMIT));
  });
});

let db: RawDb;
let tenant: Tenant;
async function find(id: string) {
  const found = await subscriptionById(db, tenant.partnerId, id);
  if (found === undefined) throw new Error(`There is no subscription ${id}.`);
  return found;
}

beforeAll(async () => {
  ({ db } = world.database);
  tenant = { ...(await insertTenant(db)), partnerId: world.tenants.partners[0].id };
});

/**
 * Creates a subscription with `count` events, a millisecond apart, all in its log and delivered except every
 * `missEvery`th. Returns the history ids of the undelivered ones.
 */
async function busy(count: number, missEvery: number) {
  world.clock.advance(1_000);
  const { id } = await world.subscribe();
  const since = world.clock.now();
  world.clock.advance(count);
  // Each event and its only attempt share an id here, made at the time of both.
  const eventIds = Array.from({ length: count }, (_, n) => ulid(since.getTime() + n));
  await record(db, [reviewAction(tenant)]);
  await db.sql`
    insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                actor, review, metadata, occurred_at, recorded_at, sequence, subscription_number,
                                is_minimal)
    select e.event_id, h.partner_id, h.account_id, h.store_id,
           h.review_id, h.store_review_site_id, h.event, h.actor, h.review, h.metadata, h.occurred_at,
           ${since}::timestamptz + (e.nth - 1) * interval '1 millisecond', l.sequence, l.number, l.is_minimal
      from queued_entries o join review_history h on h.id = o.review_history_id
      join webhook_subscriptions s on s.id = o.subscription_id,
           unnest(${eventIds}::text[]) with ordinality e(event_id, nth)
      left join lateral (
             select e.nth + 1 as sequence, s.number, false as is_minimal where e.nth % ${missEvery} <> 0) l on true
     where o.subscription_id = ${id} order by e.nth`;
  const [seed] = await db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from queued_entries where subscription_id = ${id}`;
  await forgetQueue(db, id);
  await db.sql`delete from review_history where event_id = ${seed?.eventId ?? ""}`;
  await db.sql`
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
      duration_ms, outcome, request_headers, request_body, response_truncated, payload_mode, recorded_at)
    select event_id, ${id}, sequence, event_id, event, 1, 1,
           recorded_at, 1, 'delivered', '{}', '{}', false, 'full', recorded_at
      from review_history where event_id = any(${eventIds}) and sequence is not null`;
  await db.sql`update outbox_offsets set settled_through = ${count} + 1 where subscription_id = ${id}`;
  await db.sql`
    update outbox_sequences set last_sequence = ${count} + 1, last_logged = ${count} + 1 where subscription_id = ${id}`;
  const missed = await db.sql<{ id: number }[]>`
    select id from review_history where event_id = any(${eventIds}) and sequence is null order by id`;
  return { id, since, missed: missed.map((row) => row.id) };
}
