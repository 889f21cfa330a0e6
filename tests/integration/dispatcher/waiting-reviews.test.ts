import { expect, test } from "bun:test";

import { postponeBehind } from "../../../db/log.ts";
import { detectIncidents } from "../../support/alerts.ts";
import { deliveries } from "../../support/deliveries.ts";
import { passQueue, record, reviewAction, type Tenant } from "../../support/outbox.ts";
import { type Received, Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

/*
 * Lanes by review (contract 6.7): reviews that wait for a retry hold up nobody, however many they are.
 */

const receiver = fixture(() => Receiver.start());
const { database, box, dispatcher, subscribe, ...given } = deliveries();

/** The reviews whose events the receiver refuses. */
const failing = new Set<number>();
const HOUR_MS = 3_600_000;

test("2,000 reviews that wait for an hour, with events behind them, hold up no other review", async () => {
  const [waiting, healthy] = [2_000, 40];
  const { tenant, id, one } = await start(waiting + healthy);
  const ill = tenant.reviewIds.slice(0, waiting);
  for (const review of ill) failing.add(review);
  await emit(tenant, ill);
  await until("all wait", async () => (await waitingOf(id)) === waiting);
  await emit(tenant, ill);
  const well = tenant.reviewIds.slice(waiting);
  for (const review of well) await emit(tenant, [review, review]);
  await until("all others are delivered", () => countOf(well) === 2 * healthy);
  expect(await inOrder(id, well)).toBe(true);
  // Nothing of a waiting review is sent, and it takes no memory.
  expect(countOf(ill)).toBe(waiting);
  await until("loads walk past no row of them", async () => (await unpostponedOf(id)) === 0);
  await until("nothing is in memory", () => one.workload.actors === 0);
});

test("reviews that waited are sent in order, each with the events behind its first one", async () => {
  const { tenant, id } = await start(60, [400, 400, 400]);
  for (const review of tenant.reviewIds) failing.add(review);
  await emit(tenant, tenant.reviewIds);
  await until("all wait", async () => (await waitingOf(id)) > 30);
  await emit(tenant, tenant.reviewIds.toReversed());
  await emit(tenant, tenant.reviewIds);
  failing.clear();
  await until("all are delivered", async () => (await queuedOf(id)) === 0);
  expect(await inOrder(id, tenant.reviewIds)).toBe(true);
});

test("due retries and new events take turns", async () => {
  const { tenant, id } = await start(400, [1_000, HOUR_MS, HOUR_MS]);
  const ill = tenant.reviewIds.slice(0, 300);
  for (const review of ill) failing.add(review);
  await emit(tenant, ill);
  await until("all failed twice", async () => countOf(ill) === 600, 120_000);
  const well = tenant.reviewIds.slice(300);
  await emit(tenant, well);
  await until("all others are delivered", () => countOf(well) === 100);
  expect(await waitingOf(id)).toBe(300);
});

test("a restart and a move of the shard find the retries of all reviews", async () => {
  const { tenant, id, one } = await start(350, [3_000, 3_000, 3_000]);
  for (const review of tenant.reviewIds) failing.add(review);
  await emit(tenant, tenant.reviewIds);
  await until("all wait", async () => (await waitingOf(id)) === 350);
  await one.stop();
  failing.clear();
  dispatcher({ retryDelaysMs: [3_000, 3_000, 3_000] });
  await until("all are delivered", async () => (await queuedOf(id)) === 0);
  expect(await inOrder(id, tenant.reviewIds)).toBe(true);
});

test("only rows up to the offset get the time of a row before them, and only once", async () => {
  const { sql } = database.db;
  const { tenant, id } = await subscribe(receiver.url, { ordering: "review", reviews: 2 });
  const [ill = 0, well = 0] = tenant.reviewIds;
  const append = (reviews: number[]) =>
    record(
      database.db,
      reviews.map((reviewId) => reviewAction(tenant, { reviewId })),
    );
  await append([ill, well, ill, well]);
  await passQueue(database.db, id);
  await sql`
    update outbox set state = 'waiting', attempt = 2, due_at = now() + interval '1 hour'
     where subscription_id = ${id} and sequence = 1`;
  await append([ill]);
  // A redelivery, with an event of its review before it in the log.
  await sql`
    insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at)
    select shard, subscription_id, 6, event_id || 'b', event, payload_mode, review_history_id, review_id, recorded_at
      from outbox where subscription_id = ${id} and sequence = 3`;
  const postpone = (exceptReviews: number[]) => postponeBehind(database.db, { id, exceptReviews });
  expect(await postpone([ill])).toBe(0);
  expect(await postpone([])).toBe(1);
  expect(await postpone([])).toBe(0);
  const rows = await sql<{ sequence: number; same: boolean | null }[]>`
    select sequence::int, behind_until = (select due_at from outbox where subscription_id = ${id} and sequence = 1) as same
      from outbox where subscription_id = ${id} order by sequence`;
  expect(rows.map(({ sequence, same }) => [sequence, same])).toEqual([
    [1, null],
    [2, null],
    [3, true],
    [4, null],
    [6, null],
  ]);
});

test("a review that has failed twice is told of, also behind 300 that have failed once", async () => {
  const { db } = database;
  const { tenant, id } = await subscribe(receiver.url, { ordering: "review", reviews: 301 });
  const actions = tenant.reviewIds.map((reviewId) => reviewAction(tenant, { reviewId }));
  await record(db, actions);
  await passQueue(db, id);
  await db.sql`
    update outbox set state = 'waiting', attempt = case when sequence > 300 then 3 else 2 end, due_at = now() + interval '1 hour'
     where subscription_id = ${id}`;
  await detectIncidents({ db, box });
  const raised = await db.sql`select kind from alerts where subscription_id = ${id}`;
  expect(raised.map(({ kind }) => kind)).toEqual(["head_retrying"]);
});

async function start(reviews: number, retryDelaysMs: number[] = [HOUR_MS, HOUR_MS, HOUR_MS]) {
  failing.clear();
  receiver.received.length = 0;
  receiver.answer = (request) => (failing.has(reviewOf(request)) ? 500 : 200);
  const { tenant, id } = await subscribe(receiver.url, { ordering: "review", reviews });
  return { tenant, id, one: dispatcher({ retryDelaysMs }) };
}

/** Records one event of each review, in transactions of 200. */
async function emit(tenant: Tenant, reviews: readonly number[]): Promise<void> {
  for (let at = 0; at < reviews.length; at += 200) {
    const some = reviews.slice(at, at + 200);
    await given.emit({ tenant }, some.length, some);
  }
}

const reviewOf = ({ body }: Received): number => JSON.parse(body).review.id;

function countOf(reviews: readonly number[]): number {
  const wanted = new Set(reviews);
  return receiver.received.filter((one) => wanted.has(reviewOf(one))).length;
}

/** Whether the events of each of these reviews arrived in the order of their sequence; retries follow each other. */
async function inOrder(id: string, reviews: readonly number[]): Promise<boolean> {
  const wanted = new Set(reviews);
  const rows = await database.db.sql<{ event_id: string; sequence: number }[]>`
    select event_id, h.sequence::int from review_history h join webhook_subscriptions s on s.number = h.subscription_number
     where s.id = ${id}`;
  const sequenceOf = new Map(rows.map((row) => [row.event_id, row.sequence]));
  const last = new Map<number, number>();
  return receiver.received.every((one) => {
    const review = reviewOf(one);
    if (!wanted.has(review)) return true;
    const sequence = sequenceOf.get(one.headers["x-svc-delivery"] ?? "") ?? 0;
    const isLater = sequence >= (last.get(review) ?? 0);
    last.set(review, sequence);
    return isLater;
  });
}

async function waitingOf(id: string): Promise<number> {
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*)::int as n from outbox where subscription_id = ${id} and state = 'waiting'`;
  return row?.n ?? 0;
}

/** Counts the rows that loads walk past, because their review waits and they have no time. */
async function unpostponedOf(id: string): Promise<number> {
  const [row] = await database.db.sql<{ n: number }[]>`
    select count(*)::int as n from outbox where subscription_id = ${id} and coalesce(due_at, behind_until) is null`;
  return row?.n ?? 0;
}

async function queuedOf(id: string): Promise<number> {
  const [row] = await database.db.sql<{ n: number }[]>`
    select (q.last_logged - f.settled_through + (select count(*) from outbox where subscription_id = ${id}))::int as n
      from outbox_sequences q join outbox_offsets f using (subscription_id) where subscription_id = ${id}`;
  return row?.n ?? 0;
}
