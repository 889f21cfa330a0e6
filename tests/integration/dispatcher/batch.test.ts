import { expect, test } from "bun:test";

import type { Db } from "../../../db/client.ts";
import { CHUNK } from "../../../db/log.ts";
import { dispatchBatch } from "../../../dispatcher/store/batch-queries.ts";
import { deliveries } from "../../support/deliveries.ts";
import { holding } from "../../support/holding.ts";
import { until } from "../../support/network/receiver.ts";
import { record, recordFirst, reviewAction } from "../../support/outbox.ts";

const { database, dispatcher, subscribe, ...given } = deliveries();

test("a batch of 3 reviews with 2 events each is 3 jobs and 6 full bodies, in order", async () => {
  const { receiver, tenant, subscription } = await batched(3);
  const [a = 0, b = 0, c = 0] = tenant.reviewIds;
  const order = [a, b, c, b, a, c];
  const actions = order.map((reviewId) => reviewAction(tenant, { reviewId }));
  // Each event has its own transaction, so that the order of commits is certain.
  for (const action of actions) await record(database.db, [action]);
  start();
  await until("six POSTs", () => receiver.received.length >= 6);
  const of = (reviewId: number) =>
    actions.filter((one) => one.reviewId === reviewId).map((one) => one.eventId);
  expect(receiver.eventIds).toEqual([...of(a), ...of(b), ...of(c)]);
  for (const post of receiver.received)
    expect(JSON.parse(post.body)).toContainKeys(["delivered_at", "review", "actor", "metadata"]);
  const jobs = () => database.db.sql<{ events: number }[]>`
    select count(*) as events from delivery_attempts
     where subscription_id = ${subscription.subscriptionId} group by batch_job_id`;
  const recorded = async () => (await jobs()).reduce((sum, { events }) => sum + events, 0);
  await until("six attempts in the record", async () => (await recorded()) === 6);
  expect((await jobs()).map((job) => job.events)).toEqual([2, 2, 2]);
});

test("a batch is dispatched again at the next due time, and an empty window advances the cursor", async () => {
  const { receiver, tenant, subscription } = await batched(1);
  start();
  await until(
    "an empty dispatch",
    async () => (await cursorOf(subscription.subscriptionId))?.last !== null,
  );
  const before = await cursorOf(subscription.subscriptionId);
  await record(database.db, [reviewAction(tenant)]);
  await until("the POST", () => receiver.received.length === 1);
  const after = await cursorOf(subscription.subscriptionId);
  const ticks = ((after?.next.getTime() ?? 0) - (before?.next.getTime() ?? 0)) / HOUR_MS;
  expect(Number.isInteger(ticks)).toBe(true);
});

test("an event that commits after the dispatch of its window is sent in the next one, once", async () => {
  const { tenant, subscription } = await batched(2);
  const [a = 0, b = 0] = tenant.reviewIds;
  const early = reviewAction(tenant, { reviewId: a });
  const late = reviewAction(tenant, { reviewId: b });
  const commit = await holding(database.db, (tx) => recordFirst(tx, [late]));
  await record(database.db, [early]);
  const first = new Date(Date.now() + HOUR_MS);
  expect(await dispatchNow(subscription.subscriptionId, first)).toEqual({ fenced: false, jobs: 1 });
  expect(await queued(subscription.subscriptionId)).toEqual([early.eventId]);
  await commit();
  const second = new Date(first.getTime() + 2 * HOUR_MS);
  expect(await dispatchNow(subscription.subscriptionId, second)).toEqual({
    fenced: false,
    jobs: 1,
  });
  expect(await queued(subscription.subscriptionId)).toEqual([early.eventId, late.eventId]);
});

test("a batch loses and repeats no event while writers and dispatches run at the same time", async () => {
  const { tenant, subscription } = await batched(3);
  const written: string[] = [];
  const write = async (n: number) => {
    const action = reviewAction(tenant, { reviewId: tenant.reviewIds[n % 3] ?? 0 });
    await record(database.db, [action]);
    written.push(action.eventId);
  };
  const writers = Array.from({ length: 8 }, async (_, w) => {
    for (let n = 0; n < 25; n++) await write(w + n);
  });
  let now = Date.now() + HOUR_MS;
  const dispatches = (async () => {
    for (let n = 0; n < 20; n++)
      await dispatchNow(subscription.subscriptionId, new Date((now += 2 * HOUR_MS)));
  })();
  await Promise.all([...writers, dispatches]);
  await dispatchNow(subscription.subscriptionId, new Date(now + 2 * HOUR_MS));
  const got = await queued(subscription.subscriptionId);
  expect(got.toSorted()).toEqual(written.toSorted());
  const sequences = await database.db.sql<{ sequence: number }[]>`
    select sequence from outbox where subscription_id = ${subscription.subscriptionId} order by sequence`;
  expect(sequences.map((row) => row.sequence)).toEqual(got.map((_, i) => i + 1));
});

test("a batch is not dispatched before it is due, nor while its subscription is disabled", async () => {
  const { tenant, subscription } = await batched(1);
  const { subscriptionId } = subscription;
  await record(database.db, [reviewAction(tenant)]);
  const before = await cursorOf(subscriptionId);
  expect(await dispatchNow(subscriptionId, new Date((before?.next.getTime() ?? 0) - 1))).toEqual({
    fenced: false,
    jobs: 0,
  });
  await database.db.sql`
    update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'test' where id = ${subscriptionId}`;
  expect(await dispatchNow(subscriptionId, new Date((before?.next.getTime() ?? 0) + 1))).toEqual({
    fenced: false,
    jobs: 0,
  });
  expect(await cursorOf(subscriptionId)).toEqual(before);
  expect(await queued(subscriptionId)).toEqual([]);
});

