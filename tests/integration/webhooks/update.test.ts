import { describe, expect, test } from "bun:test";

import { fieldsOf } from "../../../src/lib/fields.ts";
import { SUBSCRIBABLE_EVENTS } from "../../../src/outbox/event.ts";
import { disable, HOUR_MS, startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

const world = fixture(startWebhooks);

describe("an update", () => {
  test.each(["POST", "PATCH"])(
    "by %s changes the fields that it names and no others",
    async (method) => {
      const { id } = await world.subscribe();
      const before = await get(id);
      world.clock.advance(5_000);
      const changes = {
        label: "New",
        webhook_url: "http://127.0.0.1:3699/new",
        delivery_kind: "immediate",
        events: ["review_flagged"],
        payload_mode: "minimal",
        suppress_native_notifications: true,
        ordering: "review",
        standard_webhooks: true,
        sequence_headers: true,
        batch_interval_hours: null,
      };
      const { status, body } = await update(id, changes, method);
      expect(status).toBe(200);
      const updated_at = world.clock.now().toISOString().replace("Z", "+00:00");
      expect(body).toEqual({ ...before, ...changes, updated_at });
      expect(await get(id)).toEqual(body);
      expect(world.wakes).toEqual([id]);
    },
  );

  test("that changes nothing returns the subscription and is not recorded", async () => {
    const { id } = await world.subscribe({ events: ["review_flagged"] });
    const before = await get(id);
    world.clock.advance(1_000);
    const rows = (await world.audit("WEBHOOK_UPDATED")).length;
    for (const body of [{}, { label: "Test", delivery_kind: "immediate" }]) {
      const answer = await update(id, body);
      expect([answer.status, answer.body]).toEqual([200, before]);
    }
    expect(await world.audit("WEBHOOK_UPDATED")).toHaveLength(rows);
    expect(world.wakes).toEqual([]);
  });

  test("leaves an audit row that names the fields", async () => {
    const { id } = await world.subscribe();
    await update(id, { label: "Audited", ordering: "review" });
    expect((await world.audit("WEBHOOK_UPDATED")).at(-1)).toEqual({
      details: {
        subscription_id: id,
        fields: ["label", "ordering"],
        changes: {
          label: { from: "Test", to: "Audited" },
          ordering: { from: "subscription", to: "review" },
        },
      },
      actor: world.tenants.partners[0].owner.id,
    });
  });

  const sealed = async (id: string) => {
    const [row] = await world.database.db.sql<{ names: string[]; sealed: string | null }[]>`
      select header_names as names, sealed_headers as sealed from webhook_subscriptions where id = ${id}`;
    return row;
  };

  test("replaces all headers, keeps them where it has none, and audits their names alone", async () => {
    const { id } = await world.subscribe({ headers: { "X-Old": "hush-hush-1", "X-Key": "k" } });
    const headers = { "X-Key": "hush-hush-2" };
    world.wakes.length = 0;
    expect((await update(id, { headers })).body["header_names"]).toEqual(["X-Key"]);
    expect(world.wakes).toEqual([id]);
    expect((await world.audit("WEBHOOK_UPDATED")).at(-1)).toMatchObject({
      details: {
        fields: ["headers"],
        changes: { header_names: { from: ["X-Old", "X-Key"], to: ["X-Key"] } },
      },
    });
    const before = await sealed(id);
    expect((await update(id, { label: "Other" })).body["header_names"]).toEqual(["X-Key"]);
    expect(await sealed(id)).toEqual(before);

    expect((await update(id, { headers })).status).toBe(200);
    expect((await world.audit("WEBHOOK_UPDATED")).at(-1)).toMatchObject({
      details: { fields: ["headers"], changes: {} },
    });
    expect((await sealed(id))?.sealed).not.toBe(before?.sealed);
    expect(JSON.stringify(await world.audit("WEBHOOK_UPDATED"))).not.toContain("hush-hush");
  });

  test.each([null, {}])(
    "with headers of %j removes them, and a second time changes nothing",
    async (headers) => {
      const { id } = await world.subscribe({ headers: { "X-Key": "k" } });
      expect((await update(id, { headers })).body["header_names"]).toEqual([]);
      expect(await sealed(id)).toEqual({ names: [], sealed: null });
      const rows = (await world.audit("WEBHOOK_UPDATED")).length;
      expect((await update(id, { headers })).status).toBe(200);
      expect(await world.audit("WEBHOOK_UPDATED")).toHaveLength(rows);
    },
  );

  test("of the URL needs the headers again, so that their values go to no other endpoint", async () => {
    const { id } = await world.subscribe({ headers: { "X-Key": "k" } });
    const before = await sealed(id);
    const webhook_url = "http://127.0.0.1:3699/elsewhere";
    const refused = await update(id, { webhook_url, label: "" });
    expect([refused.status, Object.keys(fieldsOf(refused.body["errors"])).toSorted()]).toEqual([
      422,
      ["headers", "label"],
    ]);
    expect([await sealed(id), (await get(id))["label"]]).toEqual([before, "Test"]);
    const { webhook_url: present } = await get(id);
    expect((await update(id, { webhook_url: present })).status).toBe(200);
    expect((await update(id, { webhook_url, headers: { "X-Key": "k" } })).status).toBe(200);
    expect((await update(id, { webhook_url: present, headers: null })).status).toBe(200);
    expect((await update(id, { webhook_url })).status).toBe(200);
  });

  test("of the URL, or a delete, by a process of version 0.1.0 removes the headers", async () => {
    const { sql } = world.database.db;
    const gone = { names: [], sealed: null };
    const { id } = await world.subscribe({ headers: { "X-Key": "k" } });
    const before = await sealed(id);
    // It writes all settings that it knows, changed or not.
    await sql`update webhook_subscriptions set webhook_url = webhook_url, label = 'L' where id = ${id}`;
    expect(await sealed(id)).toEqual(before);
    await sql`update webhook_subscriptions set webhook_url = 'http://127.0.0.1:3699/elsewhere' where id = ${id}`;
    expect(await sealed(id)).toEqual(gone);
    const other = await world.subscribe({ headers: { "X-Key": "k" } });
    await disable(world, other.id);
    expect((await sealed(other.id))?.names).toEqual(["X-Key"]);
    await sql`
      update webhook_subscriptions set state = 'deleted', deleted_at = now() where id = ${other.id}`;
    expect(await sealed(other.id)).toEqual(gone);
  });

  test("is not needed to remove headers: a delete does", async () => {
    const { id } = await world.subscribe({ headers: { "X-Key": "k" } });
    await world.ask("DELETE", `/${id}`);
    expect(await sealed(id)).toEqual({ names: [], sealed: null });
  });

  test("of a disabled subscription is accepted and does not enable it", async () => {
    const { id } = await world.subscribe();
    await disable(world, id);
    const { status, body } = await update(id, { label: "Mended" });
    expect([status, body["is_active"], body["label"]]).toEqual([200, false, "Mended"]);
  });

  test("by two concurrent requests applies both", async () => {
    const { id } = await world.subscribe();
    await Promise.all([update(id, { label: "A" }), update(id, { ordering: "review" })]);
    expect(await get(id)).toMatchObject({ label: "A", ordering: "review" });
  });
});

describe("an update is rejected", () => {
  test("with all invalid fields named at once", async () => {
    const { id } = await world.subscribe();
    const { status, body } = await update(id, {
      label: "",
      webhook_url: "http://10.0.0.1/",
      delivery_kind: "batch",
      batch_interval_hours: 12,
      events: [],
      payload_mode: "tiny",
      suppress_native_notifications: "no",
      ordering: "none",
      standard_webhooks: 1,
      sequence_headers: null,
      headers: ["X-Key"],
      is_active: true,
      delivery_tier_override: "gold",
    });
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {}).toSorted()).toEqual([
      "batch_interval_hours",
      "delivery_kind",
      "delivery_tier_override",
      "events",
      "headers",
      "is_active",
      "label",
      "ordering",
      "payload_mode",
      "sequence_headers",
      "standard_webhooks",
      "suppress_native_notifications",
      "webhook_url",
    ]);
  });

  test("for read-only fields, which it names, so that a whole object cannot be sent back", async () => {
    const { id } = await world.subscribe();
    const { status, body } = await update(id, await get(id));
    expect(status).toBe(422);
    expect(Object.entries(fieldsOf(body["errors"]))).toEqual(
      [
        "id",
        "header_names",
        "is_active",
        "consecutive_failure_count",
        "disabled_at",
        "disabled_reason",
        "disabled_note",
        "pending_test_event_id",
        "last_batch_dispatched_at",
        "next_batch_at",
        "secret_fingerprint",
        "previous_secret_expires_at",
        "created_at",
        "updated_at",
        "deleted_at",
      ].map((field) => [field, ["is read-only"]]),
    );
  });

  test("for null where a value must be, and for the test in the filter", async () => {
    const { id } = await world.subscribe();
    const cases: Readonly<Record<string, unknown>> = {
      label: null,
      webhook_url: null,
      payload_mode: null,
      delivery_kind: null,
      events: ["webhook.test"],
    };
    for (const [field, value] of Object.entries(cases)) {
      const { status, body } = await update(id, { [field]: value });
      expect([status, Object.keys(body["errors"] ?? {})]).toEqual([422, [field]]);
    }
  });
});

