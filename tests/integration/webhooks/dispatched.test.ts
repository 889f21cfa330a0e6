import { expect, test } from "bun:test";

import { verify } from "@octokit/webhooks-methods";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

import type { RawDb } from "../../../db/client.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { type Receiver, until } from "../../support/network/receiver.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";

// Effects of the routes at the partner's endpoint: the whole dispatcher runs beside the API.

const { world, ...running } = webhookDeliveries();

test("a test event is signed and recorded like any other, and overtakes a blocked head", async () => {
  const { id, secret } = await start();
  receiver.answer = ({ headers }) => (headers["x-svc-event"] === "webhook.test" ? 200 : 500);
  await world.emit(1);
  await until("the head has failed", () => receiver.received.length > 0);
  const { body } = await post(`/${id}/test`);
  const eventId = String(body["event_id"]);
  await until("the test", async () => (await show(id, eventId))["state"] === "delivered");
  const at = receiver.eventIds.indexOf(eventId);
  expect(await signatures(at).check(secret, "x-svc-signature")).toBe(true);
  expect(JSON.parse(receiver.received[at]?.body ?? "")).toMatchObject({
    event: "webhook.test",
    event_id: eventId,
    partner: { id: world.tenants.partners[0].id },
    review: { id: 0 },
    metadata: { test: true },
  });
  const [attempt] = (await show(id, eventId))["attempts"] as Record<string, unknown>[];
  expect(attempt).toMatchObject({ outcome: "delivered", status_code: 200, attempt: 1 });
  expect(attempt?.["request_body"]).toBe(receiver.received[at]?.body ?? "");
});

test("a test of any event is signed, marked as a test, and valid by the schema of the catalog", async () => {
  const catalog = await world.ask("GET", "/events");
  const events = catalog.body["events"] as { value: string; schema: object; example: unknown }[];
  const { id, secret } = await start();
  for (const { value } of events) {
    expect((await post(`/${id}/test`, { event: value })).status).toBe(202);
  }
  await until("all of them", () => receiver.received.length === events.length);
  const ajv = addFormats(new Ajv2020({ strict: false }));
  for (const [i, { headers, body }] of receiver.received.entries()) {
    const { value, schema, example } =
      events.find((one) => one.value === headers["x-svc-event"]) ?? {};
    expect([value, headers["x-svc-test"]]).toEqual([value, "1"]);
    expect(await signatures(i).check(secret, "x-svc-signature")).toBe(true);
    const fits = ajv.compile(schema ?? false);
    for (const one of [JSON.parse(body), example])
      expect([value, fits(one), fits.errors]).toEqual([value, true, null]);
  }
  const seen = receiver.received.map(({ headers }) => headers["x-svc-event"] ?? "");
  expect(seen.toSorted()).toEqual(events.map(({ value }) => value).toSorted());
});

test("a redelivered test of a connection event is still marked as a test", async () => {
  const { id } = await start({ payload_mode: "minimal" });
  const { body } = await post(`/${id}/test`, { event: "response_post_failed" });
  const eventId = String(body["event_id"]);
  await until("the first", async () => (await show(id, eventId))["state"] === "delivered");
  expect((await post(`/${id}/deliveries/${eventId}/redeliver`)).status).toBe(202);
  await until("the second", () => receiver.received.length === 2);
  const [first, second] = receiver.received;
  expect(second?.headers["x-svc-test"]).toBe("1");
  expect(second?.body).toBe(first?.body ?? "");
  expect(JSON.parse(first?.body ?? "")).toMatchObject({
    event: "response_post_failed",
    axis: "post",
    review_history_id: 0,
  });
});

test("a rotation takes effect at the next attempt, which carries both signatures during the grace period", async () => {
  const { id, secret } = await start();
  const rotate = async (hours: number) =>
    String((await post(`/${id}/rotate-secret`, { grace_period_hours: hours })).body["secret"]);
  const second = await rotate(1);
  await world.emit(1);
  await until("the first", () => receiver.received.length === 1);
  const first = signatures(0);
  expect(await first.check(second, "x-svc-signature")).toBe(true);
  expect(await first.check(secret, "x-svc-signature-previous")).toBe(true);
  const third = await rotate(0);
  await world.emit(1);
  await until("the second", () => receiver.received.length === 2);
  expect(await signatures(1).check(third, "x-svc-signature")).toBe(true);
  expect(signatures(1).headers["x-svc-signature-previous"]).toBeUndefined();
});

test("a redelivered event is sent with its id, from attempt 1, after the events that were queued", async () => {
  const { id } = await start();
  const [first = ""] = await world.emit(1);
  await until("delivered", async () => (await show(id, first))["state"] === "delivered");
  expect((await post(`/${id}/deliveries/${first}/redeliver`)).status).toBe(202);
  await until("twice", async () => {
    const { state, attempts } = await show(id, first);
    return state === "delivered" && (attempts as unknown[]).length === 2;
  });
  const { attempts } = await show(id, first);
  expect(attempts).toMatchObject([
    { round: 1, attempt: 1, sequence: 1 },
    { round: 2, attempt: 1, sequence: 2 },
  ]);
  expect(receiver.eventIds).toEqual([first, first]);
  const [one, two] = receiver.received.map(({ body }) => JSON.parse(body));
  expect({ ...one, delivered_at: null }).toEqual({ ...two, delivered_at: null });
});

