import { describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { CATALOG, type PayloadMode, type RecordedAction } from "../../../src/outbox/event.ts";
import { digestOf } from "../../../src/outbox/payload-format.ts";
import { attemptsOfEvent } from "../../../src/webhooks/queries/attempts.ts";
import { addAttempt } from "../../support/attempts.ts";
import { forceHistory } from "../../support/history.ts";
import { insertTenant, record, reviewAction, type Tenant } from "../../support/outbox.ts";
import { ExactReceiver } from "../../support/network/exact-receiver.ts";
import { until } from "../../support/network/receiver.ts";
import { webhookDeliveries } from "../../support/deliveries.ts";
import { fixture } from "../../support/fixture.ts";

// An attempt stores neither body nor headers (contract 7.13). These tests compare the request that the API shows with
// the bytes that the receiver got.

const { stores, world, ending, ...given } = webhookDeliveries();
const tenant: Tenant = fixture(async () => ({
  ...(await insertTenant(world.database.db)),
  partnerId: world.tenants.partners[0].id,
}));

describe.each(["full", "minimal"] as const)("in %s mode", (mode: PayloadMode) => {
  test("an attempt of each event shows the exact bytes that were received: first attempt, retry, redelivery and rotation", async () => {
    const { id } = await start({ payload_mode: mode });
    receiver.answer = (_, before) => (before === 0 ? 500 : 200);
    const eventIds = await emit();
    const settled = async (attempts: number) => (await list(id)).length === attempts;
    await until("each event twice", () => settled(2 * EVENTS.length));
    await world.ask("POST", `/${id}/rotate-secret`, { body: { grace_period_hours: 1 } });
    for (const one of eventIds) {
      const { status } = await world.ask("POST", `/${id}/deliveries/${one}/redeliver`);
      expect(status).toBe(202);
    }
    await until("each event once more", () => settled(3 * EVENTS.length));
    const shown = await showsWhatCame(id);
    expect(new Set(shown.map(({ round, attempt }) => `${round}.${attempt}`))).toEqual(
      new Set(["1.1", "1.2", "2.1"]),
    );
    const inGrace = shown.filter(
      ({ request_headers: headers }) => headers?.["X-SVC-Signature-Previous"] !== undefined,
    );
    expect(inGrace).toHaveLength(EVENTS.length);
    const [kept] = await world.database.db.sql<{ count: number }[]>`
      select count(*) from delivery_attempts
       where subscription_id = ${id} and (request_headers is not null or request_body is not null)`;
    expect(kept?.count).toBe(0);
  });

  test("an attempt of a test event shows the exact bytes that were received", async () => {
    const { id } = await start({ payload_mode: mode });
    await world.ask("POST", `/${id}/test`);
    await until("the test", async () => (await list(id)).length === 1);
    await showsWhatCame(id);
  });
});

describe("headers of one's own", () => {
  const headers = { "X-Api-Key": "hush-hush-1", "x-TENANT": "a \t b", __proto: "p" };
  /** Replaces the values of the headers in a request by the placeholder. */
  const hidden = (request: string) =>
    Object.entries(headers).reduce(
      (text, [name, value]) => text.replace(`${name}: ${value}\r\n`, `${name}: (hidden)\r\n`),
      request,
    );

  test("are sent with each attempt, and shown by the names of then after every change", async () => {
    const { id } = await start({ headers, standard_webhooks: true });
    receiver.answer = (_, before) => (before === 0 ? 500 : 200);
    const [first = ""] = await emit();
    await until("each event twice", async () => (await list(id)).length === 2 * EVENTS.length);
    await world.ask("POST", `/${id}/test`);
    await until("the test", async () => (await list(id)).length === 2 * EVENTS.length + 2);
    const carried = receiver.requests.map(hidden);
    const tail = "x-TENANT: (hidden)\r\n__proto: (hidden)\r\nContent-Length: ";
    for (const request of carried) expect(request).toContain(`X-Api-Key: (hidden)\r\n${tail}`);
    const shown = async () => (await list(id)).map(onTheLine).toSorted();
    expect(await shown()).toEqual(carried.toSorted());

    await world.ask("POST", `/${id}`, { body: { headers: { "X-Later": "hush-hush-2" } } });
    expect(await shown()).toEqual(carried.toSorted());
    receiver.requests.length = 0;
    await world.ask("POST", `/${id}/deliveries/${first}/redeliver`);
    await until("the redelivery", async () => receiver.requests.length > 1);
    for (const request of receiver.requests) {
      expect(request).toContain("X-Later: hush-hush-2\r\n");
      expect(request).not.toContain("X-Api-Key");
    }

    await world.ask("POST", `/${id}`, { body: { headers: null } });
    await until("the records", async () => (await list(id)).length === 2 * EVENTS.length + 4);
    const later = (await list(id)).filter((one) => one.request_headers?.["X-Later"] !== undefined);
    expect(later.map((one) => one.request_headers?.["X-Later"])).toEqual(["(hidden)", "(hidden)"]);
    const { sql } = world.database.db;
    const rows = await sql`select a::text as row from delivery_attempts a union all
                           select s::text from webhook_subscriptions s`;
    expect(JSON.stringify(rows)).not.toContain("hush-hush");
  });
});

describe("a ping", () => {
  test("of every event leads to its row of the history, and names the review that the event is about", async () => {
    const { id } = await start({ payload_mode: "minimal" });
    await emit();
    await until("all of them", async () => (await list(id)).length === EVENTS.length);
    for (const { request_body: body } of await list(id)) {
      const ping = JSON.parse(body ?? "") as Ping;
      const after = ping.review_history_id - 1;
      const page = await world.api.call("GET", `/partner/review-history?limit=1&after=${after}`, {
        token: world.tokens.owner,
      });
      const [row] = page.body["data"] as Row[];
      const named = {
        event_id: ping.event_id,
        event: ping.event,
        review_id: ping.review?.id ?? null,
      };
      expect(row).toMatchObject(named);
      const { category } = EVENTS.find(({ value }) => value === ping.event) ?? {};
      expect([ping.event, ping.review === undefined]).toEqual([
        ping.event,
        category === "connection",
      ]);
      const fields = ["store", "review_site", "axis", "error_code", "reason"];
      expect(Object.keys(row?.site ?? {})).toEqual("axis" in ping ? fields : []);
    }
  });

  test("that was sent in an earlier payload format is shown with the bytes of then", async () => {
    const { id } = await start({ payload_mode: "minimal" });
    const eventIds = await emit();
    await until("all of them", async () => (await list(id)).length === EVENTS.length);
    const event = "response_post_succeeded";
    const eventId = eventIds[EVENTS.findIndex(({ value }) => value === event)] ?? "";
    const shown = async () => (await list(id)).find((one) => one.event_id === eventId);
    const now = (await shown())?.request_body ?? "";
    const before = now.replace(/"review":\{"id":\d+\},/, "");
    expect(before).not.toBe(now);
    await world.database.db.sql`
      update delivery_attempts set payload_format = 2, body_digest = decode(${digestOf(before)}, 'hex')
       where event_id = ${eventId}`;
    expect((await shown())?.request_body).toBe(before);
  });
});

describe("an attempt whose bytes cannot be proved", () => {
  test("shows null, and no other bytes", async () => {
    const { id } = await start();
    const eventIds = await emit();
    await until("all of them", async () => (await list(id)).length === EVENTS.length);
    const [digest, format, metadata, actor, gone, whole] = eventIds;
    await world.database.db.sql`
      update delivery_attempts set body_digest = set_byte(body_digest, 0, get_byte(body_digest, 0) # 1)
       where event_id = ${digest ?? ""}`;
    await world.database.db.sql`
      update delivery_attempts set payload_format = 99 where event_id = ${format ?? ""}`;
    await forceHistory(world.database.db, async (sql) => {
      await sql`update review_history set metadata = '{"other":1}' where event_id = ${metadata ?? ""}`;
      // The same JSON value in other bytes.
      await sql`update review_history set actor = (actor::text || ' ')::json where event_id = ${actor ?? ""}`;
      await sql`delete from review_history where event_id = ${gone ?? ""}`;
    });
    const shown = new Map((await list(id)).map((one) => [one.event_id, one]));
    for (const one of [digest, format, metadata, actor, gone])
      expect(shown.get(one ?? "")).toMatchObject({ request_headers: null, request_body: null });
    const proved = [...shown.values()].filter(({ request_body: body }) => body !== null);
    expect(proved).toHaveLength(EVENTS.length - 5);
    expect(receiver.requests).toContain(onTheLine(shown.get(whole ?? "") as Shown));
    const { body } = await world.ask("GET", `/${id}/deliveries/${digest}`);
    expect(body["attempts"]).toMatchObject([{ request_headers: null, request_body: null }]);
  });
});

test("a history row cannot be updated", async () => {
  await record(world.database.db, [reviewAction(tenant)]);
  const changing = world.database.db.sql`update review_history set metadata = '{}'`;
  const failure: unknown = await changing.catch((error: unknown) => error);
  expect(String(failure)).toContain("rows of review_history never change");
});

test("a review and its connection cannot be deleted", async () => {
  const { sql } = world.database.db;
  const [row] = await sql<{ id: number; siteId: number }[]>`
    select id, store_review_site_id as "siteId" from reviews limit 1`;
  for (const [removal, reason] of [
    [
      sql`delete from reviews where id = ${row?.id ?? 0}`,
      "rows of reviews are deleted only with their account or partner",
    ],
    [sql`delete from store_review_sites where id = ${row?.siteId ?? 0}`, "has reported events"],
  ] as const) {
    const failure: unknown = await removal.catch((error: unknown) => error);
    expect(String(failure)).toContain(reason);
  }
});

test("an attempt from an older version, which stored its request, shows the stored bytes", async () => {
  const { db } = world.database;
  const headers = { Host: "old.example", "X-SVC-Attempt": "1", "Content-Length": "9" };
  const eventId = ulid();
  await addAttempt(db, "S", {
    event_id: eventId,
    request_headers: JSON.stringify(headers),
    request_body: '{"a": 1} ',
  });
  expect(await attemptsOfEvent(db, "S", eventId, 10)).toMatchObject([
    { requestHeaders: headers, requestBody: '{"a": 1} ' },
  ]);
});

interface Shown {
  readonly id: string;
  readonly event_id: string;
  readonly attempt: number;
  readonly round: number;
  readonly request_headers: Readonly<Record<string, string>> | null;
  readonly request_body: string | null;
}

interface Ping {
  readonly event: string;
  readonly event_id: string;
  readonly review?: { readonly id: number };
  readonly review_history_id: number;
}

interface Row {
  readonly site: Readonly<Record<string, unknown>> | null;
}

const EVENTS = CATALOG.filter(({ subscribable }) => subscribable);

let receiver: ExactReceiver;

async function start(fields: Readonly<Record<string, unknown>> = {}) {
  receiver = ending(await ExactReceiver.start());
  given.dispatcher({ retryDelaysMs: [10, 10, 10] });
  return world.subscribe({ webhook_url: receiver.url, ...fields });
}

/** Makes an action of each kind, with text that wrong escaping or encoding would change. */
function actionOf({ value, envelope, category }: (typeof EVENTS)[number]): RecordedAction {
  const event = value as RecordedAction["event"];
  const odd = {
    event,
    metadata: { text: 'Zoë "Z" 🦊 \\u0000 \u2028 \t 1.10', deep: { n: [1e21, null] } },
  };
  const site = {
    store: { id: tenant.storeId },
    review_site: {
      store_review_site_id: tenant.storeReviewSiteId,
      review_site_id: tenant.reviewSiteId,
      name: "Näme",
      connection_status: "disconnected",
      disconnect_reason: "E-002",
    },
    axis: value.startsWith("review_pull") ? "pull" : "post",
    error_code: "E-002",
    reason: "The sign-in has expired: „neu“.",
  } as const;
  if (envelope === "review") return reviewAction(tenant, odd);
  const action = reviewAction(tenant, { ...odd, about: { site } });
  return category === "posting" ? action : { ...action, reviewId: null };
}

async function emit(): Promise<string[]> {
  const actions = EVENTS.map(actionOf);
  await stores.schedule.wake(await record(world.database.db, actions));
  return actions.map(({ eventId }) => eventId);
}

async function list(id: string): Promise<Shown[]> {
  const { body } = await world.ask("GET", `/${id}/deliveries?limit=100`);
  return body["data"] as Shown[];
}

/** Renders a shown request as the bytes that are sent. */
function onTheLine({ request_headers: headers, request_body: body }: Shown): string {
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /hook HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

const showsWhatCame = async (id: string) => {
  const shown = await list(id);
  expect(shown.map(onTheLine).toSorted()).toEqual(receiver.requests.toSorted());
  return shown;
};
