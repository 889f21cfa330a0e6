import { expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import { decodeTime, ulid } from "ulid";

import { commitAttempts } from "../../../dispatcher/store/attempt-queries.ts";
import { deliveries, type Subscribed } from "../../support/deliveries.ts";
import { attemptRecord, record, reviewAction } from "../../support/outbox.ts";
import { until } from "../../support/network/receiver.ts";

const { database, dispatcher, receiver, subscribe, emit, attemptsOf, stateOf } = deliveries();

test("delivers a signed POST with the four headers, and records it", async () => {
  const target = await receiver();
  const one = await subscribe(target.url);
  dispatcher();
  const [eventId = ""] = await emit(one, 1);
  await until("the POST", () => target.received.length === 1);
  const [post] = target.received;
  expect(post?.headers).toMatchObject({
    "content-type": "application/json",
    "x-svc-event": "review_received",
    "x-svc-delivery": eventId,
    "x-svc-attempt": "1",
  });
  const signature = post?.headers["x-svc-signature"] ?? "";
  expect(await verify(one.secret, post?.body ?? "", signature)).toBe(true);
  expect(await verify(one.secret, `${post?.body} `, signature)).toBe(false);
  await until("settled", async () => (await queued(one.id)) === 0);
  const [attempt, ...others] = await attemptsOf(one.id);
  expect(others).toBeEmpty();
  expect(attempt).toMatchObject({
    event_id: eventId,
    attempt: 1,
    outcome: "delivered",
    status_code: 200,
    error_code: null,
  });
});

test("delivers events of parallel transactions once each, in the order of their commits", async () => {
  const target = await receiver();
  const one = await subscribe(target.url);
  dispatcher();
  await Promise.all(Array.from({ length: 20 }, () => emit(one, 10)));
  await until("all of them", () => target.received.length >= 200);
  const rows = await database.db.sql<{ event_id: string }[]>`
    select event_id from review_history where partner_id = ${one.tenant.partnerId} order by id`;
  expect(target.eventIds).toEqual(rows.map((row) => row.event_id));
  await until("settled", async () => (await queued(one.id)) === 0);
  const sequences = await database.db.sql<{ sequence: number }[]>`
    select sequence from delivery_attempts
     where subscription_id = ${one.id} and recorded_at is not null order by sequence`;
  expect(sequences.map((row) => row.sequence)).toEqual(
    Array.from({ length: 200 }, (_, i) => i + 1),
  );
});

test("holds later events while the first one is retried, with one X-SVC-Delivery for all four attempts", async () => {
  const target = await receiver((_, count) => (count < 3 ? 500 : 200));
  const one = await subscribe(target.url);
  dispatcher();
  const [first = "", second, third] = await emit(one, 3);
  await until("all of them", () => target.received.length === 6);
  expect(
    target.received.map(({ headers }) => [headers["x-svc-delivery"], headers["x-svc-attempt"]]),
  ).toEqual([
    [first, "1"],
    [first, "2"],
    [first, "3"],
    [first, "4"],
    [second, "1"],
    [third, "1"],
  ]);
  await until("settled", async () => (await queued(one.id)) === 0);
  expect((await attemptsOf(one.id)).map((row) => row.outcome)).toEqual([
    "retry",
    "retry",
    "retry",
    "delivered",
    "delivered",
    "delivered",
  ]);
  expect(await stateOf(one.id)).toMatchObject({
    state: "active",
    failures: 0,
  });
});

test("never makes a retry before its delay has passed since the end of the failed attempt", async () => {
  const answeredAt: number[] = [];
  // The answer takes longer than each delay, so that a delay since the start would already have passed.
  const target = await receiver(async (_, count) => {
    await Bun.sleep(200);
    answeredAt.push(performance.now());
    return count < 3 ? 503 : 204;
  });
  const one = await subscribe(target.url);
  const delays = [80, 160, 40];
  dispatcher({ retryDelaysMs: delays });
  await emit(one, 1);
  await until("four attempts", () => target.received.length === 4);
  const waits = target.received.slice(1).map(({ at }, i) => at - (answeredAt[i] ?? Infinity));
  // Instants are whole milliseconds, which shortens a wait by up to one.
  waits.forEach((wait, i) => expect(wait).toBeGreaterThanOrEqual((delays[i] ?? 0) - 1));
});

test("gives up an event after four failed attempts or one 410, counts the failure, and continues with the next event", async () => {
  const target = await receiver((_, count) => (count < 4 ? 500 : 410));
  const one = await subscribe(target.url);
  dispatcher();
  await emit(one, 2);
  await until("settled", async () => (await queued(one.id)) === 0);
  const attempts = await attemptsOf(one.id);
  expect(attempts.map((row) => [row.attempt, row.outcome, row.status_code])).toEqual([
    [1, "retry", 500],
    [2, "retry", 500],
    [3, "retry", 500],
    [4, "failed", 500],
    [1, "failed", 410],
  ]);
  expect(await stateOf(one.id)).toMatchObject({
    state: "active",
    failures: 2,
  });
});

test("finds an event in PostgreSQL although no wake announced it", async () => {
  const target = await receiver();
  const one = await subscribe(target.url);
  dispatcher();
  await Bun.sleep(200);
  const action = reviewAction(one.tenant);
  await record(database.db, [action]);
  await until("the POST", () => target.received.length === 1);
  expect(target.eventIds).toEqual([action.eventId]);
});

test("takes over the shards of a dead dispatcher, whose later commits are fenced", async () => {
  const target = await receiver();
  const one = await subscribe(target.url);
  await database.db
    .sql`insert into dispatchers (id, started_at, renewed_at) values ('dead', now(), now())`;
  await database.db.sql`update shards set dispatcher_id = 'dead'`;
  dispatcher();
  await emit(one, 1);
  await until("the POST", () => target.received.length === 1);
  const result = await commitAttempts(database.db, "dead", {
    records: [attemptRecord({ ...one, id: ulid(), eventId: ulid(), sequence: 1 })],
    now: new Date(),
    monotonicMs: 0,
  });
  expect(result.fenced).toBe(true);
  expect(await stateOf(one.id)).toMatchObject({ failures: 0 });
});

test("finishes the POST in flight when it is stopped, and starts no other", async () => {
  const target = await receiver(async () => {
    await Bun.sleep(300);
    return 200;
  });
  const one = await subscribe(target.url);
  const running = dispatcher();
  await emit(one, 3);
  await until("the first POST", () => target.received.length === 1);
  await running.stop();
  expect(target.received).toHaveLength(1);
  expect((await attemptsOf(one.id)).map((row) => row.outcome)).toEqual(["delivered"]);
  expect(await queued(one.id)).toBe(2);
});

test("the ULID of a slow attempt has its start time, although other attempts began and ended meanwhile", async () => {
  const release = Promise.withResolvers<number>();
  const [slow, fast] = [await receiver(() => release.promise), await receiver()];
  const [one, other] = [await subscribe(slow.url), await subscribe(fast.url)];
  dispatcher();
  await emit(one);
  await until("the slow one to begin", () => slow.received.length === 1);
  await emit(other, 5);
  const ended = async ({ id }: Subscribed) => (await attemptsOf(id)).length;
  await until("the others", async () => (await ended(other)) === 5);
  release.resolve(200);
  await until("the slow one", async () => (await ended(one)) === 1);
  const rows = await database.db.sql<{ id: string; subscription: string; started_at: Date }[]>`
    select id, subscription_id as subscription, started_at from delivery_attempts
     where subscription_id in (${one.id}, ${other.id}) order by id`;
  expect(rows.map(({ id }) => decodeTime(id))).toEqual(rows.map((row) => row.started_at.getTime()));
  expect(rows[0]?.subscription).toBe(one.id);
});

const queued = async (id: string) => (await stateOf(id)).queued;
