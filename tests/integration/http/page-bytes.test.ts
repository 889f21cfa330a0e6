// Pages of lists whose rows may be large (contract 2.4): they end after about 4 MiB of stored text.
import { afterEach, beforeAll, describe, expect, test } from "bun:test";

import { BASE_PATH } from "../../../src/http/access.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { digestOf, payloadFormatOf } from "../../../src/outbox/payload-format.ts";
import { everyPage } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { forceHistory } from "../../support/history.ts";
import { settle, startWebhooks } from "../../support/webhooks.ts";

const world = fixture(startWebhooks);

describe("a list", () => {
  describe.each(LARGE)("%s", (list, token) => {
    const pages = (query: string) =>
      everyPage<Row>(world.api, `${pathOf(list)}?${query}`, world.tokens[token]);

    test("ends a page of large rows early, and the cursor goes on without loss or repetition", async () => {
      await fill(LARGEST);
      const found = await pages("limit=100");
      expect(found.map((page) => page.length)).toEqual([FIT, FIT, ROWS - 2 * FIT]);
      for (const page of found) expect(JSON.stringify(page).length).toBeLessThan(1.5 * PAGE);
      const ids = found.flat().map(({ id }) => id);
      expect(new Set(ids).size).toBe(ROWS);
      expect((await pages("limit=3")).flat().map(({ id }) => id)).toEqual(ids);
    });

    test("ends a page at its limit if the rows of the limit fit", async () => {
      await fill(LARGEST);
      expect((await pages(`limit=${FIT}`)).map((page) => page.length)).toEqual([16, 16, 8]);
      expect((await pages(`limit=${FIT - 1}`)).map((page) => page.length)).toEqual([15, 15, 10]);
      await fill(1);
      expect((await pages("limit=100")).map((page) => page.length)).toEqual([ROWS]);
      expect((await pages(`limit=${ROWS}`)).map((page) => page.length)).toEqual([ROWS]);
    });

    test("has one row of more than a page in each page", async () => {
      await fill(OVER_PAGE, 3);
      const found = await pages("limit=100");
      expect(found.flat()).toHaveLength(ROWS);
      expect(found.filter((page) => JSON.stringify(page).length > PAGE)).toHaveLength(3);
      for (const page of found) expect(JSON.stringify(page).length).toBeLessThan(1.5 * OVER_PAGE);
    });
  });
});

describe("a page of attempts", () => {
  afterEach(async () => {
    await world.database.db.sql`delete from delivery_attempts where id like '%ZZZZ___'`;
  });

  test("ends early although one event has all attempts, and so does its delivery", async () => {
    await fill(LARGEST, 1);
    const eventId = await copyAttempt(1, { count: 60 });
    const found = await attempts(`limit=100&event_id=${eventId}`);
    expect(found.map((page) => page.length)).toEqual([FIT, FIT, FIT, 61 - 3 * FIT]);
    expect(found.flat().every((one) => (one.request_body?.length ?? 0) > LARGEST)).toBe(true);
    const { body } = await world.ask("GET", `/${known.id}/deliveries/${eventId}`);
    const newest = found.flat().slice(0, FIT);
    expect((body["attempts"] as Row[]).map((one) => one.id)).toEqual(
      newest.map((one) => one.id).toReversed(),
    );
  });

  test("begins with an attempt that stores its request, whose event is large", async () => {
    await fill(OVER_PAGE, 2);
    await copyAttempt(1, { after: 2, stored: "{}" });
    const found = await attempts("limit=100");
    expect(found.map((page) => page.length)).toEqual([ROWS, 1]);
    expect((await attempts(`limit=${ROWS - 2}`)).map((page) => page.length)).toEqual([
      ROWS - 2,
      2,
      1,
    ]);
  });
});

const attempts = (query: string) =>
  everyPage<Row>(
    world.api,
    `/partner/webhooks/${known.id}/deliveries?${query}`,
    world.tokens.owner,
  );

