import { beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";

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
import { fixture, lazy } from "../../support/fixture.ts";
import { startWebhooks } from "../../support/webhooks.ts";

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

  test("that is missing, wrong, from another provider or for an unknown provider gives the same 401", async () => {
    const raw = JSON.stringify({ events: [created(site, "s2")] });
    const before = await counts();
    const answers = [
      await post(raw, undefined),
      await post(raw, "sha256=00"),
      await post(raw, sign(raw).slice("sha256=".length)),
      await post(raw, sign(raw, world.provider.secret)),
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

test("a request of 500 events is accepted and one of 501 or 0 is rejected", async () => {
  const events = Array.from({ length: 501 }, (_, i) => created(site, `many-${i}`));
  expect((await send(api, google, { events })).status).toBe(422);
  expect((await send(api, google, { events: [] })).status).toBe(422);
  expect(await report(api, google, events.slice(1))).toEqual({ accepted: 500, duplicates: 0 });
  expect(await names()).toHaveLength(500);
});

describe("reviews", () => {
  test("that are new are recorded with their facts, the provider and its time", async () => {
    await report(api, google, [created(site, "n1", { reviewer_email: "ada@mail.test" })]);
    const [row, ...rest] = await historyOfSite(world.database.db, site);
    expect(rest).toEqual([]);
    const id = await reviewIdOf(world.database.db, "n1");
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
    const row = (await historyOfSite(world.database.db, site))[1];
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
    const found = (await historyOfSite(world.database.db, site)).map(({ event, metadata }) =>
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
    expect(world.wakes).toEqual(["mail"]);
    const [, posting, notice] = await historyOfSite(world.database.db, site);
    expect(posting).toMatchObject({
      event: "response_post_succeeded",
      review: null,
      reviewId: await reviewIdOf(world.database.db, "a"),
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

  test("that failed carry the code and its reason, Unknown for a code that has none; the axis keeps its own state", async () => {
    const codes = ["E-012", "E-999", "constructor"];
    await report(api, google, [created(site, "f"), ...codes.map((code) => failed("f", code))]);
    const [, row, ...others] = await historyOfSite(world.database.db, site);
    expect(others.map((one) => [one.site?.["error_code"], one.site?.["reason"]])).toEqual([
      ["E-999", "Unknown"],
      ["constructor", "Unknown"],
    ]);
    expect(row?.event).toBe("response_post_failed");
    expect(row?.site).toMatchObject({
      axis: "post",
      error_code: "E-012",
      reason: expect.stringContaining("content rules"),
      review_site: { connection_status: "connected", disconnect_reason: null },
    });
  });
});

test("a subscription gets the events of its filter, in the order of the request, and is woken", async () => {
  const { id } = await world.subscribe({ events: ["review_received", "review_removed"] });
  const gone = providerEvent("review.removed", site, { review: { external_review_id: "w" } });
  await report(api, google, [created(site, "w"), updated("w", { rate: 1 }), gone]);
  const queued = await queuedFor(world.database.db, id);
  expect(queued.map(({ sequence, event }) => [sequence, event])).toEqual([
    [1, "review_received"],
    [2, "review_removed"],
  ]);
  expect(world.wakes).toEqual([id]);
});

const world = fixture(startWebhooks);
const api = lazy(() => world.api);
const account = lazy(() => world.tenants.partners[0].accounts[0]);

// Every test has its own provider and site.
let google: TestProvider;
let site = 0;
let slugs = 0;
beforeEach(async () => {
  google = await addProvider(world.database.db, api.deps.box, `google-${++slugs}`);
  site = await connectStore(world.database.db, account, { provider: google });
  world.wakes.length = 0;
});

const names = async () => (await historyOfSite(world.database.db, site)).map((row) => row.event);

const updated = (id: string, fields = {}) =>
  providerEvent("review.updated", site, { review: reportedReview(id, fields) });

const posted = (id: string) => providerEvent("response.posted", site, { external_review_id: id });

const failed = (id: string, error_code: string) =>
  providerEvent("response.failed", site, { external_review_id: id, error_code });

async function counts(): Promise<unknown> {
  const [row] = await world.database.db.sql`
    select (select count(*)::int from provider_events) as events, (select count(*)::int from reviews) as reviews,
           (select count(*)::int from review_history) as history`;
  return row;
}
