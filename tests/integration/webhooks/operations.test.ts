import { beforeEach, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { fieldsOf } from "../../../src/lib/fields.ts";
import { fingerprint } from "../../../src/lib/secrets.ts";
import { addAttempt } from "../../support/attempts.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { queuedFor } from "../../support/factory.ts";
import { makeWait, passQueue } from "../../support/outbox.ts";
import { disable, HOUR_MS, settle, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(() => startWebhooks({ config: { retentionDays: 30 } }));

describe("rotating the secret", () => {
  test.each([
    ["without a body", undefined],
    ["with an empty body", {}],
    ["with no grace", { grace_period_hours: 0 }],
  ])("%s replaces secret and fingerprint at once", async (_, body) => {
    const { id, secret } = await world.subscribe();
    const answer = await post(`/${id}/rotate-secret`, body);
    expect(answer.status).toBe(200);
    const fresh = String(answer.body["secret"]);
    expect(fresh).toMatch(/^[0-9a-f]{64}$/);
    expect(fresh).not.toBe(secret);
    expect(answer.body).toMatchObject({
      id,
      secret_fingerprint: fingerprint(fresh),
      previous_secret_expires_at: null,
    });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const row = await rowOf(id);
    expect(world.api.deps.box.open(row.sealed, context(id))).toBe(fresh);
    expect([row.previous, row.expiresAt]).toEqual([null, null]);
    expect(world.wakes).toEqual([id]);
  });

  test.each([1, 72])(
    "with a grace period of %d hours keeps the previous secret for that time",
    async (hours) => {
      const { id, secret } = await world.subscribe();
      const rotated = await post(`/${id}/rotate-secret`, { grace_period_hours: hours });
      const row = await rowOf(id);
      expect(world.api.deps.box.open(row.previous ?? "", context(id))).toBe(secret);
      expect(row.expiresAt).toEqual(new Date(world.clock.now().getTime() + hours * 3_600_000));
      const ends = row.expiresAt?.toISOString().replace("Z", "+00:00");
      expect(rotated.body["previous_secret_expires_at"]).toBe(ends);
      const { body } = await world.ask("GET", `/${id}`);
      expect(body["previous_secret_expires_at"]).toBe(ends);
    },
  );

  test.each([-1, 73, 1.5, "1", null])("rejects a grace period of %p hours", async (hours) => {
    const { id } = await world.subscribe();
    const { status, body } = await post(`/${id}/rotate-secret`, { grace_period_hours: hours });
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {})).toEqual(["grace_period_hours"]);
  });

  test("by two concurrent requests leaves one of the two secrets in force", async () => {
    const { id } = await world.subscribe();
    const answers = await Promise.all([post(`/${id}/rotate-secret`), post(`/${id}/rotate-secret`)]);
    const shown = await post(`/${id}/secret`);
    expect(answers.map(({ body }) => body["secret"])).toContain(shown.body["secret"]);
  });

  test("is audited without the secret", async () => {
    const { id } = await world.subscribe();
    await post(`/${id}/rotate-secret`, { grace_period_hours: 5 });
    expect((await world.audit("WEBHOOK_SECRET_ROTATED")).at(-1)).toEqual({
      details: { subscription_id: id, grace_period_hours: 5 },
      actor: world.tenants.partners[0].owner.id,
    });
  });
});

describe("ending the previous secret", () => {
  const end = (id: string) => world.ask("DELETE", `/${id}/previous-secret`);
  const told = async (id: string) =>
    (await world.audit("WEBHOOK_PREVIOUS_SECRET_ENDED")).filter(
      ({ details }) => fieldsOf(details)["subscription_id"] === id,
    );

  test("deletes it at once, keeps the current one, wakes the dispatcher and is audited", async () => {
    const { id } = await world.subscribe();
    const { body } = await post(`/${id}/rotate-secret`, { grace_period_hours: 24 });
    world.wakes.length = 0;
    expect((await end(id)).status).toBe(204);
    const row = await rowOf(id);
    expect([row.previous, row.expiresAt]).toEqual([null, null]);
    expect(world.api.deps.box.open(row.sealed, context(id))).toBe(String(body["secret"]));
    expect((await world.ask("GET", `/${id}`)).body["previous_secret_expires_at"]).toBeNull();
    expect(world.wakes).toEqual([id]);
    expect(await told(id)).toEqual([
      { details: { subscription_id: id }, actor: world.tenants.partners[0].owner.id },
    ]);
  });

  test("gets the same answer without a previous secret or after its end, and writes nothing", async () => {
    const { id } = await world.subscribe();
    expect((await end(id)).status).toBe(204);
    await post(`/${id}/rotate-secret`, { grace_period_hours: 1 });
    world.clock.advance(3_600_000);
    const before = await rowOf(id);
    expect((await end(id)).status).toBe(204);
    expect(await rowOf(id)).toEqual(before);
    expect(await told(id)).toEqual([]);
  });
});