/** Copies the nth attempt, to ids behind that of another one, and returns its event id. */
async function copyAttempt(
  nth: number,
  { after = nth, count = 1, stored }: { after?: number; count?: number; stored?: string },
): Promise<string> {
  const { sql } = world.database.db;
  const rows = await sql<{ id: string; event_id: string }[]>`
    select id, event_id from delivery_attempts where subscription_id = ${known.id} order by id`;
  const [copied, behind] = [rows[nth - 1], rows[after - 1]];
  await sql`
    insert into delivery_attempts
    select (jsonb_populate_record(a, jsonb_build_object('id', left(${behind?.id ?? ""}, 19) || 'ZZZZ' || to_char(n, 'FM000')))).*
      from delivery_attempts a, generate_series(1, ${count}) n where id = ${copied?.id ?? ""}`;
  if (stored !== undefined)
    await sql`
      update delivery_attempts
         set payload_format = null, host = null, signature = null, body_digest = null, request_headers = '{}',
             request_body = ${stored}
       where id like '%ZZZZ___'`;
  return copied?.event_id ?? "";
}

describe("the history inside of a review", () => {
  test.each([
    ["/partner/reviews", "owner"],
    ["/account/reviews", "account"],
  ] as const)("of %s has the newest rows, as far as they fit", async (path, token) => {
    await fill(LARGEST);
    const { sql } = world.database.db;
    const [first] = await sql<{ id: number }[]>`select min(id) as id from reviews`;
    await forceHistory(
      world.database.db,
      (tx) => tx`update review_history set review_id = ${first?.id ?? 0}`,
    );
    const { body } = await world.api.call("GET", `${path}/${first?.id}`, {
      token: world.tokens[token],
    });
    const shown = (body["history"] as Row[]).map(({ id }) => id);
    const rows = await sql<{ id: number }[]>`select id from review_history order by id`;
    expect(shown).toEqual(rows.map(({ id }) => id).slice(-FIT));
  });
});

test("every list is one of those that end early, or has small rows", async () => {
  const { body } = await world.api.call("GET", "/openapi.json", { root: true });
  const lists = Object.entries(fieldsOf(body["paths"])).flatMap(([path, methods]) =>
    /cursor/i.test(JSON.stringify(fieldsOf(fieldsOf(methods)["get"])["parameters"] ?? []))
      ? [path.replace(BASE_PATH, "")]
      : [],
  );
  const named = [...LARGE.map(([list]) => list), ...Object.keys(OTHERS)];
  expect(lists.toSorted()).toEqual(named.toSorted());
});

const KIB = 1024;
const PAGE = 4_096 * KIB;
/** The largest text of an action (contract 9.7). */
const LARGEST = 256 * KIB;
/** A row that alone is larger than a page. */
const OVER_PAGE = 5_120 * KIB;
const ROWS = 40;
/** The rows before the one with which a page has 4 MiB, if each has slightly more than 256 KiB. */
const FIT = 16;

/** Lists with large rows: the tests write their texts. */
const LARGE: readonly [list: string, token: "owner" | "account" | "root"][] = [
  ["/account/reviews", "account"],
  ["/partner/reviews", "owner"],
  ["/partner/review-history", "owner"],
  ["/partner/webhooks/{id}/deliveries", "owner"],
  ["/admin/partners/{id}/webhooks/{subscriptionId}/deliveries", "root"],
];

/**
 * All other lists, with the most KiB of a page of 100 rows as the limits of their fields allow it, or the reason why it has
 * more.
 */