test.each(["subscription", "review"])(
  "a retry is made at once on request, and what waits behind it follows: by %s",
  async (ordering) => {
    receiver = await running.receiver(() => 500);
    running.dispatcher({ retryDelaysMs: [3_600_000, 3_600_000, 3_600_000] });
    const { id } = await world.subscribe({ webhook_url: receiver.url, ordering });
    const [first = "", second = ""] = await world.emit(2);
    const waiting = ordering === "review" ? [first, second] : [first];
    await until("waiting", async () => {
      const shown = await Promise.all(waiting.map((eventId) => show(id, eventId)));
      return shown.every(({ state }) => state === "waiting");
    });
    receiver.answer = () => 200;
    receiver.received.length = 0;
    for (const eventId of waiting)
      expect((await post(`/${id}/deliveries/${eventId}/redeliver`)).status).toBe(202);
    for (const eventId of [first, second])
      await until("delivered", async () => (await show(id, eventId))["state"] === "delivered");
    expect((await show(id, first))["attempts"]).toMatchObject([
      { round: 1, attempt: 1, outcome: "retry" },
      { round: 1, attempt: 2, outcome: "delivered" },
    ]);
    expect(receiver.eventIds.toSorted()).toEqual([first, second].toSorted());
  },
);

test("an event has the same number in its headers and in the API, in every round", async () => {
  const { id } = await start({ sequence_headers: true });
  await post(`/${id}/test`);
  await until("the test", () => receiver.received.length === 1);
  const [first = ""] = await world.emit(1);
  await until("delivered", async () => (await show(id, first))["state"] === "delivered");
  expect((await post(`/${id}/redeliver`, { sequences: [1] })).body).toEqual({ queued: 1 });
  await until("again", () => receiver.received.length === 3);
  await until("recorded", async () => (await show(id, first))["state"] === "delivered");
  const sent = receiver.received.map(({ headers }) => headers["x-svc-sequence"]);
  expect(sent).toEqual([undefined, "1", "1"]);
  const attempts = [{ sequence: 2 }, { sequence: 3 }];
  expect(await show(id, first)).toMatchObject({ sequence: 1, attempts });
});

test("held events are delivered in order after an enable, and not before", async () => {
  const { id } = await start();
  receiver.answer = () => 410;
  const gone = await world.emit(20);
  await until("disabled", async () => {
    const { body } = await world.ask("GET", `/${id}`);
    return body["is_active"] === false;
  });
  const held = await world.emit(3);
  expect((await show(id, held[0] ?? ""))["state"]).toBe("held");
  receiver.answer = () => 200;
  const before = receiver.received.length;
  await post(`/${id}/enable`);
  await until("the held ones", () => receiver.received.length === before + 3);
  expect(receiver.eventIds.slice(before)).toEqual(held);
  // Undelivered events from before the enable are recovered in order, too.
  const since = new Date(world.clock.now().getTime() - 60_000).toISOString();
  world.clock.set(systemClock.now());
  await until("settled", async () => (await show(id, held[2] ?? ""))["state"] === "delivered");
  const { body } = await post(`/${id}/recover`, { since });
  expect(body["queued"]).toBe(20);
  await until("recovered", () => receiver.received.length === before + 23);
  expect(receiver.eventIds.slice(before + 3)).toEqual(gone);
});

test("a batch that is requested is sent before its time, and the next one an interval after it", async () => {
  const { id } = await start({ delivery_kind: "batch", batch_interval_hours: 12 });
  const events = await world.emit(2);
  world.clock.set(systemClock.now());
  const { body } = await post(`/${id}/batch`);
  await until("both events", () => receiver.received.length === 2);
  expect(receiver.eventIds).toEqual(events);
  const shown = async () => (await world.ask("GET", `/${id}`)).body;
  await until("the cursor", async () => (await shown())["last_batch_dispatched_at"] !== null);
  const dueAt = async () => Date.parse(String((await shown())["next_batch_at"]));
  expect(await dueAt()).toBe(Date.parse(String(body["next_batch_at"])) + 12 * HOUR_MS);
});