describe("showing the secret", () => {
  test("returns it with its fingerprint and is audited", async () => {
    const { id, secret } = await world.subscribe();
    const { status, body, headers } = await post(`/${id}/secret`);
    expect(status).toBe(200);
    expect(body).toEqual({
      secret,
      standard_webhooks_secret: null,
      secret_fingerprint: fingerprint(secret),
    });
    expect(headers.get("cache-control")).toBe("no-store");
    expect((await world.audit("WEBHOOK_SECRET_SHOWN")).at(-1)).toEqual({
      details: { subscription_id: id },
      actor: world.tenants.partners[0].owner.id,
    });
  });
});

describe("a test event", () => {
  test("is queued at the end as a test entry and wakes the dispatcher", async () => {
    const { id } = await world.subscribe({ payload_mode: "minimal", events: ["review_flagged"] });
    const { status, body } = await post(`/${id}/test`);
    expect(status).toBe(202);
    expect(Object.keys(body)).toEqual(["event_id"]);
    const rows = await world.database.db.sql`
      select event_id, event, is_test, payload_mode, sequence, review_history_id from queued_entries
       where subscription_id = ${id}`;
    expect([...rows]).toEqual([
      {
        event_id: body["event_id"],
        event: "webhook.test",
        is_test: true,
        payload_mode: "minimal",
        sequence: 1,
        review_history_id: null,
      },
    ]);
    expect(world.wakes).toEqual([id]);
    expect((await world.audit("WEBHOOK_TESTED")).at(-1)?.["details"]).toEqual({
      subscription_id: id,
      event_id: body["event_id"],
      event: "webhook.test",
    });
  });

  test("takes an event of the catalog, and rejects any other with a 422", async () => {
    const { id } = await world.subscribe({ events: ["review_flagged"] });
    const { status } = await post(`/${id}/test`, { event: "review_pull_connected" });
    expect(status).toBe(202);
    for (const event of ["review_lost", "", null, 1]) {
      const refused = await post(`/${id}/test`, { event });
      expect([refused.status, Object.keys(refused.body["errors"] ?? {})]).toEqual([422, ["event"]]);
    }
  });

  test("by ten concurrent requests gets ten consecutive numbers", async () => {
    const { id } = await world.subscribe();
    await Promise.all(Array.from({ length: 10 }, () => post(`/${id}/test`)));
    const queued = await queuedFor(world.database.db, id);
    expect(queued.map((row) => row.sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
});

describe("disabling through the API", () => {
  test("holds queued events, skips queued tests, wakes the dispatcher and is audited once", async () => {
    const { id } = await world.subscribe();
    const events = await world.emit(2);
    await post(`/${id}/test`);
    await world.database.db
      .sql`update webhook_subscriptions set consecutive_failure_count = 3 where id = ${id}`;
    world.wakes.length = 0;
    const { status, body } = await post(`/${id}/disable`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      is_active: false,
      consecutive_failure_count: 3,
      disabled_reason: "manual",
    });
    expect((await world.ask("GET", `/${id}`)).body).toEqual(body);
    const queued = await queuedFor(world.database.db, id);
    expect(queued.map((row) => row.eventId)).toEqual(events);
    const settled = await world.database.db
      .sql`select sequence, reason from skipped_entries where subscription_id = ${id}`;
    expect([...settled]).toEqual([{ sequence: 3, reason: "skipped" }]);
    expect((await world.ask("GET", `/${id}/health`)).body).toMatchObject({ pending: 0, held: 2 });
    expect(world.wakes).toEqual([id]);
    expect((await post(`/${id}/test`)).status).toBe(409);
    expect((await post(`/${id}/disable`)).body).toEqual(body);
    const rows = await world.audit("WEBHOOK_DISABLED");
    expect(rows.map((row) => row["details"])).toEqual([{ subscription_id: id }]);
  });

  test("is undone by an enable, which leaves the same events queued", async () => {
    const { id } = await world.subscribe();
    const events = await world.emit(2);
    expect((await post(`/${id}/disable`)).body["is_active"]).toBe(false);
    const held = await world.emit(1);
    expect((await post(`/${id}/enable`)).body).toMatchObject({
      is_active: true,
      disabled_reason: null,
    });
    const queued = await queuedFor(world.database.db, id);
    expect(queued.map((row) => row.eventId)).toEqual([...events, ...held]);
    const incidents = await world.database.db
      .sql`select from incidents where subscription_id = ${id}`;
    expect(incidents).toHaveLength(0);
  });

  test("keeps the time and reason of a disabling by failures", async () => {
    const { id } = await world.subscribe();
    await disable(world, id);
    const rows = (await world.audit("WEBHOOK_DISABLED")).length;
    expect((await post(`/${id}/disable`)).body).toMatchObject({
      disabled_reason: "consecutive_failures",
      consecutive_failure_count: 20,
    });
    expect(await world.audit("WEBHOOK_DISABLED")).toHaveLength(rows);
  });

  test("by ten concurrent requests happens once", async () => {
    const { id } = await world.subscribe();
    const rows = (await world.audit("WEBHOOK_DISABLED")).length;
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(`/${id}/disable`)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await world.audit("WEBHOOK_DISABLED")).toHaveLength(rows + 1);
  });
});

describe("enabling", () => {
  test("resets the failure counter and leaves held events queued", async () => {
    const { id } = await world.subscribe();
    await world.emit(2);
    await disable(world, id);
    const held = await world.emit(1);
    world.wakes.length = 0;
    const { status, body } = await post(`/${id}/enable`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      is_active: true,
      consecutive_failure_count: 0,
      disabled_at: null,
      disabled_reason: null,
    });
    expect((await world.ask("GET", `/${id}`)).body).toEqual(body);
    expect(await queuedFor(world.database.db, id)).toHaveLength(3);
    expect((await queuedFor(world.database.db, id)).at(-1)?.eventId).toBe(held[0] ?? "");
    expect(world.wakes).toEqual([id]);
    expect((await world.audit("WEBHOOK_ENABLED")).at(-1)?.["details"]).toEqual({
      subscription_id: id,
      held: "deliver",
    });
  });

  test("an active subscription changes nothing, also with skip", async () => {
    const { id } = await world.subscribe();
    await world.emit(1);
    const before = (await world.ask("GET", `/${id}`)).body;
    const rows = (await world.audit("WEBHOOK_ENABLED")).length;
    const { status, body } = await post(`/${id}/enable`, { held: "skip" });
    expect([status, body]).toEqual([200, before]);
    expect(await queuedFor(world.database.db, id)).toHaveLength(1);
    expect(await world.audit("WEBHOOK_ENABLED")).toHaveLength(rows);
  });

  test("an active subscription resets its failure counter", async () => {
    const { id } = await world.subscribe();
    await world.database.db.sql`
      update webhook_subscriptions set consecutive_failure_count = 3 where id = ${id}`;
    const { status, body } = await post(`/${id}/enable`);
    expect([status, body["consecutive_failure_count"]]).toEqual([200, 0]);
    const shown = (await world.ask("GET", `/${id}`)).body;
    expect(shown["consecutive_failure_count"]).toBe(0);
  });

  test("a subscription that is being disabled at this moment enables it", async () => {
    const { id } = await world.subscribe();
    let answer: ReturnType<typeof post> | undefined;
    await world.database.db.transaction(async ({ sql }) => {
      await sql`
        update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'test',
               consecutive_failure_count = 20 where id = ${id}`;
      answer = post(`/${id}/enable`);
      // The enable has read an active subscription by now, and waits for the row lock.
      await untilSomebodyWaits(world.database.db);
    });
    expect((await answer)?.body).toMatchObject({ is_active: true, consecutive_failure_count: 0 });
    const shown = (await world.ask("GET", `/${id}`)).body;
    expect(shown).toMatchObject({ is_active: true, consecutive_failure_count: 0 });
  });

  test("by ten concurrent requests happens once", async () => {
    const { id } = await world.subscribe();
    await disable(world, id);
    const rows = (await world.audit("WEBHOOK_ENABLED")).length;
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(`/${id}/enable`)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await world.audit("WEBHOOK_ENABLED")).toHaveLength(rows + 1);
  });

  test.each([{ held: "keep" }, { held: null }, { more: 1 }])("rejects %j", async (body) => {
    const { id } = await world.subscribe();
    expect((await post(`/${id}/enable`, body)).status).toBe(422);
  });

  test("with skip while events are recorded skips all or none of the events of a waiting transaction", async () => {
    const { id } = await world.subscribe();
    await disable(world, id);
    await Promise.all([world.emit(5), post(`/${id}/enable`, { held: "skip" }), world.emit(5)]);
    const [row] = await world.database.db.sql<{ n: number }[]>`
      select (select count(*) from skipped_entries where subscription_id = ${id})
           + (select count(*) from queued_entries where subscription_id = ${id}) as n`;
    expect(row?.n).toBe(10);
  });
});

