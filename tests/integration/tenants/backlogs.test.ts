import { beforeEach, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { createLeases } from "../../../dispatcher/shards/lease-queries.ts";
import { BACKLOG_LIMITS } from "../../../src/tenants/dispatcher-model.ts";
import { everyPage } from "../../support/api.ts";
import { forgetQueue } from "../../support/outbox.ts";
import { disable, settle, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

test("lists subscriptions with queued events: the deepest queue first, or the oldest", async () => {
  const small = await subscribeAs("owner", "Small");
  const large = await subscribeAs("other", "Large");
  await queue(small, { count: 23, ageS: 900 });
  await queue(large, { count: 7_900, ageS: 60 });
  const dueAt = "2026-07-01T10:00:00.000+00:00";
  await world.database.db.sql`
    update outbox set state = 'waiting', due_at = ${dueAt} where subscription_id = ${small} and sequence = 1`;
  const [one, two] = world.tenants.partners;
  const expected = [
    expect.objectContaining({
      subscription_id: large,
      label: "Large",
      partner_id: two.id,
      partner_name: "p2",
      is_active: true,
      queued: 7_900,
      due_at: null,
      dispatcher_id: null,
      last_error: null,
    }),
    expect.objectContaining({
      subscription_id: small,
      partner_id: one.id,
      queued: 23,
      due_at: dueAt,
    }),
  ];
  expect(await backlogs()).toEqual(expected);
  expect(await backlogs("?order=depth")).toEqual(expected);
  expect(await backlogs("?order=age")).toEqual(expected.toReversed());
  for (const order of ["depth", "age"])
    expect(
      await everyPage(world.api, `/admin/backlogs?limit=1&order=${order}`, world.tokens.root),
    ).toHaveLength(2);
});

test("shows the last error of a queue, and that it is held while disabled", async () => {
  const { id } = await world.subscribe({ label: "Failing" });
  await world.emit(2);
  await settle(world, id, "failed");
  await world.database.db.sql`
    update delivery_attempts set status_code = 503, error_code = 'http_status' where subscription_id = ${id}`;
  await world.emit(1);
  await disable(world, id);
  expect(await backlogs()).toEqual([
    expect.objectContaining({
      subscription_id: id,
      is_active: false,
      queued: 1,
      last_error: expect.objectContaining({ status_code: 503, error_code: "http_status" }),
    }),
  ]);
});

test("leaves out skipped events and subscriptions without queued events", async () => {
  const { id } = await world.subscribe();
  await queue(id, { count: 3 });
  await world.emit(1);
  expect(await backlogs()).toMatchObject([{ subscription_id: id, queued: 4 }]);
  await disable(world, id);
  expect((await world.ask("POST", `/${id}/enable`, { body: { held: "skip" } })).status).toBe(200);
  expect(await backlogs()).toEqual([]);
  const { body } = await world.api.call("GET", "/admin/dispatcher", { token: world.tokens.root });
  expect(body["lag"]).toMatchObject({ entries: 0, subscriptions: 0 });
});

describe("the length of a queue with order by review, whose first event waits for a retry", () => {
  const { counted } = BACKLOG_LIMITS;
  /** Deletes all entries but the first and the last `rest`, as if they were delivered while the first one waits. */
  const deliverPastFirst = (id: string, { count, rest }: { count: number; rest: number }) =>
    world.database.db.sql`
      delete from outbox where subscription_id = ${id} and sequence > 1 and sequence <= ${count - rest}`;

  test("counts queued events across a gap in the sequence, and ranks by that", async () => {
    const gaps = await subscribeAs("owner", "Gaps");
    const dense = await subscribeAs("other", "Dense");
    // More entries than the health counts exactly.
    await queue(gaps, { count: 12_000 });
    await deliverPastFirst(gaps, { count: 12_000, rest: 1 });
    await queue(dense, { count: 3 });
    expect(await backlogs()).toMatchObject([
      { subscription_id: dense, queued: 3 },
      { subscription_id: gaps, queued: 2 },
    ]);
    expect((await world.ask("GET", `/${gaps}/health`)).body).toMatchObject({ pending: 2 });
    const { body } = await world.api.call("GET", "/admin/dispatcher", { token: world.tokens.root });
    expect(body).toMatchObject({ lag: { entries: 5, subscriptions: 2 }, truncated: false });
  });

  test("is exact up to the limit, and counts each sequence number above it as an event", async () => {
    const { id } = await world.subscribe();
    const count = counted + 500;
    const without = (sequence: number) =>
      world.database.db
        .sql`delete from outbox where subscription_id = ${id} and sequence = ${sequence}`;
    await queue(id, { count });
    await without(2);
    expect(await backlogs()).toMatchObject([{ queued: count - 1 }]);
    // The gap is after the entries that are counted exactly.
    await without(count - 1);
    expect(await backlogs()).toMatchObject([{ queued: count - 1 }]);
    await deliverPastFirst(id, { count, rest: counted });
    expect(await backlogs()).toMatchObject([{ queued: counted }]);
    await without(count - 2);
    expect(await backlogs()).toMatchObject([{ queued: counted - 1 }]);
  });
});

test("ranks a limited number of subscriptions", async () => {
  const { sql } = world.database.db;
  const { ranked } = BACKLOG_LIMITS;
  // All subscriptions are in one shard, and the last one has the deepest queue.
  await sql`
    with made as (
      insert into companies (type, name, primary_color, created_at)
      select 'partner', 'many ' || n, '#112233', now() from generate_series(1, ${ranked}::int) n returning id
    ), subscribed as (
      insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
        suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at)
      select '01' || lpad(id::text, 24, '0'), id, 0, 'Many', 'http://127.0.0.1:9/', 'immediate', 'full', false,
             'subscription', 'active', 'x', 'x', now(), now() from made returning id
    )
    insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, recorded_at)
    select 0, id, 1, 'event', 'webhook.test', true, 'full', now() from subscribed`;
  const { id } = await world.subscribe({ label: "Deepest" });
  await sql`update webhook_subscriptions set shard = 0 where id = ${id}`;
  await queue(id, { count: 5 });
  expect(await backlogs("?limit=1")).not.toMatchObject([{ label: "Deepest" }]);
  await sql`
    delete from outbox where subscription_id = (select min(subscription_id) from outbox)`;
  expect(await backlogs("?limit=1")).toMatchObject([{ label: "Deepest", queued: 5 }]);
});

test("rejects a cursor of another list", async () => {
  for (const cursor of ["x", Buffer.from("1.x").toString("base64url")])
    expect((await ask(`?cursor=${cursor}`)).status).toBe(422);
  expect((await ask("?order=size")).status).toBe(422);
});

test("a dispatcher reports its memory with its heartbeat, and is shown with its shards", async () => {
  const { db } = world.database;
  const id = ulid();
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values (${id}, now(), now())`;
  const subscription = await world.subscribe();
  await queue(subscription.id, { count: 2, ageS: 30 });
  await db.sql`
    update shards set dispatcher_id = ${id}
     where id = (select shard from webhook_subscriptions where id = ${subscription.id})`;
  const shown = async () => {
    const { body } = await world.api.call("GET", "/admin/dispatcher", {
      token: world.tokens.root,
    });
    return body["dispatchers"] as Record<string, unknown>[];
  };
  expect(await shown()).toMatchObject([{ id, shards: 1, subscriptions: 1, memory_mb: null }]);
  await createLeases(db, db).renew(id);
  const [told] = await shown();
  expect(Number(told?.["memory_mb"])).toBeGreaterThan(10);
  expect(Number(told?.["lag_s"])).toBeGreaterThanOrEqual(30);
  expect(await backlogs()).toMatchObject([{ dispatcher_id: id }]);
});

beforeEach(() => forgetQueue(world.database.db));

const ask = (query = "") =>
  world.api.call("GET", `/admin/backlogs${query}`, { token: world.tokens.root });

async function backlogs(query = ""): Promise<Record<string, unknown>[]> {
  const { status, body, text } = await ask(query);
  if (status !== 200) throw new Error(text);
  return body["data"] as Record<string, unknown>[];
}

async function subscribeAs(who: "owner" | "other", label: string): Promise<string> {
  const { body: list } = await world.ask("GET", "", { as: who });
  for (const { id } of list["data"] as { id: string }[])
    await world.ask("DELETE", `/${id}`, { as: who });
  const body = { label, webhook_url: "http://127.0.0.1:9/", delivery_kind: "immediate" };
  const made = await world.ask("POST", "", { body, as: who });
  return String(made.body["id"]);
}

/** Queues `count` tests, which need no history, from sequence 1 on. */
async function queue(id: string, { count, ageS = 0 }: { count: number; ageS?: number }) {
  const recordedAt = new Date(world.clock.now().getTime() - ageS * 1_000);
  await world.database.db.sql`
    insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, recorded_at)
    select shard, id, n, 'event-' || n, 'webhook.test', true, 'full', ${recordedAt}
      from webhook_subscriptions, generate_series(1, ${count}::int) n where id = ${id}`;
  await world.database.db.sql`
    update outbox_sequences set last_sequence = ${count} where subscription_id = ${id}`;
}
