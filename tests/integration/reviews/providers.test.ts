import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";

import type { Wake } from "../../../src/outbox/schedule.ts";
import { startApi, type TestApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import {
  addProvider,
  connectStore,
  created,
  historyOfSite,
  providerEvent,
  queuedFor,
  report,
  reportedReview,
  reviewIdOf,
  send,
  type TestProvider,
} from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, type TestAccount } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

describe("the signature", () => {
  const path = () => `/providers/${google.slug}/events`;
  const sign = (raw: string, secret = google.secret) =>
    `sha256=${createHmac("sha256", secret).update(raw).digest("hex")}`;
  const post = (raw: string, signature: string | undefined, to = path()) =>
    api.call("POST", to, {
      body: raw,
      headers: signature === undefined ? {} : { "X-Provider-Signature": signature },
    });

  test("covers the raw bytes", async () => {
    const raw = ` {"events": [${JSON.stringify(created(site, "s1"))}]}\n`;
    expect((await post(raw, sign(raw.trim()))).status).toBe(401);
    expect((await post(raw, sign(raw))).status).toBe(200);
  });

  test("of a replayed request with a recent timestamp is accepted, and its events stay duplicates", async () => {
    const raw = JSON.stringify({ events: [created(site, "replayed")] });
    const timestamp = String(Math.floor(clock.now().getTime() / 1000));
    const headers = {
      "X-Provider-Signature": sign(`${timestamp}.${raw}`),
      "X-Provider-Timestamp": timestamp,
    };
    const answers = [
      await api.call("POST", path(), { body: raw, headers }),
      await api.call("POST", path(), { body: raw, headers }),
    ];
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, { accepted: 1, duplicates: 0 }],
      [200, { accepted: 0, duplicates: 1 }],
    ]);
  });

  test("that is missing, wrong, from another provider or for an unknown provider gives the same 401", async () => {
    const raw = JSON.stringify({ events: [created(site, "s2")] });
    const before = await counts();
    const answers = [
      await post(raw, undefined),
      await post(raw, "sha256=00"),
      await post(raw, sign(raw).slice("sha256=".length)),
      await post(raw, sign(raw, yelp.secret)),
      await post(raw, sign(raw), "/providers/nobody/events"),
      await post(raw, sign(raw), "/providers/%00/events"),
    ];
    for (const { status, body } of answers)
      expect([status, body["code"], body["message"]]).toEqual([
        401,
        "invalid_signature",
        "The signature does not match the request body.",
      ]);
    expect(await counts()).toEqual(before);
  });

  test("is checked after the size and before the content type, the syntax and the fields", async () => {
    const tooLarge = " ".repeat(1024 * 1024 + 1);
    expect((await post(tooLarge, undefined)).status).toBe(413);
    expect((await post(tooLarge.slice(1), undefined)).status).toBe(401);
    expect((await post("{", undefined)).status).toBe(401);
    expect((await post("{", sign("{"))).status).toBe(400);
    expect((await post("[]", sign("[]"))).status).toBe(422);
    const headers = { "X-Provider-Signature": sign("{}"), "Content-Type": "text/plain" };
    expect((await api.call("POST", path(), { body: "{}", headers })).status).toBe(415);
  });
});

describe("a request", () => {
  test("of 500 events is accepted and one of 501 or 0 is rejected", async () => {
    const events = Array.from({ length: 501 }, (_, i) => created(site, `many-${i}`));
    expect((await send(api, google, { events })).status).toBe(422);
    expect((await send(api, google, { events: [] })).status).toBe(422);
    expect(await report(api, google, events.slice(1))).toEqual({ accepted: 500, duplicates: 0 });
    expect(await names()).toHaveLength(500);
  });

  test("with one invalid event of many writes nothing and reports every bad field", async () => {
    const before = await counts();
    const { status, body } = await send(api, google, {
      events: [
        created(site, "b1"),
        created(site, "b2", { rate: 6, reviewer: "" }),
        { ...created(site, "b3"), id: "", extra: 1 },
        { ...created(site, "b4"), type: "review.liked" },
        "no event",
        providerEvent("connection.changed", site, { axis: "pull", connected: false }),
      ],
    });
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {}).toSorted()).toEqual([
      "events.1.review.rate",
      "events.1.review.reviewer",
      "events.2.extra",
      "events.2.id",
      "events.3.type",
      "events.4",
      "events.5.error_code",
    ]);
    expect(await counts()).toEqual(before);
  });

  test("with unknown references writes nothing and reports every one of them", async () => {
    const other = await connectStore(database.db, account, { provider: yelp, store: 1 });
    const before = await counts();
    const { status, body } = await send(api, google, {
      events: [
        created(site, "r1"),
        created(999_999, "r2"),
        created(other, "r3"),
        updated("unknown"),
        removed("unknown"),
        posted("unknown"),
        failed("unknown"),
      ],
    });
    expect(status).toBe(422);
    expect(Object.keys(body["errors"] ?? {}).toSorted()).toEqual([
      "events.1.store_review_site_id",
      "events.2.store_review_site_id",
      "events.3.review.external_review_id",
      "events.4.review.external_review_id",
      "events.5.external_review_id",
      "events.6.external_review_id",
    ]);
    expect(await counts()).toEqual(before);
  });

  test("repeated is answered as duplicates and changes nothing", async () => {
    const events = [created(site, "d1"), connection("pull", "E-002")];
    expect(await report(api, google, events)).toEqual({ accepted: 2, duplicates: 0 });
    await report(api, google, [connection("pull", null)]);
    expect(await report(api, google, [...events, created(site, "d2")])).toEqual({
      accepted: 1,
      duplicates: 2,
    });
    expect(await names()).toEqual([
      "review_received",
      "review_pull_disconnected",
      "review_pull_connected",
      "review_received",
    ]);
  });
});