describe("enabling a batch subscription", () => {
  const entries = async (id: string) => {
    const [row] = await world.database.db.sql<{ n: number }[]>`
      select count(*)::int as n from batch_entries where subscription_id = ${id}`;
    return row?.n;
  };

  test("leaves an overdue batch due", async () => {
    const { id } = await world.subscribe(batch);
    await world.emit(2);
    await disable(world, id);
    world.clock.advance(13 * HOUR_MS);
    const before = (await world.ask("GET", `/${id}`)).body["next_batch_at"];
    const { body } = await post(`/${id}/enable`);
    expect(body).toMatchObject({ next_batch_at: before, last_batch_dispatched_at: null });
    expect(await entries(id)).toBe(2);
  });

  test("with skip moves the last dispatch to now, keeps the grid of due times and drops waiting events", async () => {
    const { id } = await world.subscribe(batch);
    await world.emit(2);
    await disable(world, id);
    const due = new Date(String((await world.ask("GET", `/${id}`)).body["next_batch_at"]));
    world.clock.advance(30 * HOUR_MS);
    const { body } = await post(`/${id}/enable`, { held: "skip" });
    expect(new Date(String(body["last_batch_dispatched_at"]))).toEqual(world.clock.now());
    expect(new Date(String(body["next_batch_at"]))).toEqual(new Date(due.getTime() + 24 * HOUR_MS));
    expect((await world.ask("GET", `/${id}`)).body).toEqual(body);
    expect(await entries(id)).toBe(0);
  });
});

