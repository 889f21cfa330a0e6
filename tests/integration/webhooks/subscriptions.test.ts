import { beforeEach, describe, expect, test } from "bun:test";

import { fingerprint } from "../../../src/lib/secrets.ts";
import { CATALOG, SUBSCRIBABLE_EVENTS } from "../../../src/outbox/event.ts";
import type { Answer } from "../../support/api.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { created, queuedFor, report } from "../../support/factory.ts";
import { HOUR_MS, startWebhooks, type Who } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

describe("creating a subscription", () => {
  test("returns the whole object with its secret and with defaults", async () => {
    const { status, body, headers } = await create(immediate);
    expect(status).toBe(201);
    const at = world.clock.now().toISOString().replace("Z", "+00:00");
    expect(body).toEqual({
      id: expect.stringMatching(ULID),
      label: "Now",
      webhook_url: URL,
      delivery_kind: "immediate",
      batch_interval_hours: null,
      events: null,
      payload_mode: "full",
      suppress_native_notifications: false,
      ordering: "subscription",
      standard_webhooks: false,
      sequence_headers: false,
      header_names: [],
      is_active: true,
      consecutive_failure_count: 0,
      disabled_at: null,
      disabled_reason: null,
      disabled_note: null,
      pending_test_event_id: null,
      last_batch_dispatched_at: null,
      next_batch_at: null,
      secret_fingerprint: fingerprint(String(body["secret"])),
      previous_secret_expires_at: null,
      created_at: at,
      updated_at: at,
      deleted_at: null,
      secret: expect.stringMatching(/^[0-9a-f]{64}$/),
      standard_webhooks_secret: null,
    });
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("shows the secret in no other response and stores it only sealed", async () => {
    const { body } = await create(immediate);
    const secret = String(body["secret"]);
    const { secret: _, standard_webhooks_secret: _standard, ...rest } = body;
    expect((await get(`/${String(body["id"])}`)).body).toEqual(rest);
    expect((await get("")).text).not.toContain(secret);
    const [row] = await world.database.db.sql`select * from webhook_subscriptions`;
    expect(JSON.stringify(row)).not.toContain(secret);
  });

  test("stores the settings of an immediate subscription", async () => {
    const asked = {
      ...immediate,
      events: ["review_flagged", "review_removed"],
      payload_mode: "minimal",
      suppress_native_notifications: true,
      ordering: "review",
      standard_webhooks: true,
      sequence_headers: true,
      batch_interval_hours: null,
    };
    expect((await create(asked)).body).toMatchObject(asked);
  });

  test("sets the first batch one interval after creation and wakes the dispatcher", async () => {
    await create(immediate);
    world.wakes.length = 0;
    const { body } = await create(batch);
    expect(world.wakes).toEqual([String(body["id"])]);
    expect(body).toMatchObject({ batch_interval_hours: 12, last_batch_dispatched_at: null });
    expect(new Date(String(body["next_batch_at"])).getTime()).toBe(
      world.clock.now().getTime() + 12 * HOUR_MS,
    );
  });

  test("leaves an audit row without the secret", async () => {
    const { body } = await create(immediate);
    const rows = await world.database.db.sql<{ details: unknown; actor: number }[]>`
      select details - 'token' as details, actor_id as actor from audit_log
       where action = 'WEBHOOK_CREATED' order by id desc limit 1`;
    expect(rows[0]).toEqual({
      details: { subscription_id: String(body["id"]), delivery_kind: "immediate" },
      actor: world.tenants.partners[0].owner.id,
    });
  });

  test("accepts label and URL at their limits, and rejects one character more", async () => {
    const long = (length: number) => `${URL}?`.padEnd(length, "x");
    const most = { label: "x".repeat(100), webhook_url: long(2048) };
    expect((await create({ ...immediate, ...most })).status).toBe(201);
    const more = { label: "x".repeat(101), webhook_url: long(2049) };
    const { status, body } = await create({ ...batch, ...more });
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {})).toEqual(["label", "webhook_url"]);
  });

  test("trims the label, and rejects one of spaces alone", async () => {
    const { body } = await create({ ...immediate, label: ` ${"x".repeat(100)}\n` });
    expect(body["label"]).toBe("x".repeat(100));
    for (const label of [" ", "\t\n", "\u00a0"]) {
      const blank = await create({ ...batch, label });
      expect([blank.status, Object.keys(blank.body["errors"] ?? {})]).toEqual([422, ["label"]]);
    }
  });

  test("names all invalid fields at once, whichever rule they break", async () => {
    const { status, body } = await create({
      label: "",
      webhook_url: "http://user:pw@10.0.0.1/",
      delivery_kind: "batch",
      events: [],
      payload_mode: "tiny",
      suppress_native_notifications: "no",
      ordering: "none",
      standard_webhooks: null,
      sequence_headers: "yes",
      headers: { Cookie: "c" },
      delivery_tier_override: "gold",
    });
    expect(status).toBe(422);
    expect(body["code"]).toBe("validation_failed");
    expect(Object.keys(body["errors"] ?? {}).toSorted()).toEqual([
      "batch_interval_hours",
      "delivery_tier_override",
      "events",
      "headers",
      "label",
      "ordering",
      "payload_mode",
      "sequence_headers",
      "standard_webhooks",
      "suppress_native_notifications",
      "webhook_url",
    ]);
  });

  test("with headers answers their names, and stores and audits no value", async () => {
    const headers = { "X-Api-Key": "hush-hush-1", Authorization: "Bearer hush-hush-2" };
    const made = await create({ ...batch, headers });
    expect([made.status, made.body["header_names"]]).toEqual([201, Object.keys(headers)]);
    expect(made.body).not.toHaveProperty("headers");
    const one = await get(`/${String(made.body["id"])}`);
    expect(one.body["header_names"]).toEqual(Object.keys(headers));
    const rows = await world.database.db.sql`select * from webhook_subscriptions`;
    const audited = await world.audit("WEBHOOK_CREATED");
    expect(audited.at(-1)).toMatchObject({ details: { header_names: Object.keys(headers) } });
    for (const text of [
      made.text,
      one.text,
      (await get("")).text,
      ...[rows, audited].map((all) => JSON.stringify(all)),
    ])
      expect(text).not.toContain("hush-hush");
  });

  test("rejects a batch at any other interval than those of the catalog", async () => {
    for (const batch_interval_hours of [0, 3, 25, -1, 1.5, "12"]) {
      const { status, body } = await create({ ...batch, batch_interval_hours });
      expect([status, Object.keys(body["errors"] ?? {})]).toEqual([422, ["batch_interval_hours"]]);
    }
  });

  test("accepts every event of the catalog except webhook.test in the filter", async () => {
    const { body } = await create({ ...immediate, events: SUBSCRIBABLE_EVENTS });
    expect(body["events"]).toEqual([...SUBSCRIBABLE_EVENTS]);
    expect(SUBSCRIBABLE_EVENTS).toHaveLength(CATALOG.length - 1);
  });
});

