import { afterEach, expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import { decodeTime } from "ulid";

import type { AttemptRecord } from "../../../dispatcher/store/attempt-queries.ts";
import { commitAttempts } from "../../../dispatcher/store/attempt-queries.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { openMail } from "../../../src/outbox/mail.ts";
import { recordActions } from "../../../src/outbox/queries.ts";
import { detectIncidents } from "../../support/alerts.ts";
import {
  createTestBox,
  createTestSchedule,
  silentLog,
  startDispatcher,
  type RunningDispatcher,
} from "../../support/dispatch.ts";
import {
  attemptRecord,
  insertSubscription,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
  type TestSubscription,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const stores = fixture(createTestSchedule);

test("delivers a signed POST with the four headers, and records it", async () => {
  const target = await receiver();
  const { tenant, subscription } = await subscribed(target);
  dispatcher();
  const [eventId = ""] = await emit(tenant, 1);
  await until("the POST", () => target.received.length === 1);
  const [post] = target.received;
  expect(post?.headers).toMatchObject({
    "content-type": "application/json",
    "x-svc-event": "review_received",
    "x-svc-delivery": eventId,
    "x-svc-attempt": "1",
  });
  const signature = post?.headers["x-svc-signature"] ?? "";
  expect(await verify(subscription.secret, post?.body ?? "", signature)).toBe(true);
  expect(await verify(subscription.secret, `${post?.body} `, signature)).toBe(false);
  await until("settled", async () => (await unsettled(subscription.subscriptionId)) === 0);
  const [attempt, ...others] = await attemptsOf(subscription.subscriptionId);
  expect(others).toBeEmpty();
  expect(attempt).toEqual({
    event_id: eventId,
    attempt: 1,
    outcome: "delivered",
    status_code: 200,
    error_code: null,
  });
});

test("neither sends nor counts a failure while no key opens the secret of the subscription", async () => {
  const target = await receiver();
  const { tenant, subscription } = await subscribed(target);
  const { subscriptionId } = subscription;
  // The secrets of other tests' subscriptions do not open either.
  const unusable = new Set<unknown>();
  const error: typeof silentLog.error = (event, fields) =>
    void (event === "subscription.unusable" && unusable.add(fields?.["subscription_id"]));
  const locked = dispatcher({ box: createTestBox(), log: { ...silentLog, error } });
  const [eventId = ""] = await emit(tenant, 1);
  await until("the error", () => unusable.has(subscriptionId));
  await locked.stop();
  expect(target.received).toEqual([]);
  expect(await attemptsOf(subscriptionId)).toBeEmpty();
  dispatcher();
  await until("the POST", () => target.received.length === 1);
  expect(target.eventIds).toEqual([eventId]);
});

test("delivers events of parallel transactions once each, in the order of their commits", async () => {
  const target = await receiver();
  const { tenant, subscription } = await subscribed(target);
  dispatcher();
  await Promise.all(Array.from({ length: 20 }, () => emit(tenant, 10)));
  await until("all of them", () => target.received.length >= 200);
  const rows = await database.db.sql<{ event_id: string }[]>`
    select event_id from review_history where partner_id = ${tenant.partnerId} order by id`;
  expect(target.eventIds).toEqual(rows.map((row) => row.event_id));
  await until("settled", async () => (await unsettled(subscription.subscriptionId)) === 0);
  const sequences = await database.db.sql<{ sequence: number }[]>`
    select sequence from delivery_attempts
     where subscription_id = ${subscription.subscriptionId} and recorded_at is not null order by sequence`;
  expect(sequences.map((row) => row.sequence)).toEqual(
    Array.from({ length: 200 }, (_, i) => i + 1),
  );
});

test("delivers events of overlapping transactions in commit order, not in the order of their starts", async () => {
  const target = await receiver();
  const { tenant } = await subscribed(target);
  dispatcher();
  const early = reviewAction(tenant);
  const late = reviewAction(tenant);
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  // This transaction begins first and commits last.
  const slow = database.db.transaction(async (tx) => {
    await tx.sql`select txid_current()`;
    begun.resolve();
    await goOn.promise;
    return recordActions(tx, [late], new Date());
  });
  await begun.promise;
  const first = await record(database.db, [early]);
  goOn.resolve();
  const second = await slow;
  // The wakes arrive in the wrong order on purpose.
  await stores.schedule.wake(second);
  await stores.schedule.wake(first);
  await until("both", () => target.received.length === 2);
  expect(target.eventIds).toEqual([early.eventId, late.eventId]);
});

test("holds later events while the first one is retried, with one X-SVC-Delivery for all four attempts", async () => {
  const target = await receiver((_, count) => (count < 3 ? 500 : 200));
  const { tenant, subscription } = await subscribed(target);
  dispatcher();
  const [first = "", second, third] = await emit(tenant, 3);
  await until("all of them", () => target.received.length === 6);
  expect(
    target.received.map((one) => [one.headers["x-svc-delivery"], one.headers["x-svc-attempt"]]),
  ).toEqual([
    [first, "1"],
    [first, "2"],
    [first, "3"],
    [first, "4"],
    [second, "1"],
    [third, "1"],
  ]);
  await until("settled", async () => (await unsettled(subscription.subscriptionId)) === 0);
  expect((await attemptsOf(subscription.subscriptionId)).map((row) => row.outcome)).toEqual([
    "retry",
    "retry",
    "retry",
    "delivered",
    "delivered",
    "delivered",
  ]);
  expect(await stateOf(subscription.subscriptionId)).toMatchObject({
    state: "active",
    failures: 0,
  });
});

test("never makes a retry before its delay has passed since the end of the failed attempt", async () => {
  const target = await receiver((_, count) => (count < 3 ? 503 : 204));
  const { tenant } = await subscribed(target);
  const delays = [80, 160, 40];
  dispatcher({ retryDelaysMs: delays });
  await emit(tenant, 1);
  await until("four attempts", () => target.received.length === 4);
  const waits = target.received.slice(1).map((one, i) => one.at - (target.received[i]?.at ?? 0));
  waits.forEach((wait, i) => expect(wait).toBeGreaterThanOrEqual(delays[i] ?? 0));
});

test("gives up an event after four failed attempts or one 410, counts the failure, and continues with the next event", async () => {
  const target = await receiver((_, count) => (count < 4 ? 500 : 410));
  const { tenant, subscription } = await subscribed(target);
  dispatcher();
  await emit(tenant, 2);
  await until("settled", async () => (await unsettled(subscription.subscriptionId)) === 0);
  const attempts = await attemptsOf(subscription.subscriptionId);
  expect(attempts.map((row) => [row.attempt, row.outcome, row.status_code])).toEqual([
    [1, "retry", 500],
    [2, "retry", 500],
    [3, "retry", 500],
    [4, "failed", 500],
    [1, "failed", 410],
  ]);
  expect(await stateOf(subscription.subscriptionId)).toMatchObject({
    state: "active",
    failures: 2,
  });
});

test("disables a subscription at the 20th consecutive permanent failure, and holds its later events", async () => {
  const target = await receiver(() => 410);
  const { tenant, subscription } = await subscribed(target, { failures: 18 });
  dispatcher();
  await emit(tenant, 4);
  await until(
    "disabled",
    async () => (await stateOf(subscription.subscriptionId))?.state === "disabled",
  );
  expect(await stateOf(subscription.subscriptionId)).toEqual({
    state: "disabled",
    failures: 20,
    disabled_reason: "consecutive_failures",
  });
  // An event that is recorded while the subscription is disabled is held as well.
  await emit(tenant, 1);
  await Bun.sleep(100);
  expect(target.received).toHaveLength(2);
  expect(await unsettled(subscription.subscriptionId)).toBe(3);
});

test("a disabled subscription causes one mail per owner, with the failures from the attempt records", async () => {
  const target = await receiver(() => 410);
  const { tenant, subscription } = await subscribed(target, { failures: 18 });
  for (const name of ["a", "b"])
    await database.db.sql`
      insert into users (company_id, email, name, role, is_active, created_at, updated_at)
      values (${tenant.partnerId}, ${`${name}-${tenant.partnerId}@partner.example`}, 'Owner', 'partner_owner', true, now(), now())`;
  const config = { serverRoot: "http://localhost:3000" };
  const look = () =>
    detectIncidents({ db: database.db, clock: systemClock, log: silentLog, box, config }, false);
  dispatcher();
  await emit(tenant, 2);
  await until(
    "disabled",
    async () => (await stateOf(subscription.subscriptionId))?.state === "disabled",
  );
  await look();
  const mails = await database.db.sql<{ id: string; sealed: string }[]>`
    select id, sealed_message as sealed from mails where kind = 'webhook_alert'`;
  const sent = mails
    .map(({ id, sealed }) => openMail(box, id, sealed))
    .filter(({ to }) => to.endsWith(`-${tenant.partnerId}@partner.example`));
  expect(sent).toHaveLength(2);
  for (const part of [sent[0]?.text, sent[0]?.html]) {
    expect(part).toContain(`/dashboard/webhooks/${subscription.subscriptionId}`);
    expect(part).toContain("First failure");
    expect(part).toContain("HTTP 410, review_");
  }
});

test("does not disable a subscription after 19 failures, a success and 19 more failures", async () => {
  const target = await receiver((_, count) => (count === 1 ? 200 : 410));
  const { tenant, subscription } = await subscribed(target, { failures: 18 });
  dispatcher();
  await emit(tenant, 21);
  await until("settled", async () => (await unsettled(subscription.subscriptionId)) === 0);
  expect(await stateOf(subscription.subscriptionId)).toMatchObject({
    state: "active",
    failures: 19,
  });
});

test("finds an event in PostgreSQL although no wake announced it", async () => {
  const target = await receiver();
  const { tenant } = await subscribed(target);
  dispatcher();
  await Bun.sleep(200);
  const action = reviewAction(tenant);
  await record(database.db, [action]);
  await until("the POST", () => target.received.length === 1);
  expect(target.eventIds).toEqual([action.eventId]);
});

test("makes a retry although Redis has lost its schedule", async () => {
  const target = await receiver((_, count) => (count === 0 ? 500 : 200));
  const { tenant } = await subscribed(target);
  dispatcher({ retryDelaysMs: [300, 300, 300] });
  await emit(tenant, 1);
  await until("the first attempt", () => target.received.length === 1);
  await Bun.sleep(50);
  await stores.flush();
  await until("the second", () => target.received.length === 2);
});

test("delivers reviews in parallel, and the events of each in order, if the ordering is by review", async () => {
  const blocked = { id: 0 };
  const target = await receiver((post) =>
    JSON.parse(post.body).review.id === blocked.id ? 500 : 200,
  );
  const { tenant, subscription } = await subscribed(target, { ordering: "review", reviews: 4 });
  blocked.id = tenant.reviewIds[0] ?? 0;
  dispatcher({ retryDelaysMs: [60_000, 60_000, 60_000] });
  const ids = await emit(tenant, 200, tenant.reviewIds);
  await until(
    "all other reviews",
    async () => (await unsettled(subscription.subscriptionId)) === 50,
  );
  const posts = target.received.map((post) => ({
    id: post.headers["x-svc-delivery"] ?? "",
    review: JSON.parse(post.body).review.id as number,
  }));
  for (const [i, review] of tenant.reviewIds.entries()) {
    const expected = ids.filter((_, n) => n % 4 === i);
    const got = posts.filter((post) => post.review === review).map((post) => post.id);
    expect(got).toEqual(review === blocked.id ? expected.slice(0, 1) : expected);
  }
});

test("sends the minimal body to a subscription in minimal mode", async () => {
  const target = await receiver();
  const { tenant } = await subscribed(target, { payloadMode: "minimal" });
  dispatcher();
  const [eventId] = await emit(tenant, 1);
  await until("the POST", () => target.received.length === 1);
  expect(JSON.parse(target.received[0]?.body ?? "")).toEqual({
    event: "review_received",
    event_id: eventId,
    occurred_at: "2026-06-01T12:00:00.000+00:00",
    partner: { id: tenant.partnerId },
    review: { id: tenant.reviewIds[0] },
    review_history_id: expect.any(Number),
  });
});

test("two dispatchers share the shards, and one takes over all when the other stops", async () => {
  const target = await receiver();
  const { tenant } = await subscribed(target);
  const one = dispatcher();
  dispatcher({ db: database.connect() });
  const owners = async () =>
    (
      await database.db.sql<{ count: number }[]>`
      select count(*) from shards where dispatcher_id is not null group by dispatcher_id`
    ).map((row) => row.count);
  await until("an even share", async () => JSON.stringify(await owners()) === "[32,32]");
  await one.stop();
  await until("a takeover", async () => JSON.stringify(await owners()) === "[64]");
  await emit(tenant, 1);
  await until("the POST", () => target.received.length === 1);
});

test("takes over the shards of a dead dispatcher, whose later commits are fenced", async () => {
  const target = await receiver();
  const { tenant, subscription } = await subscribed(target);
  await database.db
    .sql`insert into dispatchers (id, started_at, renewed_at) values ('dead', now(), now())`;
  await database.db.sql`update shards set dispatcher_id = 'dead'`;
  dispatcher();
  await emit(tenant, 1);
  await until("the POST", () => target.received.length === 1);
  const result = await commitAttempts(database.db, "dead", {
    records: [recordOf(subscription)],
    now: new Date(),
    monotonicMs: 0,
  });
  expect(result.fenced).toBe(true);
  expect(await stateOf(subscription.subscriptionId)).toMatchObject({ failures: 0 });
});

test("a commit that is repeated because its response was lost changes nothing", async () => {
  const { tenant, subscription } = await subscribed(await receiver());
  await emit(tenant, 2);
  await database.db
    .sql`insert into dispatchers (id, started_at, renewed_at) values ('repeats', now(), now())`;
  const commit = () =>
    commitAttempts(database.db, "repeats", {
      records: [recordOf(subscription)],
      now: new Date(),
      monotonicMs: 0,
    });
  const seen = async () => [
    await stateOf(subscription.subscriptionId),
    await attemptsOf(subscription.subscriptionId),
    await unsettled(subscription.subscriptionId),
  ];
  await commit();
  const once = await seen();
  expect(once).toMatchObject([{ failures: 1 }, [{ outcome: "failed" }], 1]);
  expect(await commit()).toEqual({ fenced: false, inactive: [], disabled: [] });
  expect(await seen()).toEqual(once);
});

test("finishes the POST in flight when it is stopped, and starts no other", async () => {
  const target = await receiver(async () => {
    await Bun.sleep(300);
    return 200;
  });
  const { tenant, subscription } = await subscribed(target);
  const running = dispatcher();
  await emit(tenant, 3);
  await until("the first POST", () => target.received.length === 1);
  await running.stop();
  expect(target.received).toHaveLength(1);
  expect((await attemptsOf(subscription.subscriptionId)).map((row) => row.outcome)).toEqual([
    "delivered",
  ]);
  expect(await unsettled(subscription.subscriptionId)).toBe(2);
});

test("the ULID of a slow attempt has its start time, although other attempts began and ended meanwhile", async () => {
  const release = Promise.withResolvers<number>();
  const [slow, fast] = [await receiver(() => release.promise), await receiver()];
  const [one, other] = [await subscribed(slow), await subscribed(fast)];
  dispatcher();
  await emit(one.tenant, 1);
  await until("the slow one to begin", () => slow.received.length === 1);
  await emit(other.tenant, 5);
  const ended = async ({ subscriptionId }: TestSubscription) =>
    (await attemptsOf(subscriptionId)).length;
  await until("the others", async () => (await ended(other.subscription)) === 5);
  release.resolve(200);
  await until("the slow one", async () => (await ended(one.subscription)) === 1);
  const rows = await database.db.sql<{ id: string; subscription: string; started_at: Date }[]>`
    select id, subscription_id as subscription, started_at from delivery_attempts
     where subscription_id in (${one.subscription.subscriptionId}, ${other.subscription.subscriptionId}) order by id`;
  expect(rows.map(({ id }) => decodeTime(id))).toEqual(rows.map((row) => row.started_at.getTime()));
  expect(rows[0]?.subscription).toBe(one.subscription.subscriptionId);
});

const box = createTestBox();

const started: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

function dispatcher(
  options: Partial<Parameters<typeof startDispatcher>[0]> = {},
): RunningDispatcher {
  const running = startDispatcher({ db: database.db, box, schedule: stores.schedule, ...options });
  started.push(running);
  return running;
}

async function receiver(answer?: Parameters<typeof Receiver.start>[0]): Promise<Receiver> {
  const one = await Receiver.start(answer);
  started.push(one);
  return one;
}

async function subscribed(
  target: Receiver,
  options: Partial<Parameters<typeof insertSubscription>[1]> & { reviews?: number } = {},
) {
  const tenant = await insertTenant(database.db, options.reviews);
  const subscription = await insertSubscription(
    { db: database.db, box },
    { partnerId: tenant.partnerId, url: target.url, ...options },
  );
  return { tenant, subscription };
}

/** Records `count` events, of the given reviews in turn or of the first review, and wakes the dispatcher. */
async function emit(tenant: Tenant, count: number, reviewIds: number[] = []): Promise<string[]> {
  const actions = Array.from({ length: count }, (_, i) => {
    const reviewId = reviewIds[i % reviewIds.length];
    return reviewAction(tenant, reviewId === undefined ? {} : { reviewId });
  });
  await stores.schedule.wake(await record(database.db, actions));
  return actions.map((action) => action.eventId);
}

async function attemptsOf(subscriptionId: string) {
  return database.db.sql<
    {
      event_id: string;
      attempt: number;
      outcome: string;
      status_code: number | null;
      error_code: string | null;
    }[]
  >`
    select event_id, attempt, outcome, status_code, error_code from delivery_attempts
     where subscription_id = ${subscriptionId} order by id`;
}

/** Builds the record of a permanent failure of the first entry of a subscription. */
function recordOf({ subscriptionId, shard }: TestSubscription): AttemptRecord {
  const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  return attemptRecord({ id, eventId: id, subscriptionId, shard, sequence: 1 });
}

async function stateOf(subscriptionId: string) {
  const [row] = await database.db.sql<
    { state: string; failures: number; disabled_reason: string | null }[]
  >`
    select state, consecutive_failure_count as failures, disabled_reason from webhook_subscriptions where id = ${subscriptionId}`;
  return row;
}

async function unsettled(subscriptionId: string): Promise<number> {
  const [row] = await database.db.sql<{ count: number }[]>`
    select count(*) from queued_entries where subscription_id = ${subscriptionId}`;
  return row?.count ?? -1;
}