describe("sending a batch before its time", () => {
  test("makes it due now, wakes the dispatcher and is audited, and does nothing while it is due", async () => {
    const { id } = await world.subscribe(batch);
    await world.emit(1);
    world.clock.advance(HOUR_MS);
    world.wakes.length = 0;
    const due = world.clock.now();
    const { status, body } = await post(`/${id}/batch`);
    expect([status, new Date(String(body["next_batch_at"]))]).toEqual([200, due]);
    expect((await world.ask("GET", `/${id}`)).body).toEqual(body);
    expect(world.wakes).toEqual([id]);
    world.clock.advance(1);
    expect((await post(`/${id}/batch`)).body).toEqual(body);
    const audited = (await world.audit("WEBHOOK_BATCH_REQUESTED")).map((row) => row["details"]);
    expect(audited).toEqual([{ subscription_id: id }]);
  });

  test("is a 404 without batches, and a 409 while the subscription is disabled", async () => {
    const immediate = await world.subscribe();
    expect((await post(`/${immediate.id}/batch`)).status).toBe(404);
    const { id } = await world.subscribe(batch);
    await disable(world, id);
    const before = (await world.ask("GET", `/${id}`)).body;
    const answer = await post(`/${id}/batch`);
    expect([answer.status, answer.body["code"]]).toEqual([409, "subscription_disabled"]);
    expect((await world.ask("GET", `/${id}`)).body).toEqual(before);
  });

  test("is a 409 for a subscription that is being disabled at this moment", async () => {
    const { id } = await world.subscribe(batch);
    let answer: ReturnType<typeof post> | undefined;
    await world.database.db.transaction(async ({ sql }) => {
      await sql`
        update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'test'
         where id = ${id}`;
      answer = post(`/${id}/batch`);
      await untilSomebodyWaits(world.database.db);
    });
    expect((await answer)?.status).toBe(409);
  });
});