describe("the slots", () => {
  test("hold one immediate and one batch subscription", async () => {
    expect((await create(immediate)).status).toBe(201);
    expect((await create(batch)).status).toBe(201);
    for (const body of [immediate, batch]) {
      const again = await create(body, "admin");
      expect([again.status, again.body["code"]]).toEqual([409, "slot_occupied"]);
    }
  });

  test("of another partner are independent", async () => {
    await create(immediate);
    expect((await create(immediate, "other")).status).toBe(201);
  });

  test("are checked after the fields", async () => {
    await create(immediate);
    expect((await create({ ...immediate, label: "" })).status).toBe(422);
  });

  test("accept one of 50 concurrent creates and reject 49", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => create(immediate)));
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([201, ...Array.from({ length: 49 }, () => 409)]);
    expect((await get("")).body["data"]).toHaveLength(1);
  });

  test("are free immediately after a delete", async () => {
    const first = await create(immediate);
    expect((await remove(first.body["id"])).status).toBe(204);
    expect((await create(immediate)).status).toBe(201);
  });
});

describe("reading subscriptions", () => {
  test("lists them page by page, the newest first", async () => {
    const first = await create(immediate);
    world.clock.advance(5);
    const second = await create(batch);
    const page = await get("?limit=1");
    expect(idsOf(page)).toEqual([String(second.body["id"])]);
    const next = await get(`?limit=1&cursor=${String(page.body["next_cursor"])}`);
    expect(idsOf(next)).toEqual([String(first.body["id"])]);
    expect(next.body["next_cursor"]).toBeNull();
  });

  test("leaves out deleted subscriptions and those of other partners", async () => {
    const mine = await create(immediate);
    await create(immediate, "other");
    await remove(mine.body["id"]);
    expect((await get("")).body).toEqual({ data: [], next_cursor: null });
  });

  test("returns the catalog with every event and the batch intervals", async () => {
    const { status, body } = await get("/events");
    expect(status).toBe(200);
    expect(body["batch_interval_hours"]).toEqual([1, 2, 4, 6, 8, 12, 24]);
    const events = body["events"] as { value: string; subscribable: boolean }[];
    expect(events.map(({ value }) => value)).toEqual(CATALOG.map(({ value }) => value));
    expect(events.filter((one) => !one.subscribable).map((one) => one.value)).toEqual([
      "webhook.test",
    ]);
  });
});