test("a dispatcher without a valid lease dispatches no batch", async () => {
  const { tenant, subscription } = await batched(1);
  await record(database.db, [reviewAction(tenant)]);
  const now = new Date(Date.now() + HOUR_MS);
  const result = await dispatchBatch(database.db, {
    id: "B",
    dispatcherId: "gone",
    subscriptionId: subscription.subscriptionId,
    hourMs: HOUR_MS,
    now,
  });
  expect(result).toEqual({ fenced: true, jobs: 0 });
  expect(await queued(subscription.subscriptionId)).toEqual([]);
});

/** Makes a batch of `count` events that alternate between three reviews; answers their ids in the order of delivery. */
async function waiting(count: number) {
  const { tenant, subscription } = await batched(3);
  const { subscriptionId } = subscription;
  const { db } = database;
  await record(db, [reviewAction(tenant)]);
  await db.sql`
    with more as (
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                  actor, review, metadata, occurred_at, recorded_at)
      select 'W' || ${subscriptionId}::text || n, partner_id, account_id, store_id, (${tenant.reviewIds}::int[])[1 + n % 3],
             store_review_site_id, event, actor, review, metadata, occurred_at, recorded_at
        from (select * from review_history where partner_id = ${tenant.partnerId} limit 1) h,
             generate_series(1, ${count - 1}::int) n order by n returning id
    )
    insert into batch_entries (subscription_id, review_history_id) select ${subscriptionId}, id from more`;
  const rows = await db.sql<{ event_id: string }[]>`
    select h.event_id from batch_entries b join review_history h on h.id = b.review_history_id
     where b.subscription_id = ${subscriptionId}
     order by min(h.id) over (partition by h.review_id), h.id`;
  return { subscriptionId, order: rows.map((row) => row.event_id) };
}

async function jobsOf(subscriptionId: string): Promise<number> {
  const [row] = await database.db.sql<{ jobs: number }[]>`
    select count(distinct batch_job_id)::int as jobs from outbox where subscription_id = ${subscriptionId}`;
  return row?.jobs ?? 0;
}

test("a batch of several chunks is queued in order with one job per review, and its last chunk moves the cursor", async () => {
  const { subscriptionId, order } = await waiting(2 * CHUNK + 300);
  const due = new Date(Date.now() + HOUR_MS);
  expect(await dispatchNow(subscriptionId, due)).toEqual({ fenced: false, jobs: 3 });
  expect(await queued(subscriptionId)).toEqual(order);
  expect(await jobsOf(subscriptionId)).toBe(3);
  expect((await cursorOf(subscriptionId))?.last).toEqual(due);
});

test("a batch whose dispatcher died between two chunks is completed with the window of the first dispatch", async () => {
  const { subscriptionId, order } = await waiting(2 * CHUNK + 300);
  const { db } = database;
  let transactions = 0;
  const dying: typeof db = {
    ...db,
    transaction: (work) => {
      if (++transactions > 1) throw new Error("died");
      return db.transaction(work);
    },
  };
  const due = new Date(Date.now() + HOUR_MS);
  await expect(dispatchNow(subscriptionId, due, dying)).rejects.toThrow("died");
  expect(await queued(subscriptionId)).toEqual(order.slice(0, CHUNK));
  expect((await cursorOf(subscriptionId))?.last).toBeNull();
  const later = new Date(due.getTime() + 10);
  await dispatchNow(subscriptionId, later);
  expect(await queued(subscriptionId)).toEqual(order);
  expect(await jobsOf(subscriptionId)).toBe(3);
  // The cursor moves to the due time of the interrupted dispatch, not to that of the second.
  expect((await cursorOf(subscriptionId))?.last).toEqual(due);
});

const HOUR_MS = 400;

async function batched(reviews: number) {
  const receiver = await given.receiver();
  const batch = { intervalHours: 1, nextAt: new Date(Date.now() + HOUR_MS) };
  const { tenant, ...subscription } = await subscribe(receiver.url, { reviews, batch });
  return { receiver, tenant, subscription };
}

const start = () => dispatcher({ batchHourMs: HOUR_MS });

/** Dispatches the batch directly, in the name of a dispatcher with a valid lease. */
async function dispatchNow(subscriptionId: string, now: Date, db: Db = database.db) {
  await database.db.sql`
    insert into dispatchers (id, started_at, renewed_at) values ('D', now(), now()) on conflict do nothing`;
  const id = `B${now.getTime()}`;
  return dispatchBatch(db, {
    id,
    dispatcherId: "D",
    subscriptionId,
    hourMs: HOUR_MS,
    now,
  });
}

async function queued(subscriptionId: string): Promise<string[]> {
  const rows = await database.db.sql<{ event_id: string }[]>`
    select event_id from queued_entries where subscription_id = ${subscriptionId} order by sequence`;
  return rows.map((row) => row.event_id);
}

async function cursorOf(subscriptionId: string) {
  const [row] = await database.db.sql<{ last: Date | null; next: Date }[]>`
    select last_batch_dispatched_at as last, next_batch_at as next from webhook_subscriptions where id = ${subscriptionId}`;
  return row;
}