describe("one delivery", () => {
  const show = (id: string, eventId: string) => world.ask("GET", `/${id}/deliveries/${eventId}`);

  test("is pending, waiting, held, then settled", async () => {
    const { id } = await world.subscribe();
    const [eventId = ""] = await world.emit(1);
    const at = iso(world.clock.now()).replace("Z", "+00:00");
    expect((await show(id, eventId)).body).toEqual({
      event_id: eventId,
      event: "review_received",
      sequence: 1,
      state: "pending",
      created_at: at,
      settled_at: null,
      attempts: [],
    });
    await makeWait(world.database.db, id);
    expect((await show(id, eventId)).body["state"]).toBe("waiting");
    await disable(world, id);
    expect((await show(id, eventId)).body["state"]).toBe("held");
    await settle(world, id, "failed");
    const { body } = await show(id, eventId);
    expect([body["state"], body["settled_at"]]).toEqual(["failed", expect.any(String)]);
  });

  test("shows the attempts of all rounds, the oldest first, and none of other subscriptions", async () => {
    const { id } = await world.subscribe();
    const [eventId = ""] = await world.emit(1);
    const start = Date.now();
    const ids = [ulid(start), ulid(start + 1), ulid(start + 2)];
    for (const [i, attempt] of ids.entries())
      await addAttempt(world.database.db, i === 2 ? "OTHER" : id, {
        id: attempt,
        event_id: eventId,
        round: i + 1,
        started_at: new Date(start + i),
        outcome: "failed",
        status_code: 500,
        request_headers: '{"X-SVC-Attempt":"1"}',
        request_body: '{"a":1}',
      });
    const { body } = await show(id, eventId);
    const attempts = body["attempts"] as { id: string; request_body: string }[];
    expect(attempts.map((one) => one.id)).toEqual(ids.slice(0, 2));
    expect(attempts[0]?.request_body).toBe('{"a":1}');
  });
});

describe("redelivering", () => {
  const again = (id: string, eventId: string) => post(`/${id}/deliveries/${eventId}/redeliver`);
  const rounds = (id: string) => world.database.db.sql`
    select event_id, sequence, round, attempt, payload_mode, state, is_test from queued_entries
     where subscription_id = ${id} order by sequence`;

  test.each(["delivered", "failed"] as const)(
    "queues a %s event at the end as a new round",
    async (state) => {
      const { id } = await world.subscribe();
      const [first = ""] = await world.emit(1);
      await settle(world, id, state);
      await world.ask("POST", `/${id}`, { body: { payload_mode: "minimal" } });
      const [second] = await world.emit(1);
      world.wakes.length = 0;
      const { status, body } = await again(id, first);
      expect([status, body]).toEqual([202, { event_id: first }]);
      const common = { attempt: 1, state: "pending", is_test: false };
      expect([...(await rounds(id))]).toEqual([
        { event_id: second, sequence: 2, round: 1, payload_mode: "minimal", ...common },
        // The payload mode was fixed when the event was recorded.
        { event_id: first, sequence: 3, round: 2, payload_mode: "full", ...common },
      ]);
      expect(world.wakes).toEqual([id]);
      expect((await world.audit("WEBHOOK_REDELIVERED")).at(-1)?.["details"]).toEqual({
        subscription_id: id,
        event_id: first,
      });
    },
  );

  test("increments the round", async () => {
    const { id } = await world.subscribe();
    const [eventId = ""] = await world.emit(1);
    for (const round of [2, 3, 4]) {
      await settle(world, id, "failed");
      await again(id, eventId);
      expect((await rounds(id))[0]).toMatchObject({ round, sequence: round });
    }
  });

  test("is rejected while the event is queued, so that one of ten concurrent requests succeeds", async () => {
    const { id } = await world.subscribe();
    const [eventId = ""] = await world.emit(1);
    const early = await again(id, eventId);
    expect([early.status, early.body["code"]]).toEqual([409, "already_queued"]);
    await settle(world, id, "failed");
    const answers = await Promise.all(Array.from({ length: 10 }, () => again(id, eventId)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      202,
      ...Array.from({ length: 9 }, () => 409),
    ]);
    expect(await rounds(id)).toHaveLength(1);
  });

  test("makes a retry due at once, also for later events of its review, and keeps the round", async () => {
    const { id } = await world.subscribe({ ordering: "review" });
    const [first = ""] = await world.emit(2);
    const { sql } = world.database.db;
    await passQueue(world.database.db, id);
    // Both events are of one review; the second waits behind the first.
    await sql`update outbox set review_id = null, behind_until = now() + interval '5 minutes' where subscription_id = ${id}`;
    await sql`
      update outbox set state = 'waiting', attempt = 2, due_at = now() + interval '5 minutes', behind_until = null
       where subscription_id = ${id} and event_id = ${first}`;
    world.wakes.length = 0;
    expect((await again(id, first)).status).toBe(202);
    expect([
      ...(await sql`
        select round, attempt, state, coalesce(due_at, behind_until) <= now() as is_due from outbox
         where subscription_id = ${id} order by sequence`),
    ]).toEqual([
      { round: 1, attempt: 2, state: "waiting", is_due: true },
      { round: 1, attempt: 1, state: "pending", is_due: true },
    ]);
    expect(world.wakes).toEqual([id]);
    expect((await world.audit("WEBHOOK_REDELIVERED")).at(-1)).toMatchObject({
      details: { event_id: first, hastened: true },
    });
    // Its attempt may be under way by now.
    expect((await again(id, first)).body["code"]).toBe("already_queued");
  });

  test.each([ulid(), "not-an-id", "%00"])("is a 404 for the event %s", async (eventId) => {
    const { id } = await world.subscribe();
    await disable(world, id);
    expect((await again(id, eventId)).status).toBe(404);
  });
});

