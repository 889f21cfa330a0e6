import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { detectIncidents } from "../../support/alerts.ts";
import { type Receiver, until } from "../../support/network/receiver.ts";
import { settle } from "../../support/webhooks.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";

// Contract 6.16: with a test the answer of the endpoint decides whether a subscription is enabled.

const { stores, world, dispatcher: dispatch, ...given } = webhookDeliveries();

describe("a test that is answered 2xx", () => {
  test.each(["subscription", "review"])(
    "releases the held events in order, by %s",
    async (ordering) => {
      const { id, held } = await disabled({ ordering });
      const answer = hold();
      dispatch();
      const { status, body } = await enable(id);
      const eventId = String(body["test_event_id"]);
      expect([status, body]).toEqual([
        200,
        expect.objectContaining({
          is_active: false,
          disabled_reason: "consecutive_failures",
          pending_test_event_id: eventId,
        }),
      ]);
      await until("the test", () => receiver.received.length === 1);
      const during = await shown(id);
      expect(during).toEqual({ ...body, test_event_id: undefined });
      expect((await get(`/${id}/health`))["held"]).toBe(held.length + 1);
      answer(200);
      await until("the held events", () => receiver.received.length === held.length + 1);
      expect(receiver.eventIds[0]).toBe(eventId);
      expect(receiver.eventIds.slice(1).toSorted()).toEqual(held.toSorted());
      expect(await shown(id)).toMatchObject({
        is_active: true,
        consecutive_failure_count: 0,
        disabled_at: null,
        disabled_reason: null,
        pending_test_event_id: null,
      });
    },
  );

  test("releases no event that the enable skips, and sends those that follow", async () => {
    const { id } = await disabled();
    const answer = hold();
    dispatch();
    const { body } = await enable(id, { held: "skip", test: true });
    await until("the test", () => receiver.received.length === 1);
    const [later] = await world.emit(1);
    answer(200);
    await until("the later event", () => receiver.received.length === 2);
    expect(receiver.eventIds).toEqual([String(body["test_event_id"]), String(later)]);
  });

  test("sends the first held event at once, although it waits for a retry", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    receiver.answer = () => 503;
    dispatch({ retryDelaysMs: [3_600_000] });
    const held = await world.emit(2);
    const state = async () => (await get(`/${id}/deliveries/${held[0]}`))["state"];
    await until("the retry", async () => (await state()) === "waiting");
    await post(`/${id}/disable`);
    receiver.answer = () => 200;
    await enable(id);
    await until("the held events", () => receiver.received.length === 4);
    expect(receiver.eventIds.slice(2)).toEqual(held);
  });

  test("dispatches an overdue batch", async () => {
    const batch = { delivery_kind: "batch", batch_interval_hours: 1 };
    const { id } = await disabled(batch);
    await world.database.db.sql`
      update webhook_subscriptions set next_batch_at = now() - interval '1 minute' where id = ${id}`;
    const answer = hold();
    dispatch();
    await enable(id);
    await until("the test", () => receiver.received.length === 1);
    const { sql } = world.database.db;
    const dispatched = async () => {
      const rows = await sql`
        select from webhook_subscriptions where id = ${id} and last_batch_dispatched_at is not null`;
      return rows.length > 0;
    };
    expect(await dispatched()).toBe(false);
    answer(200);
    await until("the batch", dispatched);
    expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
  });

  test("tells of the recovery, although no look saw the disabling", async () => {
    const { id } = await disabled();
    dispatch();
    await enable(id);
    await until("active", () => isActive(id));
    await look();
    await until("all delivered", async () => (await get(`/${id}/health`))["pending"] === 0);
    await look();
    expect(await alertsOf(id)).toEqual(["disabled", "recovered"]);
  });
});

describe("a test that fails", () => {
  test.each<[string, Receiver["answer"], Failing, object]>([
    ["500", () => 500, {}, { status_code: 500, error_code: "http_status" }],
    ["410", () => 410, {}, { status_code: 410 }],
    ["a redirect", () => 302, {}, { status_code: 302 }],
    ["a time-out", () => "hang", { timeoutMs: 300 }, { error_code: "timeout" }],
    // No receiver sees the held events here. The number of held events proves that none was sent.
    ["a refused connection", () => 200, { url: "http://127.0.0.1:9/" }, { error_code: "connect" }],
  ])("by %s sends no event and changes nothing", async (_, answer, how, attempt) => {
    const { url = receiver.url, timeoutMs } = how;
    receiver.answer = answer;
    const { id, held } = await disabled({ webhook_url: url });
    await look();
    const before = await shown(id);
    dispatch({ timeoutMs: timeoutMs ?? 5_000 });
    const { body } = await enable(id);
    const eventId = String(body["test_event_id"]);
    await until("the decision", async () => (await shown(id))["pending_test_event_id"] === null);
    expect(await shown(id)).toEqual({ ...before, updated_at: expect.any(String) });
    expect(await get(`/${id}/deliveries/${eventId}`)).toMatchObject({
      state: "failed",
      attempts: [{ attempt: 1, outcome: "failed", ...attempt }],
    });
    expect((await get(`/${id}/health`))["held"]).toBe(held.length);
    expect(held.filter((one) => receiver.eventIds.includes(one))).toEqual([]);
    // The disabling was told before, and is not told again.
    await look();
    expect(await alertsOf(id)).toEqual(["disabled"]);
  });

  test("keeps the reason of a subscription that was disabled by hand, and raises no alert", async () => {
    const { id } = await world.subscribe({ webhook_url: receiver.url });
    await post(`/${id}/disable`);
    receiver.answer = () => 500;
    dispatch();
    await enable(id);
    await until("the decision", async () => (await shown(id))["pending_test_event_id"] === null);
    expect(await shown(id)).toMatchObject({ is_active: false, disabled_reason: "manual" });
    await look();
    expect(await alertsOf(id)).toEqual([]);
  });
});