test("the dispatcher notices a delete at once, and sends nothing more", async () => {
  let deleted = "";
  let isRead = false;
  const { db } = world.database;
  const watching = new Proxy(db, {
    get: (target, key) =>
      key !== "run"
        ? Reflect.get(target, key)
        : async (statement: { name: string }, given: { given?: readonly { id: string }[] }) => {
            const rows: readonly object[] = await target.run(statement as never, given);
            const place = given.given?.findIndex((one) => one.id === deleted) ?? -1;
            // The load of a deleted subscription returns nothing.
            if (statement.name.startsWith("load.") && place >= 0)
              isRead ||= !rows.some((row) => "ord" in row && row.ord === place);
            return rows;
          },
  });
  const { id, dispatcher } = await start({}, watching);
  const answer = Promise.withResolvers<number>();
  receiver.answer = () => answer.promise;
  await world.emit(3);
  await until("the first POST", () => receiver.received.length === 1);
  world.wakes.length = 0;
  deleted = id;
  expect((await world.ask("DELETE", `/${id}`)).status).toBe(204);
  expect(world.wakes).toEqual([id]);
  await until("the dispatcher to read it", () => isRead);
  answer.resolve(200);
  const recorded = async () =>
    (await db.sql`select from delivery_attempts where subscription_id = ${id}`).length;
  await until("the record of the POST under way", async () => (await recorded()) > 0);
  await dispatcher.stop();
  expect([receiver.received.length, await recorded()]).toEqual([1, 1]);
  const [skipped] = await db.sql`
    select count(*)::int as count from skipped_entries where subscription_id = ${id} and reason = 'deleted'`;
  expect(skipped).toEqual({ count: 2 });
});

test.each([
  { what: "subscription", attempt: 1, status: 200, state: "delivered" },
  { what: "partner", attempt: 2, status: 410, state: "skipped" },
  { what: "account", attempt: 1, status: 500, state: "skipped" },
] as const)(
  "a POST under way while an activation of the $what skips its entry, answered $status to attempt $attempt, is shown as $state",
  async ({ what, attempt, status, state }) => {
    const { id } = await start();
    const since = world.clock.now().toISOString();
    const answer = Promise.withResolvers<number>();
    receiver.answer = (_, count) => (count === attempt - 1 ? answer.promise : 500);
    const [eventId = ""] = await world.emit(1);
    await until("the POST", () => receiver.received.length === attempt);
    await stop(what, id);
    // This event is recorded only after the stop, because the dispatcher may still send what it has read before.
    const [next = ""] = await world.emit(1);
    await skip(what, id);
    answer.resolve(status);
    const attempts = async () => (await show(id, eventId))["attempts"] as unknown[];
    await until("its record", async () => (await attempts()).length === attempt);
    expect(await show(id, eventId)).toMatchObject({ state, settled_at: expect.any(String) });
    expect(await show(id, next)).toMatchObject({ state: "skipped", attempts: [] });
    const inState = async (asked: string) => {
      const { body } = await world.ask("GET", `/${id}/messages?state=${asked}`);
      return (body["data"] as { event_id: string }[]).map((row) => row.event_id);
    };
    const isDelivered = state === "delivered";
    expect(await inState("delivered")).toEqual(isDelivered ? [eventId] : []);
    expect(await inState("skipped")).toEqual(isDelivered ? [next] : [next, eventId]);
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({ pending: 0, held: 0 });
    world.clock.advance(1);
    const { body } = await post(`/${id}/recover`, { since, dry_run: true });
    expect(body).toEqual({ queued: isDelivered ? 1 : 2 });
    // The progress of a recovery does not hide what is skipped after it.
    receiver.answer = () => Promise.withResolvers<number>().promise;
    expect((await post(`/${id}/recover`, { since })).body).toMatchObject(body);
    world.clock.advance(1);
    expect((await post(`/${id}/recover`, { since, dry_run: true })).body).toEqual({ queued: 0 });
    await stop(what, id);
    await skip(what, id);
    world.clock.advance(1);
    expect((await post(`/${id}/recover`, { since, dry_run: true })).body).toEqual(body);
  },
);

type Stopped = "subscription" | "partner" | "account";

/** Stops the deliveries of a subscription. */
async function stop(what: Stopped, id: string) {
  if (what === "subscription") await post(`/${id}/disable`);
  else await asOperator(what, "deactivate", {});
}

/** Lets the deliveries of a stopped subscription begin again with `held: skip`. */
async function skip(what: Stopped, id: string) {
  const body = { held: "skip" };
  if (what === "subscription") {
    await post(`/${id}/enable`, body);
    return;
  }
  await asOperator(what, "activate", body);
  // The deactivation has ended all sessions.
  const [{ owner }] = world.tenants.partners;
  Object.assign(world.tokens, { owner: await world.api.login(owner.email) });
}

async function asOperator(what: "partner" | "account", action: string, body: object) {
  const [partner] = world.tenants.partners;
  const path = what === "partner" ? `partners/${partner.id}` : `accounts/${partner.accounts[0].id}`;
  await world.api.call("POST", `/admin/${path}/${action}`, { token: world.tokens.root, body });
}

let receiver: Receiver;

async function start(
  fields: Readonly<Record<string, unknown>> = {},
  db: RawDb = world.database.db,
) {
  receiver = await running.receiver();
  const dispatcher = running.dispatcher({ db });
  return { dispatcher, ...(await world.subscribe({ webhook_url: receiver.url, ...fields })) };
}

const HOUR_MS = 3_600_000;
const post = (path: string, body?: unknown) => world.ask("POST", path, { body });

const show = async (id: string, eventId: string) =>
  (await world.ask("GET", `/${id}/deliveries/${eventId}`)).body;

const signatures = (i: number) => {
  const { headers = {}, body = "" } = receiver.received[i] ?? {};
  const check = (secret: string, name: string) => verify(secret, body, headers[name] ?? "sha256=0");
  return { headers, check };
};