describe("reviews", () => {
  test("that are new are recorded with their facts, the provider and its time", async () => {
    await report(api, google, [created(site, "n1", { reviewer_email: "ada@mail.test" })]);
    const [row, ...rest] = await historyOfSite(database.db, site);
    expect(rest).toEqual([]);
    const id = await reviewIdOf(database.db, "n1");
    expect(row).toMatchObject({
      event: "review_received",
      reviewId: id,
      actor: { type: "system", id: null, name: google.slug },
      review: {
        id,
        external_review_id: "n1",
        store_id: account.storeIds[0],
        review_site_id: google.id,
        source_platform: google.slug,
        rate: 4,
        reviewer: "Ada Reviewer",
      },
      site: null,
      metadata: {
        content: "Friendly people, clean work.",
        reviewed_at: "2026-06-01T11:00:00.000+00:00",
      },
      occurredAt: new Date("2026-06-01T12:00:00Z"),
    });
    expect(JSON.stringify(row)).not.toContain("ada@mail.test");
  });

  test("that changed record the changed fields; an identical report records nothing", async () => {
    await report(api, google, [created(site, "u1")]);
    await report(api, google, [updated("u1", { rate: 1, content: "Worse." })]);
    await report(api, google, [updated("u1", { rate: 1, content: "Worse." })]);
    expect(await names()).toEqual(["review_received", "review_updated"]);
    const row = (await historyOfSite(database.db, site))[1];
    expect(row?.metadata).toEqual({
      changed: ["rate", "content"],
      content: "Worse.",
      reviewed_at: "2026-06-01T11:00:00.000+00:00",
      restored: false,
    });
    expect(row?.review).toMatchObject({ rate: 1 });
  });

  test("with profanity are announced once per change that adds some", async () => {
    await report(api, google, [created(site, "p", { content: "What a shit job" })]);
    await report(api, google, [updated("p", { content: "What a shit job, really" })]);
    await report(api, google, [updated("p", { content: "Shit. C'est de la merde!" })]);
    await report(api, google, [updated("p", { content: "All good now" })]);
    const found = (await historyOfSite(database.db, site)).map(({ event, metadata }) =>
      event === "profanity_detected" ? metadata["words"] : event,
    );
    expect(found).toEqual([
      "review_received",
      ["shit"],
      "review_updated",
      "review_updated",
      ["merde"],
      "review_updated",
    ]);
  });
});

describe("responses", () => {
  test("posted announce the posting and the notice to the homeowner, in this order", async () => {
    await report(api, google, [created(site, "a", { reviewer_email: "ada@mail.test" })]);
    await report(api, google, [posted("a")]);
    expect([wakes, mailWakes]).toEqual([[], 1]);
    const [, posting, notice] = await historyOfSite(database.db, site);
    expect(posting).toMatchObject({
      event: "response_post_succeeded",
      review: null,
      reviewId: await reviewIdOf(database.db, "a"),
      site: {
        store: { id: account.storeIds[0] },
        review_site: {
          store_review_site_id: site,
          review_site_id: google.id,
          name: google.name,
          connection_status: "connected",
          disconnect_reason: null,
        },
        axis: "post",
        error_code: null,
        reason: null,
      },
    });
    expect(notice).toMatchObject({
      event: "homeowner_notified_of_response",
      metadata: { native_email: "queued" },
      site: null,
    });
    expect(JSON.stringify([posting, notice])).not.toContain("ada@mail.test");
  });

  test("are announced each time they are reported as posted", async () => {
    await report(api, google, [created(site, "a"), posted("a")]);
    await report(api, google, [posted("a")]);
    expect((await names()).filter((name) => name === "response_post_succeeded")).toHaveLength(2);
  });

  test.each(["E-999", "constructor", "x".repeat(64)])(
    "that failed with the unknown code %p are stored with the reason Unknown",
    async (code) => {
      await report(api, google, [created(site, "f"), failed("f", code)]);
      const row = (await historyOfSite(database.db, site))[1];
      expect(row?.site).toMatchObject({ error_code: code, reason: "Unknown" });
    },
  );

  test("that failed carry the code and its reason; the axis keeps its own state", async () => {
    await report(api, google, [created(site, "f"), failed("f", "E-012")]);
    const row = (await historyOfSite(database.db, site))[1];
    expect(row?.event).toBe("response_post_failed");
    expect(row?.site).toMatchObject({
      axis: "post",
      error_code: "E-012",
      reason: expect.stringContaining("content rules"),
      review_site: { connection_status: "connected", disconnect_reason: null },
    });
  });
});