describe("while the test is under way", () => {
  test("nothing else can be queued", async () => {
    const { id, held } = await disabled();
    const { answer } = await underWay(id);
    const answers = await Promise.all([
      post(`/${id}/test`),
      post(`/${id}/recover`, { since: new Date(world.clock.now().getTime() - 1).toISOString() }),
      post(`/${id}/deliveries/${held[0]}/redeliver`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([409, 409, 409]);
    answer(500);
  });

  test("an enable without a test decides at once", async () => {
    const { id, held } = await disabled();
    const { answer } = await underWay(id);
    const { body } = await enable(id, {});
    expect(body).toMatchObject({ is_active: true, pending_test_event_id: null });
    await until("the held events", () => receiver.received.length === held.length + 1);
    answer(500);
    await expectSettled(id);
    expect(await shown(id)).toMatchObject({ is_active: true, consecutive_failure_count: 0 });
  });

  test("a second enable with a test starts over, and the first answer decides nothing", async () => {
    const { id, held } = await disabled();
    const { answer, eventId } = await underWay(id);
    const second = hold();
    const { body } = await enable(id);
    expect(body["pending_test_event_id"]).not.toBe(eventId);
    answer(200);
    await until("the second test", () => receiver.received.length === 2);
    expect(await shown(id)).toMatchObject({
      is_active: false,
      pending_test_event_id: body["test_event_id"],
    });
    second(200);
    await until("the held events", () => receiver.received.length === held.length + 2);
  });

  test.each([
    ["disable", (id: string) => post(`/${id}/disable`)],
    ["change of the URL", (id: string) => patch(id, { webhook_url: `${receiver.url}2` })],
    ["suspension of the partner", suspend],
  ])("a %s leaves it disabled, whatever the answer", async (_, change) => {
    const { id, held } = await disabled();
    const { answer, eventId } = await underWay(id);
    const { status } = await change(id);
    expect(status).toBeLessThan(300);
    answer(200);
    await expectAttempt(id, eventId);
    expect(await shown(id)).toMatchObject({
      is_active: false,
      disabled_reason: "consecutive_failures",
      pending_test_event_id: null,
    });
    // It was under way at its skip and was answered 2xx (contract 6.16).
    expect((await get(`/${id}/deliveries/${eventId}`))["state"]).toBe("delivered");
    expect((await get(`/${id}/health`))["held"]).toBe(held.length);
  });

  test("a change of the label leaves the decision to the answer", async () => {
    const { id } = await disabled();
    const { answer } = await underWay(id);
    await patch(id, { label: "Renamed" });
    answer(200);
    await until("active", () => isActive(id));
  });

  test("a delete ends it", async () => {
    const { id } = await disabled();
    const { answer } = await underWay(id);
    expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
    answer(200);
    await until("the record", async () => {
      const rows = await world.database.db.sql`
        select from delivery_attempts where subscription_id = ${id} and outcome = 'delivered'`;
      return rows.length === 1;
    });
    const [row] = await world.database.db.sql`
      select state, pending_test_event_id from webhook_subscriptions where id = ${id}`;
    expect(row).toEqual({ state: "deleted", pending_test_event_id: null });
  });

  test("a dispatcher that dies before the commit leaves it to the next one", async () => {
    const { id, held } = await disabled();
    const commit = () => new Promise<never>(() => {});
    const first = dispatch({ wrapStore: (store) => ({ ...store, commit }) });
    const { body } = await enable(id);
    const eventId = String(body["test_event_id"]);
    await until("the test", () => receiver.received.length === 1);
    await first.stop();
    expect(await isActive(id)).toBe(false);
    // No dispatcher heard the wake, so a sweep finds the test.
    await stores.flush();
    dispatch();
    await until("the held events", () => receiver.received.length === held.length + 2);
    expect(receiver.eventIds.slice(0, 2)).toEqual([eventId, eventId]);
    const [attempt] = (await get(`/${id}/deliveries/${eventId}`))["attempts"] as unknown[];
    expect(attempt).toMatchObject({ outcome: "delivered", possibly_repeated: true });
  }, 60_000);

  test("a record that is committed twice enables it once", async () => {
    const { id, held } = await disabled();
    receiver.answer = () => 500;
    let isFirst = true;
    let answer: ReturnType<typeof hold> = () => {};
    dispatch({
      wrapStore: (store) => ({
        ...store,
        async commit(...args) {
          const result = await store.commit(...args);
          if (!isFirst) return result;
          isFirst = false;
          // The commit's response is lost, and meanwhile the test is tried again.
          answer = hold();
          await enable(id);
          await store.commit(...args);
          return result;
        },
      }),
    });
    await enable(id);
    await until("the second test", () => receiver.received.length === 2);
    expect(await shown(id)).toMatchObject({ pending_test_event_id: receiver.eventIds[1] });
    expect(held.filter((one) => receiver.eventIds.includes(one))).toEqual([]);
    answer(500);
  });
});

test("an active subscription gets the test and changes nothing else", async () => {
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  receiver.answer = () => 500;
  dispatch({ retryDelaysMs: [60_000, 60_000, 60_000] });
  const { body } = await enable(id);
  expect(body).toMatchObject({ is_active: true, pending_test_event_id: null });
  await until("the test", () => receiver.received.length === 1);
  expect(receiver.eventIds).toEqual([String(body["test_event_id"])]);
  const state = async () =>
    (await get(`/${id}/deliveries/${String(body["test_event_id"])}`))["state"];
  await until("the retry", async () => (await state()) === "waiting");
  expect(await isActive(id)).toBe(true);
});

test("the audit log names the test", async () => {
  const { id } = await disabled();
  await enable(id);
  const details = (await world.audit("WEBHOOK_ENABLED")).at(-1)?.["details"];
  expect(details).toEqual({ subscription_id: id, held: "deliver", test: true });
});

interface Failing {
  readonly url?: string;
  readonly timeoutMs?: number;
}

let receiver: Receiver;

beforeEach(async () => {
  receiver = await given.receiver();
});

afterEach(async () => {
  await world.database.db.sql`truncate alerts, incidents`;
});

/** Makes the receiver leave its next request open, and returns the function that answers it. */
function hold(): (status: number) => void {
  const { promise, resolve } = Promise.withResolvers<number>();
  const from = receiver.received.length;
  receiver.answer = (_, count) => (count === from ? promise : 200);
  return resolve;
}

/** Creates a subscription with 20 failures, which disabled it, and three held events. */
async function disabled(fields: Readonly<Record<string, unknown>> = {}) {
  world.clock.set(systemClock.now());
  const { id } = await world.subscribe({ webhook_url: receiver.url, ...fields });
  const failed = await world.emit(fields["delivery_kind"] === "batch" ? 0 : 20);
  if (failed.length > 0) await settle(world, id, "failed");
  await world.database.db.sql`
    update webhook_subscriptions
       set state = 'disabled', disabled_at = now(), disabled_reason = 'consecutive_failures',
           consecutive_failure_count = 20
     where id = ${id}`;
  return { id, held: await world.emit(fields["delivery_kind"] === "batch" ? 1 : 3) };
}

/** Enables a subscription with a test, and waits until the receiver holds its request. */
async function underWay(id: string) {
  const answer = hold();
  dispatch();
  const { body } = await enable(id);
  await until("the test", () => receiver.received.length === 1);
  return { answer, eventId: String(body["test_event_id"]) };
}

const post = (path: string, body?: unknown) => world.ask("POST", path, { body });
const patch = (id: string, body: unknown) => world.ask("PATCH", `/${id}`, { body });
const get = async (path: string) => (await world.ask("GET", path)).body;
const shown = (id: string) => get(`/${id}`);
const isActive = async (id: string) => (await shown(id))["is_active"] === true;
const enable = (id: string, body: unknown = { test: true }) => post(`/${id}/enable`, body);

/** Suspends and activates the first partner, which ends its tokens. */
async function suspend() {
  const { partners, superAdmin } = world.tenants;
  const token = await world.api.login(superAdmin.email);
  const path = `/admin/partners/${partners[0].id}`;
  const suspended = await world.api.call("POST", `${path}/deactivate`, { token });
  await world.api.call("POST", `${path}/activate`, { token });
  Object.assign(world.tokens, { owner: await world.api.login(partners[0].owner.email) });
  return suspended;
}

const look = () => detectIncidents({ db: world.database.db, box: world.api.deps.box });

/** Returns the kinds of the alerts of a subscription, but for those of its count of failures. */
async function alertsOf(id: string): Promise<string[]> {
  const rows = await world.database.db.sql<{ kind: string }[]>`
    select kind from alerts where subscription_id = ${id} and kind not like 'failures%' order by id`;
  return rows.map(({ kind }) => kind);
}

/** Waits until an attempt of an event is recorded. */
const expectAttempt = (id: string, eventId: string) =>
  until("the record", async () => {
    const rows = await world.database.db.sql`
      select from delivery_attempts where subscription_id = ${id} and event_id = ${eventId}`;
    return rows.length === 1;
  });

/** Waits until nothing of a subscription is queued. */
const expectSettled = (id: string) =>
  until("all settled", async () => {
    const { pending, held } = await get(`/${id}/health`);
    return pending === 0 && held === 0;
  });