describe("deleting a subscription", () => {
  test("marks it deleted, keeps the reason of a disabling and leaves an audit row", async () => {
    const { body } = await create(immediate);
    const id = String(body["id"]);
    const disabledAt = world.clock.now();
    await world.database.db.sql`
      update webhook_subscriptions set state = 'disabled', disabled_at = ${disabledAt}, disabled_reason = 'r'
       where id = ${id}`;
    expect((await get(`/${id}`)).body).toMatchObject({ is_active: false, disabled_reason: "r" });
    world.clock.advance(1_000);
    await remove(id);
    const [row] = await world.database.db.sql`
      select state, deleted_at, disabled_at, disabled_reason from webhook_subscriptions where id = ${id}`;
    expect(row).toEqual({
      state: "deleted",
      deleted_at: world.clock.now(),
      disabled_at: disabledAt,
      disabled_reason: "r",
    });
    const [audit] = await world.database.db.sql`
      select details - 'token' as details from audit_log where action = 'WEBHOOK_DELETED' order by id desc limit 1`;
    expect(audit?.["details"]).toEqual({ subscription_id: id, delivery_kind: "immediate" });
  });

  test("succeeds for one of ten concurrent requests", async () => {
    const { body } = await create(immediate);
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(body["id"])));
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([204, ...Array.from({ length: 9 }, () => 404)]);
  });

  test("waits for the commit of an attempt, which takes offset and subscription in the same order", async () => {
    const { body } = await create(immediate);
    const id = String(body["id"]);
    await world.emit(2);
    const [deleted] = await world.database.db.transaction(async (tx) => {
      await tx.sql`update outbox_offsets set settled_through = 1 where subscription_id = ${id}`;
      const deleting = remove(id);
      await untilSomebodyWaits(world.database.db);
      await tx.sql`update webhook_subscriptions set consecutive_failure_count = 1 where id = ${id}`;
      return [deleting];
    });
    expect((await deleted)?.status).toBe(204);
    const settled = await world.database.db.sql<{ sequence: number }[]>`
      select sequence from skipped_entries where subscription_id = ${id}`;
    expect(settled.map(({ sequence }) => sequence)).toEqual([2]);
  });

  test("leaves nothing queued while events are recorded at the same time", async () => {
    const { body } = await create(immediate);
    const id = String(body["id"]);
    const reports = Array.from({ length: 10 }, (_, i) =>
      report(world.api, world.provider, [created(world.siteId, `race-${i}`)]),
    );
    const [deleted] = await Promise.all([remove(id), ...reports]);
    expect(deleted.status).toBe(204);
    expect(await queuedFor(world.database.db, id)).toEqual([]);
    const reviews = await world.database.db.sql`
      select from reviews where external_review_id like 'race-%'`;
    expect(reviews).toHaveLength(10);
  });
});

const URL = "http://127.0.0.1:3699/hook";
const immediate = { label: "Now", webhook_url: URL, delivery_kind: "immediate" };

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

beforeEach(async () => {
  const { sql } = world.database.db;
  await sql`delete from outbox`;
  await sql`delete from outbox_offsets`;
  await sql`delete from outbox_sequences`;
  await sql`delete from webhook_subscriptions`;
});

const batch = { ...immediate, label: "Later", delivery_kind: "batch", batch_interval_hours: 12 };

const create = (body: unknown, as: Who = "owner") => world.ask("POST", "", { body, as });

const get = (path: string) => world.ask("GET", path);

const remove = (id: unknown) => world.ask("DELETE", `/${String(id)}`);

const idsOf = ({ body }: Answer) => (body["data"] as { id: string }[]).map(({ id }) => id);