describe("redelivering several events", () => {
  const again = (id: string, ids: readonly unknown[]) =>
    post(`/${id}/redeliver`, { event_ids: ids });
  const byNumber = (id: string, numbers: readonly unknown[]) =>
    post(`/${id}/redeliver`, { sequences: numbers });

  test("queues the settled ones in their order, and leaves out the others", async () => {
    const { id } = await world.subscribe();
    const [first = "", second = ""] = await world.emit(2);
    await settle(world, id, "failed");
    const testId = String((await post(`/${id}/test`)).body["event_id"]);
    await settle(world, id, "delivered");
    const [queued = ""] = await world.emit(1);
    world.wakes.length = 0;
    const { status, body } = await again(id, [second, queued, ulid(), testId, first]);
    expect([status, body]).toEqual([202, { queued: 3 }]);
    const rows = await queuedFor(world.database.db, id);
    expect(rows.map(({ eventId }) => eventId)).toEqual([queued, second, testId, first]);
    expect(world.wakes).toEqual([id]);
    expect((await world.audit("WEBHOOK_REDELIVERED")).at(-1)?.["details"]).toEqual({
      subscription_id: id,
      event_ids: `${second} ${testId} ${first}`,
      queued: 3,
    });
    expect((await again(id, [second, first])).body).toEqual({ queued: 0 });
  });

  test("queues those with the given numbers in their order, and leaves out the others", async () => {
    const { id } = await world.subscribe();
    expect((await byNumber(id, [1])).body).toEqual({ queued: 0 });
    const [first = "", second = ""] = await world.emit(2);
    await post(`/${id}/test`);
    await settle(world, id, "failed");
    const [queued = ""] = await world.emit(1);
    world.wakes.length = 0;
    const { status, body } = await byNumber(id, [2, 3, 4, 1]);
    expect([status, body]).toEqual([202, { queued: 2 }]);
    const rows = await queuedFor(world.database.db, id);
    expect(rows.map(({ eventId }) => eventId)).toEqual([queued, second, first]);
    expect(world.wakes).toEqual([id]);
    expect((await world.audit("WEBHOOK_REDELIVERED")).at(-1)?.["details"]).toEqual({
      subscription_id: id,
      event_ids: `${second} ${first}`,
      queued: 2,
    });
    expect((await byNumber(id, [1, 2])).body).toEqual({ queued: 0 });
  });

  test("takes 1 to 100 different numbers from 1 to 2^53-1", async () => {
    const { id } = await world.subscribe();
    const numbers = Array.from({ length: 101 }, (_, i) => 2 ** 53 - 1 - i);
    expect((await byNumber(id, numbers.slice(0, 100))).body).toEqual({ queued: 0 });
    for (const wrong of [numbers, [], [1, 1], [0], [2 ** 53], [1.5], ["1"]]) {
      const { status, body } = await byNumber(id, wrong);
      expect([status, Object.keys(body["errors"] ?? {})[0]?.split(".")[0]]).toEqual([
        422,
        "sequences",
      ]);
    }
  });

  test("takes either ids or numbers", async () => {
    const { id } = await world.subscribe();
    for (const wrong of [{}, { event_ids: [ulid()], sequences: [1] }]) {
      const { status, body } = await post(`/${id}/redeliver`, wrong);
      expect([status, Object.keys(body["errors"] ?? {}).toSorted()]).toEqual([
        422,
        ["event_ids", "sequences"],
      ]);
    }
  });

  test("leaves out the events of another subscription", async () => {
    const other = await world.subscribe();
    const [foreign = ""] = await world.emit(1);
    await settle(world, other.id, "failed");
    expect((await world.ask("DELETE", `/${other.id}`)).status).toBe(204);
    const { id } = await world.subscribe();
    expect((await again(id, [foreign])).body).toEqual({ queued: 0 });
    expect((await byNumber(id, [1])).body).toEqual({ queued: 0 });
  });

  test("takes 1 to 100 different ids", async () => {
    const { id } = await world.subscribe();
    const ids = Array.from({ length: 101 }, () => ulid());
    expect((await again(id, ids.slice(0, 100))).body).toEqual({ queued: 0 });
    for (const wrong of [ids, [], [ids[0], ids[0]], ["not-an-id"]]) {
      const { status, body } = await again(id, wrong);
      expect([status, Object.keys(body["errors"] ?? {})[0]?.split(".")[0]]).toEqual([
        422,
        "event_ids",
      ]);
    }
  });
});

