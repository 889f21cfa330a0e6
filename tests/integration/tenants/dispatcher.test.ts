import { afterAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { BASE_PATH } from "../../../src/http/access.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { queuedFor } from "../../support/factory.ts";
import { forgetQueue, queueCopies } from "../../support/outbox.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { disable, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const redis = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: redis.schedule }));

test("without a dispatcher every shard is free, and the lag grows with the clock", async () => {
  const { id } = await world.subscribe();
  await world.emit(3);
  world.clock.advance(90_000);
  const { dispatchers, shards, lag, blocked_heads, truncated } = await state();
  expect(dispatchers).toEqual([]);
  expect(shards).toHaveLength(64);
  expect(shards.every((one) => one["dispatcher_id"] === null)).toBe(true);
  expect(lag).toMatchObject({ entries: 3, subscriptions: 1 });
  expect(Number(lag["lag_s"])).toBeGreaterThanOrEqual(90);
  expect(shards.filter((one) => one["subscriptions"] === 1).map((one) => one["lag_s"])).toEqual([
    lag["lag_s"],
  ]);
  expect([blocked_heads, truncated]).toEqual([[], false]);
  await world.ask("DELETE", `/${id}`);
});

test("shows the owners of shards, and a head that waits for a retry as blocked instead of as lag", async () => {
  const receiver = await Receiver.start(() => 500);
  const { id } = await world.subscribe({ webhook_url: receiver.url });
  const { db } = world.database;
  const box = world.api.deps.box;
  const { schedule } = redis;
  const dispatcher = startDispatcher({ db, box, schedule, retryDelaysMs: [60_000] });
  try {
    const [eventId = ""] = await world.emit(2);
    await until("the head waits", async () => (await state()).blocked_heads.length > 0);
    const { dispatchers, shards, blocked_heads, lag } = await state();
    expect(dispatchers).toEqual([expect.objectContaining({ shards: 64 })]);
    expect(new Set(shards.map((one) => one["dispatcher_id"]))).toEqual(
      new Set([dispatchers[0]?.["id"]]),
    );
    expect(blocked_heads).toEqual([
      expect.objectContaining({
        subscription_id: id,
        partner_id: world.tenants.partners[0].id,
        event_id: eventId,
        event: "review_received",
        attempt: 2,
      }),
    ]);
    expect(lag).toMatchObject({ lag_s: 0, entries: (await queuedFor(db, id)).length });
  } finally {
    await dispatcher.stop();
    await receiver.stop();
  }
  expect((await state()).dispatchers).toEqual([]);
});

test("shows disabled subscriptions, whose held entries are not lag", async () => {
  const { id } = await world.subscribe({ label: "Broken" });
  await world.emit(1);
  await disable(world, id);
  const { disabled_subscriptions, lag } = await state();
  expect(disabled_subscriptions).toEqual([
    expect.objectContaining({
      id,
      label: "Broken",
      disabled_reason: "consecutive_failures",
      consecutive_failure_count: 20,
    }),
  ]);
  expect(lag).toMatchObject({ lag_s: 0, entries: 1 });
});

test("counts up to its limits, and sets `truncated` if there is more", async () => {
  const { db } = world.database;
  const { id } = await world.subscribe();
  await world.emit(1);
  for (const kind of ["log", "rows"] as const) {
    await queueCopies(db, id, 10_100, kind);
    const { lag, truncated } = await state();
    expect(lag).toMatchObject({ entries: 10_000, subscriptions: 1 });
    expect(truncated).toBe(true);
    await forgetQueue(db);
  }
});

test("shows the number of queued mails and the first due time", async () => {
  const { db } = world.database;
  const at = world.clock.now();
  await db.sql`
    insert into mails (id, kind, sealed_message, due_at, created_at) values (${ulid()}, 'otp', 'x', ${at}, ${at})`;
  expect((await state()).mails).toEqual({
    queued: 1,
    next_due_at: at.toISOString().replace("Z", "+00:00"),
  });
  await db.sql`delete from mails`;
});

test("streams the state, which leaves an audit row, and ends with the token", async () => {
  const root = world.api.listen();
  const before = (await world.audit("TENANT_READ")).length;
  // An operator leaves one row an hour.
  world.clock.advance(3_600_000);
  const token = await world.api.login(world.tenants.superAdmin.email);
  const response = await fetch(`${root}${BASE_PATH}/admin/stream`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const received: string[] = [];
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) received.push(decoder.decode(chunk));
  })();
  await until("the first state", () => received.join("").includes("\n\n"));
  const [first = ""] = received.join("").split("\n\n");
  expect(first).toStartWith("event: dispatcher\ndata: {");
  const details = { partner_id: null, kind: "dispatcher" };
  expect((await world.audit("TENANT_READ")).slice(before)).toMatchObject([{ details }]);
  await world.api.call("GET", "/logout", { token });
  await until("the stream sleeps", () => world.clock.sleepers > 0);
  world.clock.advance(2_000);
  await reading;
  expect(received.join("").split("event: dispatcher")).toHaveLength(2);
});

afterAll(async () => {
  await redis.flush();
});

interface State {
  readonly dispatchers: readonly Record<string, unknown>[];
  readonly shards: readonly Record<string, unknown>[];
  readonly lag: Record<string, unknown>;
  readonly blocked_heads: readonly Record<string, unknown>[];
  readonly disabled_subscriptions: readonly Record<string, unknown>[];
  readonly mails: Record<string, unknown>;
  readonly truncated: boolean;
}

async function state(): Promise<State> {
  const { status, body, text } = await world.api.call("GET", "/admin/dispatcher", {
    token: world.tokens.root,
  });
  if (status !== 200) throw new Error(text);
  return body as unknown as State;
}