describe("an update of a batch subscription", () => {
  test("accepts the fixed settings without a change, and stores the filter", async () => {
    const { id } = await world.subscribe(batch);
    const { status, body } = await update(id, {
      payload_mode: "minimal",
      suppress_native_notifications: true,
      ordering: "review",
      events: [...SUBSCRIBABLE_EVENTS],
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      payload_mode: "full",
      suppress_native_notifications: false,
      ordering: "subscription",
      events: [...SUBSCRIBABLE_EVENTS],
    });
  });

  const nextIn = async (id: string) =>
    (new Date(String((await get(id))["next_batch_at"])).getTime() - world.clock.now().getTime()) /
    HOUR_MS;

  test("counts a new interval from the last due time", async () => {
    const { id } = await world.subscribe(batch);
    world.clock.advance(3 * HOUR_MS);
    await update(id, { batch_interval_hours: 4 });
    expect(await nextIn(id)).toBe(1);
    await update(id, { batch_interval_hours: 24 });
    expect(await nextIn(id)).toBe(21);
  });
});

const get = async (id: string) => (await world.ask("GET", `/${id}`)).body;

const update = (id: string, body: unknown, method = "POST") =>
  world.ask(method, `/${id}`, { body });

const batch = { delivery_kind: "batch", batch_interval_hours: 12 };