describe("recovering", () => {
  const recover = (id: string, body: unknown) => post(`/${id}/recover`, body);
  const since = () => iso(new Date(world.clock.now().getTime() - 3_600_000));

  test("queues events that were not delivered and are not queued, in order", async () => {
    world.clock.advance(1);
    const { id } = await world.subscribe();
    const start = iso(world.clock.now());
    const delivered = await world.emit(1);
    await settle(world, id, "delivered");
    const failed = await world.emit(2);
    await settle(world, id, "failed");
    const queued = await world.emit(1);
    world.clock.advance(1);
    world.wakes.length = 0;
    const { status, body } = await recover(id, { since: start });
    expect([status, body]).toEqual([202, { queued: 2, sequences: "2-3" }]);
    const rows = await queuedFor(world.database.db, id);
    expect(rows.map((row) => row.eventId)).toEqual([...queued, ...failed]);
    expect(rows.map((row) => row.sequence)).toEqual([4, 5, 6]);
    expect(rows.map((row) => row.eventId)).not.toContain(delivered[0]);
    expect(world.wakes).toEqual([id]);
    world.wakes.length = 0;
    expect((await recover(id, { since: start })).body).toEqual({ queued: 0 });
    expect(world.wakes).toEqual([]);
  });

  test("counts with dry_run, also while the subscription is disabled, and changes nothing", async () => {
    world.clock.advance(1);
    const { id } = await world.subscribe();
    const start = iso(world.clock.now());
    await world.emit(2);
    await settle(world, id, "failed");
    world.clock.advance(1);
    const audited = () =>
      world.database.db.sql`select from audit_log where action like 'WEBHOOK_%'`;
    const count = () => recover(id, { since: start, dry_run: true });
    expect(await count()).toMatchObject({ status: 200, body: { queued: 2 } });
    // Counting waits for no writer.
    await world.database.connect().transaction(async (tx) => {
      await tx.sql`select from outbox_sequences where subscription_id = ${id} for update`;
      await tx.sql`select from webhook_subscriptions where id = ${id} for update`;
      expect(await count()).toMatchObject({ status: 200, body: { queued: 2 } });
    });
    await disable(world, id);
    const before = (await audited()).length;
    expect(await count()).toMatchObject({ status: 200, body: { queued: 2 } });
    expect(await queuedFor(world.database.db, id)).toEqual([]);
    expect((await audited()).length).toBe(before);
  });

  test("takes no event from before the subscription, and only events of its present filter", async () => {
    await world.emit(2);
    world.clock.advance(1);
    const { id } = await world.subscribe({ events: ["review_flagged"] });
    await world.emit(3);
    world.clock.advance(1);
    expect((await recover(id, { since: since() })).body).toEqual({ queued: 0 });
    await world.ask("POST", `/${id}`, { body: { events: null } });
    // Events that the filter did not match have no numbers.
    expect((await recover(id, { since: since() })).body).toEqual({ queued: 3 });
  });

  test("queues later rounds with their number and their original payload mode", async () => {
    world.clock.advance(1);
    const { id } = await world.subscribe();
    const start = iso(world.clock.now());
    await world.emit(1);
    await settle(world, id, "failed");
    await world.ask("POST", `/${id}`, { body: { payload_mode: "minimal" } });
    world.clock.advance(1);
    await recover(id, { since: start });
    const [row] = await world.database.db.sql`
      select round, payload_mode, attempt from queued_entries where subscription_id = ${id}`;
    expect(row).toEqual({ round: 2, payload_mode: "full", attempt: 1 });
  });

  test("takes a window with an inclusive since and an exclusive until", async () => {
    const { id } = await world.subscribe();
    world.clock.advance(10);
    const at = world.clock.now();
    await world.emit(1);
    await settle(world, id, "failed");
    world.clock.advance(10);
    const plus = (ms: number) => iso(new Date(at.getTime() + ms));
    expect((await recover(id, { since: plus(1), until: plus(5) })).body).toEqual({ queued: 0 });
    expect((await recover(id, { since: plus(-5), until: plus(0) })).body).toEqual({ queued: 0 });
    expect((await recover(id, { since: plus(0), until: plus(1) })).body).toMatchObject({
      queued: 1,
    });
  });

  test("of a batch subscription takes review-impacting events regardless of its filter, except those that wait for a batch", async () => {
    const { id } = await world.subscribe({ ...batch, events: ["review_flagged"] });
    const start = iso(world.clock.now());
    await world.emit(2);
    world.clock.advance(1);
    expect((await recover(id, { since: start })).body).toEqual({ queued: 0 });
    await world.database.db.sql`delete from batch_entries where subscription_id = ${id}`;
    expect((await recover(id, { since: start })).body).toEqual({ queued: 2 });
  });

  test("by ten concurrent requests queues each event once", async () => {
    world.clock.advance(1);
    const { id } = await world.subscribe();
    const start = iso(world.clock.now());
    await world.emit(3);
    await settle(world, id, "failed");
    world.clock.advance(1);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => recover(id, { since: start })),
    );
    const total = answers.reduce((sum, { body }) => sum + Number(body["queued"]), 0);
    expect(total).toBe(3);
    expect(await queuedFor(world.database.db, id)).toHaveLength(3);
  });

  test("is audited with its window", async () => {
    const { id } = await world.subscribe();
    const from = since();
    await recover(id, { since: from });
    const details = (await world.audit("WEBHOOK_RECOVERED")).at(-1)?.["details"];
    expect(details).toMatchObject({ subscription_id: id, queued: expect.any(Number) });
    expect(new Date(String(fieldsOf(details)["since"]))).toEqual(new Date(from));
  });

  test("takes a window of 30 days, and rejects a longer one and what is none", async () => {
    const { id } = await world.subscribe();
    const ago = (ms: number) => iso(new Date(world.clock.now().getTime() - ms));
    const errors = async (body: unknown) => {
      const answer = await recover(id, body);
      return [answer.status, Object.keys(answer.body["errors"] ?? {})];
    };
    expect(await errors({ since: ago(30 * DAY_MS) })).toEqual([202, []]);
    expect(await errors({ since: ago(30 * DAY_MS + 1) })).toEqual([422, ["since"]]);
    expect(await errors({ since: "yesterday", until: "x" })).toEqual([422, ["since", "until"]]);
    expect(await errors({ since: since(), dry_run: "yes" })).toEqual([422, ["dry_run"]]);
    expect(await errors({ since: since(), all: true })).toEqual([422, ["all"]]);
  });
});