describe("connections", () => {
  test("are announced only when an axis connects or disconnects, each axis separately", async () => {
    await report(api, google, [
      connection("pull", null),
      connection("pull", "E-002"),
      connection("pull", "E-002"),
      connection("post", "E-007"),
      connection("pull", null),
      connection("post", null),
    ]);
    expect(await names()).toEqual([
      "review_pull_disconnected",
      "response_post_disconnected",
      "review_pull_connected",
      "response_post_connected",
    ]);
    const [lost, , back] = await historyOfSite(database.db, site);
    expect(lost?.site).toMatchObject({
      axis: "pull",
      error_code: "E-002",
      reason: expect.stringContaining("expired"),
      review_site: { connection_status: "disconnected", disconnect_reason: "E-002" },
    });
    expect(back?.site).toMatchObject({
      error_code: null,
      reason: null,
      review_site: { connection_status: "connected", disconnect_reason: null },
    });
    expect(lost).toMatchObject({ review: null, reviewId: null });
  });

  test("that race on both axes alternate on each", async () => {
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        report(api, google, [
          connection(i % 2 === 0 ? "pull" : "post", i % 4 < 2 ? "E-002" : null),
        ]),
      ),
    );
    for (const axis of ["pull", "post"]) {
      const rows = (await historyOfSite(database.db, site)).filter(
        (row) => row.site?.["axis"] === axis,
      );
      const sides = rows.map((row) => row.event.endsWith("_disconnected"));
      expect(sides).toEqual(sides.map((_, i) => i % 2 === 0));
      // The last report determines the state.
      const [row] = await database.db.sql`
        select pull_connected as pull, post_connected as post from store_review_sites where id = ${site}`;
      expect(row?.[axis]).toBe(!(sides.at(-1) ?? false));
    }
  });
});

describe("the outbox", () => {
  test("gets the events of the filter, in the order of the request, and wakes the dispatcher", async () => {
    const id = await subscribe({ events: ["review_received", "review_removed"] });
    await report(api, google, [created(site, "w"), updated("w", { rate: 1 }), removed("w")]);
    const queued = await queuedFor(database.db, id);
    expect(queued.map(({ sequence, event }) => [sequence, event])).toEqual([
      [1, "review_received"],
      [2, "review_removed"],
    ]);
    expect(wakes.map(({ subscriptionId }) => subscriptionId)).toEqual([id]);
  });
});

let api: TestApi;
let google: TestProvider;
const clock = createFakeClock();

let yelp: TestProvider;

let account: TestAccount;

let token: string;

let site = 0;

let slugs = 0;

const wakes: Wake[] = [];

let mailWakes = 0;

beforeAll(async () => {
  const { partners } = await addTenants(database.db);
  [account] = partners[0].accounts;
  const schedule = {
    wake: (some: readonly Wake[]) => void wakes.push(...some),
    wakeMailer: () => void mailWakes++,
  };
  api = await startApi({ db: database.db, clock, schedule });
  token = await api.login(partners[0].admin.email);
  yelp = await addProvider(database.db, api.deps.box, "yelp");
});

afterAll(async () => {
  await api.stop();
});

// Every test has its own provider and site.
beforeEach(async () => {
  google = await addProvider(database.db, api.deps.box, `google-${++slugs}`);
  site = await connectStore(database.db, account, { provider: google });
  wakes.length = 0;
  mailWakes = 0;
});

const names = async (id = site) => (await historyOfSite(database.db, id)).map((row) => row.event);

const updated = (id: string, fields = {}) =>
  providerEvent("review.updated", site, { review: reportedReview(id, fields) });

const removed = (id: string) =>
  providerEvent("review.removed", site, { review: { external_review_id: id } });

const posted = (id: string) => providerEvent("response.posted", site, { external_review_id: id });

const failed = (id: string, error_code = "E-012") =>
  providerEvent("response.failed", site, { external_review_id: id, error_code });

const connection = (axis: "pull" | "post", error_code: string | null) =>
  providerEvent("connection.changed", site, { axis, connected: error_code === null, error_code });

async function subscribe(fields: Record<string, unknown> = {}): Promise<string> {
  const { sql } = database.db;
  await sql`delete from outbox`;
  await sql`delete from outbox_offsets`;
  await sql`delete from outbox_sequences`;
  await sql`delete from webhook_subscriptions`;
  const body = {
    label: "L",
    webhook_url: "http://127.0.0.1:3699/",
    delivery_kind: "immediate",
    ...fields,
  };
  return String((await api.call("POST", "/partner/webhooks", { token, body })).body["id"]);
}

async function counts(): Promise<{ events: number; reviews: number; history: number }> {
  const [row] = await database.db.sql<{ events: number; reviews: number; history: number }[]>`
    select (select count(*)::int from provider_events) as events, (select count(*)::int from reviews) as reviews,
           (select count(*)::int from review_history) as history`;
  return row ?? { events: -1, reviews: -1, history: -1 };
}