const OTHERS: Readonly<Record<string, number | string>> = {
  "/account/personal-access-tokens": 300,
  "/account/review-sites": 200,
  "/account/sessions": 150,
  "/account/team-sessions": 200,
  "/account/team-tokens": 300,
  "/account/users": 700,
  "/admin/accounts": "the names of all stores, which operators write",
  "/admin/audit-log": 1_024,
  "/admin/backlogs": 300,
  "/admin/deletions": 50,
  "/admin/erasures": 100,
  "/admin/inbox": "ends early as well (tests/integration/services/inbox.test.ts)",
  "/admin/partners": 500,
  "/admin/partners/{id}/webhooks": 700,
  "/admin/partners/{id}/webhooks/{subscriptionId}/messages": 1_024,
  "/admin/plans": 700,
  "/admin/providers": 200,
  "/admin/services": "1,000 ids of partners in each row: 1,200 KiB, which operators write",
  "/admin/services/{id}/tokens": 100,
  "/admin/sso-connections": "100 domains in each row: 7,000 KiB, which operators write",
  "/admin/store-review-sites": 300,
  "/admin/stores": 300,
  "/admin/users": 1_024,
  "/admin/users/{id}/identities": 400,
  "/admin/users/{id}/sessions": 150,
  "/partner/accounts": "the names of all stores, which operators write",
  "/partner/audit-log": 1_024,
  "/partner/integrations": 300,
  "/partner/oauth-clients":
    "20 addresses of 2 KiB in each row: 4,200 KiB, the size at which a page ends",
  "/partner/sessions": 200,
  "/partner/stores": 300,
  "/partner/tokens": 300,
  "/partner/users": 1_024,
  "/partner/users/{id}/identities": 400,
  "/partner/webhooks": 700,
  "/partner/webhooks/{id}/messages": 1_024,
  "/sso/clients": "as /partner/oauth-clients",
};

interface Row {
  readonly id: number | string;
  readonly event_id: string;
  readonly request_body: string | null;
}

const known = { id: "", partnerId: 0 };

const pathOf = (list: string) =>
  list
    .replace("{subscriptionId}", known.id)
    .replace("{id}", list.startsWith("/admin") ? String(known.partnerId) : known.id);

beforeAll(async () => {
  known.id = (await world.subscribe()).id;
  known.partnerId = world.tenants.partners[0].id;
  await world.emit(ROWS);
  await settle(world, known.id, "failed");
});

/**
 * Gives the first rows texts of `bytes` bytes, which every other row compresses, and the rest of the rows short ones. Each
 * attempt gets the digest of the body that its history composes.
 */
async function fill(bytes: number, count = ROWS): Promise<void> {
  const { db } = world.database;
  await forceHistory(db, async (sql) => {
    await sql`
      create temporary table texts on commit drop as
      select n, case when n > ${count} then 'x' when n % 2 = 0 then repeat('x', ${bytes})
                     else left((select string_agg(md5(n::text || i), '') from generate_series(0, ${bytes} / 32) i), ${bytes}) end as value
        from generate_series(1, ${ROWS}) n`;
    await sql`
      update reviews set content = 'x', response_body = value, responded_at = now()
        from texts, (select id as review, row_number() over (order by id) as n from reviews) r
       where r.n = texts.n and id = r.review`;
    await sql`
      update review_history set metadata = json_build_object('body', value), review_id = r.review
        from texts, (select id as review, row_number() over (order by id) as n from reviews) r,
             (select id as history, row_number() over (order by id) as n from review_history) h
       where r.n = texts.n and h.n = texts.n and id = h.history`;
  });
  const format = payloadFormatOf(1);
  const rows = await db.sql<
    Parameters<NonNullable<typeof format>["body"]>[0][] & { startedAt: Date }[]
  >`
    select h.event_id as "eventId", h.id as "reviewHistoryId", h.partner_id as "partnerId", h.store_id as "storeId",
           h.store_review_site_id as "storeReviewSiteId", h.review_id as "reviewId", h.event, h.axis,
           h.occurred_at as "occurredAt", h.recorded_at as "recordedAt", actor::text as "actorJson",
           review::text as "reviewJson", site::text as "siteJson", metadata::text as "metadataJson",
           a.started_at as "startedAt"
      from review_history h join delivery_attempts a on a.event_id = h.event_id`;
  for (const row of rows) {
    const digest = digestOf(format?.body(row, row.startedAt) ?? "");
    await db.sql`
      update delivery_attempts
         set payload_format = 1, host = 'partner.example', signature = '\\x5a', body_digest = decode(${digest}, 'hex'),
             request_headers = null, request_body = null
       where event_id = ${row.eventId}`;
  }
}