test("a disabled subscription rejects whatever would queue an event, and gets no gap in its sequence", async () => {
  const { id } = await world.subscribe();
  const [eventId = ""] = await world.emit(1);
  await settle(world, id, "failed");
  await disable(world, id);
  for (const [path, body] of [
    ["test", undefined],
    [`deliveries/${eventId}/redeliver`, undefined],
    ["redeliver", { event_ids: [eventId] }],
    ["redeliver", { sequences: [1] }],
    ["redeliver", { sequences: [2] }],
    ["recover", { since: iso(new Date(world.clock.now().getTime() - 1)) }],
  ] as const) {
    const answer = await post(`/${id}/${path}`, body);
    expect([path, answer.status, answer.body["code"]]).toEqual([
      path,
      409,
      "subscription_disabled",
    ]);
  }
  await post(`/${id}/enable`);
  await post(`/${id}/test`);
  expect((await queuedFor(world.database.db, id)).map((row) => row.sequence)).toEqual([2]);
});

const DAY_MS = 86_400_000;
const post = (path: string, body?: unknown) => world.ask("POST", path, { body });
const iso = (at: Date) => at.toISOString();

beforeEach(() => void (world.wakes.length = 0));

const batch = { delivery_kind: "batch", batch_interval_hours: 12 };

interface Row {
  readonly sealed: string;
  readonly previous: string | null;
  readonly expiresAt: Date | null;
}

async function rowOf(id: string): Promise<Row> {
  const [row] = await world.database.db.sql<Row[]>`
    select sealed_secret as sealed, sealed_previous_secret as previous, previous_secret_expires_at as "expiresAt"
      from webhook_subscriptions where id = ${id}`;
  if (row === undefined) throw new Error(`There is no subscription ${id}.`);
  return row;
}

const context = (id: string) => `webhook:${world.tenants.partners[0].id}:${id}`;
