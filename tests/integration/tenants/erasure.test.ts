// A person is erased from every table (contract 10.8), through HTTP and with the job of the maintenance loop.
import { beforeEach, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { createApp } from "../../../src/app.ts";
import { emailDigest } from "../../../src/auth/email.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { eraseChunk } from "../../../src/tenants/actions/erase.ts";
import { PASSWORD } from "../../support/api.ts";
import { addIntegration } from "../../support/callers.ts";
import { challenged, prove, withApp } from "../../support/factors.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import {
  created,
  providerEvent,
  queuedFor,
  report,
  reportedReview,
  reviewIdOf,
} from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { tickOnce } from "../../support/maintenance.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { placesOf, textColumnNames } from "../../support/texts.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: stores.schedule }));

beforeEach(() => world.clock.set(systemClock.now()));

test("every column of text is one that a test fills with a person, or is known to hold none", async () => {
  const listed = [...OF_REVIEWERS, ...OF_USERS];
  const rest = (await textColumnNames(world.database.db)).filter(
    (column) => !listed.includes(column),
  );
  const isKnown = (column: string) => {
    const [table = "", name = ""] = column.split(".");
    return IMPERSONAL_TABLES.includes(table) || IMPERSONAL_COLUMNS[table]?.includes(name);
  };
  expect(rest.filter((column) => isKnown(column) !== true)).toEqual([]);
});

describe("an erased reviewer", () => {
  test("is in no column of any table, and what was queued is delivered in order without the person", async () => {
    const { reviewId, subscription } = await fillReviewer("everywhere");
    await expectFilled([...REVIEWER, PROFANE_WORD], OF_REVIEWERS);
    const queuedBefore = await queuedFor(world.database.db, subscription);
    expect(queuedBefore.length).toBeGreaterThan(4);

    const { status, body } = await request({ reviewer_email: EMAIL.toUpperCase() });
    expect([status, body["kind"], body["state"]]).toEqual([202, "reviewer", "queued"]);
    await runJob();
    expect(await found([...REVIEWER, PROFANE_WORD])).toEqual([]);
    expect(await show(body["id"])).toMatchObject({
      state: "done",
      requested_by: world.tenants.superAdmin.id,
      counts: { reviews: 1, actions: 2, mails: 2 },
    });
    expect(world.api.lines.join("\n")).not.toContain("Ferrante");

    // The order of what waits is the same, and nothing of it is lost.
    expect(await queuedFor(world.database.db, subscription)).toEqual(queuedBefore);
    const receiver = await Receiver.start();
    await world.ask("POST", `/${subscription}`, { body: { webhook_url: receiver.url } });
    await world.ask("POST", `/${subscription}/enable`);
    await withDispatcher(async () => {
      await until("the rest", () => receiver.received.length >= queuedBefore.length);
    });
    expect(receiver.eventIds).toEqual(queuedBefore.map(({ eventId }) => eventId));
    expect(receiver.received.map((one) => one.body).join("\n")).not.toContain("Ferrante");
    const first = JSON.parse(receiver.received[0]?.body ?? "{}") as { review: object };
    expect(first.review).toMatchObject({ id: reviewId, reviewer: null });
    await receiver.stop();

    // The delivered attempt of before shows the digest of its body.
    const { body: list } = await world.ask("GET", `/${subscription}/deliveries?limit=100`);
    const attempts = list["data"] as Record<string, unknown>[];
    const erased = attempts.filter((one) => one["request_erased"] === true);
    expect(erased.length).toBeGreaterThanOrEqual(3);
    for (const one of erased)
      expect(one).toMatchObject({
        request_body: null,
        request_headers: null,
        request_digest: expect.stringMatching(/^[0-9a-f]{32}$/),
        response_excerpt: null,
      });
    const later = attempts.filter((one) => one["request_erased"] === false);
    for (const one of later) expect(one["request_body"]).not.toBeNull();
  });

  test("is not filled in again by later reports of the site", async () => {
    const { reviewId } = await fillReviewer("again", { waits: false });
    await request({ review_ids: [reviewId] });
    await runJob();
    await report(world.api, world.provider, [
      providerEvent("review.updated", world.siteId, {
        review: reportedReview("again", {
          reviewer: NAME,
          reviewer_email: EMAIL,
          content: `${TEXT}, once more`,
          rate: 1,
        }),
      }),
    ]);
    expect(await found(REVIEWER)).toEqual([]);
    const { body } = await asRoot("GET", `/partner/reviews/${reviewId}`, undefined, "owner");
    expect(body).toMatchObject({ rate: 1, reviewer: null, content: "" });
  });

  test("is found by address and by id, within one partner or account", async () => {
    const { reviewId } = await fillReviewer("bounded", { waits: false });
    const [mine, other] = world.tenants.partners;
    const elsewhere = { reviewer_email: EMAIL, partner_id: other.id };
    const wrongAccount = { reviewer_email: EMAIL, account_id: mine.accounts[1].id };
    for (const body of [elsewhere, wrongAccount]) {
      const { body: made } = await request(body);
      await runJob();
      expect((await show(made["id"]))["counts"]).toEqual({});
    }
    const { body: made } = await request({
      reviewer_email: EMAIL,
      review_ids: [reviewId],
      partner_id: mine.id,
      account_id: mine.accounts[0].id,
    });
    await runJob();
    expect((await show(made["id"]))["counts"]).toMatchObject({ reviews: 1 });
    expect(await found(REVIEWER)).toEqual([]);
  });

  test("is found by each spelling of the mailbox", async () => {
    const [db, spellings] = [
      world.database.db,
      ["z\u00e9@b\u00fccher.test", "Ze\u0301@xn--bcher-kva.TEST"],
    ];
    for (const email of [...spellings, "z@xn--bcher-kva.test"])
      for (const typed of [...spellings, "z@\uff42\u00fccher.test"]) {
        const { reviewId } = await fillReviewer("spelled", { waits: false });
        await db.sql`update reviews set reviewer_email = ${email} where id = ${reviewId}`;
        const { body } = await request({ reviewer_email: typed });
        await runJob();
        const isSame = email.startsWith("z@") === typed.startsWith("z@");
        const reviews = ((await show(body["id"]))["counts"] as Record<string, number>)["reviews"];
        expect([email, typed, reviews]).toEqual([email, typed, isSame ? 1 : undefined]);
        await db.sql`update reviews set reviewer_email = null where id = ${reviewId}`;
      }
  });

  test("is erased completely by another process when the first one dies after any chunk", async () => {
    for (let survived = 1; survived < 6; survived++) {
      await fillReviewer(`killed-${survived}`, { waits: false });
      const { body } = await request({ reviewer_email: EMAIL });
      for (let i = 0; i < survived; i++) await chunk();
      // A chunk that fails at its end leaves nothing behind.
      const before = await show(body["id"]);
      const { db } = world.database;
      const dying = { ...deps(), log: dyingLog };
      await db
        .transaction(async (tx) => {
          await eraseChunk({ ...dying, db: { ...db, transaction: (work) => work(tx) } });
          throw new Error("killed");
        })
        .catch(() => undefined);
      expect(await show(body["id"])).toEqual(before);
      await runJob();
      const { state, counts } = await show(body["id"]);
      expect([state, (counts as Record<string, number>)["reviews"]]).toEqual(["done", 1]);
      expect(await found(REVIEWER)).toEqual([]);
    }
  });

  test("is erased once by two processes at the same time, as is another one", async () => {
    await fillReviewer("twice-1", { waits: false });
    await fillReviewer("twice-2", { waits: false });
    const [one, two] = await Promise.all([
      request({ reviewer_email: EMAIL }),
      request({ reviewer_email: EMAIL }),
    ]);
    await Promise.all([allChunks(), allChunks(), allChunks()]);
    const shown = await Promise.all([show(one.body["id"]), show(two.body["id"])]);
    const reviews = shown.map((row) => (row["counts"] as Record<string, number>)["reviews"] ?? 0);
    expect(reviews.toSorted()).toEqual([0, 2]);
    expect(shown.map((row) => row["state"])).toEqual(["done", "done"]);
    expect(await found(REVIEWER)).toEqual([]);
  });
});

describe("an erased user", () => {
  const USER = [
    "Wilhelmina Quist",
    "wilhelmina@quist.test",
    "quist",
    "203.0.113.77",
    "Quistbrowser",
  ];

  test("is in no column of any table, and leaves ids behind", async () => {
    const userId = await fillUser();
    await expectFilled(USER, OF_USERS);
    const { status, body } = await request({ user_id: userId });
    expect([status, body["kind"]]).toEqual([202, "user"]);
    // The access ends with the request.
    const login = { email: "wilhelmina@quist.test", password: PASSWORD };
    expect((await world.api.call("POST", "/login", { body: login })).status).toBe(401);
    await runJob();
    expect(await found(USER)).toEqual([]);
    expect(await digestsLeft("wilhelmina@quist.test")).toBe(0);
    const { body: shown } = await asRoot("GET", `/admin/users/${userId}`);
    expect(shown).toMatchObject({
      name: "Erased",
      email: `erased-${userId}@erased.invalid`,
      is_active: false,
      has_password: false,
    });
    const rows = await world.database.db.sql<{ actor: object }[]>`
      select actor from review_history where actor ->> 'id' = ${String(userId)}`;
    expect(rows.length).toBeGreaterThan(0);
    for (const { actor } of rows)
      expect(actor).toEqual({ type: "user", id: userId, name: "Erased" });
    const { state, counts } = await show(body["id"]);
    expect([state, counts]).toEqual([
      "done",
      expect.objectContaining({
        users: 1,
        events: 2,
        mails: 2,
        responses: 1,
        recipients: 1,
        sign_ins: expect.any(Number),
        audit_rows: expect.any(Number),
      }),
    ]);
    // The person can be a user again.
    const again = await createUser("wilhelmina@quist.test", "W");
    expect(again.status).toBe(201);
  });

  test("loses passkeys, app, recovery codes and sign-ins that wait for a second factor", async () => {
    const email = "factors@quist.test";
    const { body: user } = await createUser(email, "Wilhelmina Quist");
    const userId = Number(user["id"]);
    const person = { id: userId, email, role: "account_user", companyId: 0 } as const;
    const holder = await withApp(world, person);
    await challenged(world.api, person);
    await world.database.db.sql`
      insert into second_factors (id, user_id, kind, name, credential_id, public_key, sign_count, created_at)
      values (${ulid()}, ${userId}, 'passkey', 'Key of Quist', 'cXVpc3Q', '\\x01', 0, now())`;
    // A passkey that the session was about to add.
    const path = "/account/second-factors/passkeys/creation-options";
    expect((await world.api.call("POST", path, { token: holder.token })).status).toBe(200);
    for (let i = 0; i < 2; i++)
      await prove(world.api, (await challenged(world.api, person)).token, { code: "000000" });
    const other = await withApp(world, world.tenants.partners[0].accounts[1].owner);
    expect(await factorRows(userId)).toEqual({ apps: 1, passkeys: 1, codes: 10, challenges: 4 });
    await request({ user_id: userId });
    await runJob();
    expect(await factorRows(userId)).toEqual({ apps: 0, passkeys: 0, codes: 0, challenges: 0 });
    expect(await found([email, "key of quist"])).toEqual([]);
    expect(await factorRows(other.user.id)).toMatchObject({ apps: 1, codes: 10 });
  });

  test("is final: no operation changes, activates, invites, resets or erases the user again", async () => {
    const [partner] = world.tenants.partners;
    const { body: user } = await asRoot("POST", "/admin/users", {
      company_id: partner.id,
      email: "final@quist.test",
      name: "Wilhelmina Quist",
      role: "partner_admin",
    });
    const id = String(user["id"]);
    await request({ user_id: Number(id) });
    const before = (await asRoot("GET", `/admin/users/${id}`)).body;
    expect(before).toMatchObject({ email: `erased-${id}@erased.invalid`, is_active: false });
    const codes: Record<string, unknown> = {};
    for (const { method, path } of createApp(world.api.deps).routes) {
      const of = /^\/api\/v1(\/(admin|partner)\/users\/):id(\/.*)?$/.exec(path);
      if (of === null || !["POST", "PATCH", "PUT", "DELETE"].includes(method)) continue;
      const [, users = "", area, operation = ""] = of;
      // A user on whom nothing depends may still be deleted.
      if (`${method}${operation}` === "DELETE") continue;
      const body = operation === "/role" ? { role: "partner_owner" } : {};
      const sent = operation === "" ? { name: "Somebody" } : body;
      const address = `${users}${id}${operation.replace(/:\w+/, "1")}`;
      const as = area === "partner" ? "owner" : "root";
      codes[`${method} ${users}${operation}`] = await codeOf(asRoot(method, address, sent, as));
    }
    const erased = [409, "user_erased"];
    const uninvitable = [409, "not_invitable"];
    const missing = [404, "not_found"];
    expect(codes).toEqual({
      "PATCH /admin/users/": erased,
      "POST /admin/users//activate": erased,
      "POST /admin/users//deactivate": [200, undefined],
      "POST /admin/users//invite": uninvitable,
      "POST /admin/users//password-reset": erased,
      "POST /admin/users//unlock": erased,
      "DELETE /admin/users//second-factors": erased,
      "DELETE /admin/users//sessions/:sessionId": missing,
      "DELETE /admin/users//identities/:identityId": missing,
      "POST /partner/users//activate": erased,
      "POST /partner/users//deactivate": [200, undefined],
      "POST /partner/users//invite": uninvitable,
      "POST /partner/users//role": erased,
      "DELETE /partner/users//identities/:identityId": missing,
    });
    expect(await codeOf(request({ user_id: Number(id) }))).toEqual(erased);
    // Nobody else gets an address that marks an erased user.
    const { body: refused } = await createUser(`erased-${Number(id) + 1}@erased.invalid`, "Eve");
    expect(Object.keys(refused["errors"] ?? {})).toEqual(["email"]);
    await runJob();
    const { body: after } = await asRoot("GET", `/admin/users/${id}`);
    expect(after).toEqual({ ...before, updated_at: after["updated_at"] });
  });

  test("is neither the last owner, nor the operator, nor a service or an integration", async () => {
    const [partner] = world.tenants.partners;
    for (const user of [partner.owner, partner.accounts[0].owner])
      expect(await codeOf(request({ user_id: user.id }))).toEqual([409, "last_owner"]);
    expect(await codeOf(request({ user_id: world.tenants.superAdmin.id }))).toEqual([
      409,
      "own_user",
    ]);
    const { body: service } = await asRoot("POST", "/admin/services", {
      name: "Bot",
      scopes: ["actions:write"],
    });
    const integration = await addIntegration(world.api, world.tokens.owner);
    for (const { id } of [service, integration]) {
      const { status, body } = await request({ user_id: id });
      expect([status, body["errors"]]).toEqual([422, { user_id: ["is not a user"] }]);
    }
  });
});

const NAME = "Balthasar Ferrante";
const EMAIL = "balthasar@ferrante.test";
const TEXT = "Unmistakable croissant";
const PROFANE_WORD = "verdammt";
const REVIEWER = [NAME, EMAIL, TEXT, "Ferrante"];

/** The columns that `fillReviewer` and `fillUser` fill with texts of the person. */
const OF_REVIEWERS = [
  "delivery_attempts.request_body",
  "delivery_attempts.request_headers",
  "delivery_attempts.response_excerpt",
  "delivery_attempts.response_headers",
  "inbox.action",
  "mails.sealed_message",
  "review_history.metadata",
  "review_history.review",
  "reviews.content",
  "reviews.flag_reason",
  "reviews.profanity",
  "reviews.response_body",
  "reviews.reviewer",
  "reviews.reviewer_email",
];
const OF_USERS = [
  "alert_settings.confirmed_recipients",
  "alert_settings.recipients",
  "audit_log.details",
  "audit_log.ip",
  "audit_log.user_agent",
  "authentication_events.ip",
  "authentication_events.user_agent",
  "keyed_requests.sealed_response",
  "mails.sealed_message",
  "review_history.actor",
  "second_factors.name",
  "sso_identities.subject",
  "token_uses.ip",
  "tokens.name",
  "users.email",
  "users.external_id",
  "users.name",
  "users.normal_email",
];

/** The other text columns of these tables: ids, kinds, states and digests. */
const IMPERSONAL_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  alert_settings: ["id", "kinds", "webhook_url", "sealed_secret", "secret_fingerprint"],
  audit_log: ["action", "request_id"],
  authentication_events: ["id", "method", "client_id"],
  delivery_attempts: [
    "id",
    "subscription_id",
    "event_id",
    "event",
    "outcome",
    "error_code",
    "payload_mode",
    "batch_job_id",
    "host",
    "signature",
    "previous_signature",
    "body_digest",
    "standard_signatures",
    "tls_reason",
    "header_names",
  ],
  inbox: ["state", "errors"],
  keyed_requests: ["key", "digest"],
  mails: ["id", "kind", "state", "error_code", "last_error"],
  review_history: ["event_id", "event", "axis", "site"],
  reviews: ["external_review_id", "external_id", "flag_status"],
  second_factors: ["id", "kind", "sealed_secret", "credential_id", "public_key", "transports"],
  sso_identities: ["issuer", "connection_id"],
  token_uses: ["jti", "route"],
  tokens: [
    "jti",
    "kind",
    "client_id",
    "family_id",
    "parent_jti",
    "scope",
    "pages",
    "kid",
    "sealed_token",
  ],
  users: ["role", "password_hash", "scopes"],
};

/**
 * Tables without texts of a reviewer or a user. Those of sign-ins know an email only by its digest, and `erasures` has
 * the person sealed until the end.
 */
const IMPERSONAL_TABLES = [
  "alerts",
  "attempt_stats",
  "audit_webhooks",
  "authorization_codes",
  "backlog_stats",
  "batch_entries",
  "batch_windows",
  "companies",
  "company_deletions",
  "dispatchers",
  "email_code_limits",
  "email_code_tries",
  "email_codes",
  "endpoint_checks",
  "erasures",
  "imports",
  "incidents",
  "invitations",
  "maintenance_jobs",
  "oauth_clients",
  "outbox",
  "outbox_offsets",
  "outbox_sequences",
  "outbox_skips",
  "plans",
  "portal_links",
  "portal_settings",
  "processes",
  "provider_events",
  "recoveries",
  "recovery_codes",
  "review_sites",
  "second_factor_challenges",
  "service_actions",
  "services",
  "shards",
  "sign_in_locks",
  "signing_keys",
  "sso_codes",
  "sso_connections",
  "sso_domains",
  "sso_states",
  "store_review_sites",
  "stores",
  "webhook_subscriptions",
];

describe("the body of an erasure", () => {
  const long = "a".repeat(249);
  test.each([
    [{}, ["user_id"]],
    [{ user_id: 1, reviewer_email: EMAIL }, ["reviewer_email"]],
    [{ user_id: 1, partner_id: 1 }, ["partner_id"]],
    [{ user_id: 999_999 }, ["user_id"]],
    [{ reviewer_email: "no address" }, ["reviewer_email"]],
    [{ reviewer_email: `${long}@b.de` }, undefined],
    [{ reviewer_email: `${long}@b.dee` }, ["reviewer_email"]],
    [{ reviewer_email: EMAIL, partner_id: 999_999 }, ["partner_id"]],
    [{ reviewer_email: EMAIL, account_id: 999_999 }, ["account_id"]],
    [{ review_ids: [] }, ["review_ids"]],
    [{ review_ids: [2_000_000_000] }, ["review_ids"]],
    [{ review_ids: Array.from({ length: 1_001 }, (_, i) => i + 1) }, ["review_ids"]],
  ])("%j is answered with errors of %j", async (given, fields) => {
    const { status, body } = await request(given);
    expect([status, Object.keys((body["errors"] as object | undefined) ?? {})]).toEqual(
      fields === undefined ? [202, []] : [422, fields],
    );
  });

  test("takes 1,000 reviews", async () => {
    const { db } = world.database;
    const [{ id: partnerId, accounts }] = world.tenants.partners;
    const rows = await db.sql<{ id: number }[]>`
      insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, reviewer,
                           content, reviewed_at, created_at, updated_at)
      select ${partnerId}, ${accounts[0].id}, ${accounts[0].storeIds[0] ?? 0}, ${world.siteId}, 'many-' || n, 3, ${NAME},
             ${TEXT}, now(), now(), now() from generate_series(1, 1000) n returning id`;
    const { status, body } = await request({ review_ids: rows.map(({ id }) => id) });
    expect(status).toBe(202);
    await allChunks();
    expect((await show(body["id"]))["counts"]).toMatchObject({ reviews: 1_000 });
    expect(await found(REVIEWER)).toEqual([]);
  }, 60_000);

  test("is in no list", async () => {
    const { body } = await asRoot("GET", "/admin/erasures?limit=2");
    expect((body["data"] as unknown[]).length).toBe(2);
    expect((await asRoot("GET", `/admin/erasures/${ulid()}`)).status).toBe(404);
    const rows = await world.audit("ERASURE_REQUESTED");
    expect(Object.keys(rows.at(-1)?.["details"] ?? {}).toSorted()).toEqual(["erasure_id", "kind"]);
  });
});

const dyingLog = { debug() {}, info() {}, warn() {}, error() {} };

const deps = () => ({
  db: world.database.db,
  box: world.api.deps.box,
  clock: world.clock,
  log: world.api.deps.log,
});
const chunk = () => eraseChunk(deps());

async function allChunks(): Promise<void> {
  while ((await chunk()).next !== undefined);
}

/** Runs the job in the maintenance loop, whether it is due or not. */
async function runJob(): Promise<void> {
  const { db } = world.database;
  await db.sql`update maintenance_jobs set next_at = now() - interval '1 second' where name = 'erasures'`;
  await tickOnce({ db, jobs: [{ name: "erasures", paceS: 5, db, run: chunk }] });
}

const found = (texts: readonly string[]) => placesOf(world.database.db, world.api.deps.box, texts);

/** Expects each text somewhere, and some text in each column. A search after the erasure proves nothing without both. */
async function expectFilled(texts: readonly string[], columns: readonly string[]): Promise<void> {
  const places = (await found(texts)).map((place) => place.split(/(?: \(sealed\))?: /));
  const seen = (part: number) => new Set(places.map((place) => place[part] ?? ""));
  expect(texts.filter((text) => !seen(1).has(text.toLowerCase()))).toEqual([]);
  expect(columns.filter((column) => !seen(0).has(column))).toEqual([]);
}

const asRoot = (method: string, path: string, body?: object, as: "root" | "owner" = "root") =>
  world.api.call(method, path, { token: world.tokens[as], body });
const request = (body: object) => asRoot("POST", "/admin/erasures", body);

async function show(id: unknown): Promise<Record<string, unknown>> {
  return { ...(await asRoot("GET", `/admin/erasures/${String(id)}`)).body };
}

async function codeOf(answer: ReturnType<typeof request>) {
  const { status, body } = await answer;
  return [status, body["code"]];
}

async function withDispatcher(work: () => Promise<void>): Promise<void> {
  const { db } = world.database;
  const { box } = world.api.deps;
  const dispatcher = startDispatcher({ db, box, schedule: stores.schedule });
  try {
    await work();
  } finally {
    await dispatcher.stop();
  }
}

/** Counts what a user has of second factors, also of tokens that are not the user's any more. */
async function factorRows(userId: number): Promise<Record<string, unknown>> {
  const [counts] = await world.database.db.sql<Record<string, number>[]>`
    select (select count(*)::int from second_factors where user_id = ${userId} and kind = 'totp') as apps,
           (select count(*)::int from second_factors where user_id = ${userId} and kind = 'passkey') as passkeys,
           (select count(*)::int from recovery_codes where user_id = ${userId}) as codes,
           (select count(*)::int from second_factor_challenges join tokens using (jti)
             where user_id = ${userId}) as challenges`;
  return { ...counts };
}

async function digestsLeft(email: string): Promise<number> {
  const tables = ["sign_in_locks", "email_codes", "email_code_limits", "email_code_tries"];
  let left = 0;
  for (const table of tables) {
    const { sql } = world.database.db;
    left += (await sql`select from ${sql(table)} where email_digest = ${emailDigest(email)}`)
      .length;
  }
  return left;
}

/** Reports a review of the person and has the account act on it, with deliveries before and, with `waits`, behind it. */
async function fillReviewer(externalId: string, { waits = true } = {}) {
  const { api, provider, siteId } = world;
  const { db } = world.database;
  const echo = Bun.serve({ port: 0, fetch: async (call) => new Response(await call.text()) });
  const { id: subscription } = await world.subscribe({
    webhook_url: `http://127.0.0.1:${echo.port}/hook`,
  });
  await report(api, provider, [
    created(siteId, externalId, { reviewer: NAME, reviewer_email: EMAIL, content: TEXT }),
  ]);
  const reviewId = await reviewIdOf(db, externalId);
  if (!waits) {
    await echo.stop(true);
    return { reviewId, subscription };
  }
  await world.subscribe({ delivery_kind: "batch", batch_interval_hours: 1 });
  const act = (path: string, body: object) =>
    api.call("POST", `/account/reviews/${reviewId}/${path}`, { token: world.tokens.account, body });
  await withDispatcher(async () => {
    await act("response", { body: `Dear ${NAME}, thank you.` });
    await act("flag", { reason: `${NAME} was never here: ${TEXT}` });
    await until("three deliveries", async () => (await attemptsOf(subscription)) === 3);
  });
  await echo.stop(true);
  // A stored request, as older versions have written it.
  await db.sql`
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms,
      outcome, status_code, request_headers, request_body, response_headers, response_excerpt, response_truncated)
    select ${ulid()}, ${subscription}, 1, event_id, event, 1, 1, now(), 1, 'interrupted', 200, review, review::text, review,
           review::text, false
      from review_history where review_id = ${reviewId} and event = 'review_received'`;
  // The rest is held.
  await world.ask("POST", `/${subscription}/disable`);
  await report(api, provider, [
    providerEvent("review.updated", siteId, {
      review: reportedReview(externalId, {
        reviewer: NAME,
        reviewer_email: EMAIL,
        content: `${TEXT}, ${PROFANE_WORD}`,
      }),
    }),
    providerEvent("response.posted", siteId, { external_review_id: externalId }),
  ]);
  await act("flag-status", { status: "under_review" });
  await act("notes", { body: `Call ${NAME} back` });
  for (const id of ["waiting", "rejected"]) {
    const action = JSON.stringify({ id, review_id: reviewId, metadata: { body: NAME } });
    await db.sql`insert into inbox (service_id, action) values (1, ${action}::text::jsonb)`;
  }
  await db.sql`update inbox set state = 'rejected', errors = '{}' where action ->> 'id' = 'rejected'`;
  return { reviewId, subscription };
}

async function attemptsOf(subscription: string): Promise<number> {
  const rows = await world.database.db.sql`
    select from delivery_attempts where subscription_id = ${subscription}`;
  return rows.length;
}

const createUser = (email: string, name: string) =>
  world.api.call("POST", "/admin/users", {
    token: world.tokens.root,
    headers: { "idempotency-key": ulid() },
    body: {
      company_id: world.tenants.partners[0].accounts[0].id,
      role: "account_user",
      email,
      name,
      password: PASSWORD,
    },
  });

/** Makes a user who has left something in every place that a user can leave something in. */
async function fillUser(): Promise<number> {
  const { api, provider, siteId, tokens } = world;
  const { db } = world.database;
  const email = "wilhelmina@quist.test";
  const { body } = await createUser(email, "Wilhelmina Quist");
  const userId = Number(body["id"]);
  const headers = { "user-agent": "Quistbrowser" };
  const { body: session } = await api.call("POST", "/login", {
    headers,
    body: { email, password: PASSWORD },
  });
  await api.call("POST", "/login", { headers, body: { email, password: "wrong wrong wrong" } });
  const token = String(session["token"]);
  const made = await api.call("POST", "/account/personal-access-tokens", {
    token,
    body: { name: "Laptop of Quist", scopes: ["reviews:read"] },
  });
  await api.call("GET", "/account/reviews", { token: String(made.body["access_token"]) });
  await report(api, provider, [created(siteId, "of-user")]);
  const reviewId = await reviewIdOf(db, "of-user");
  for (const [path, text] of [
    ["response", { body: "Thanks" }],
    ["notes", { body: "A note" }],
  ] as const)
    await api.call("POST", `/account/reviews/${reviewId}/${path}`, { token, body: text });
  await api.call("POST", "/email-otp/resend", { body: { email, type: "forgot_password" } });
  await api.call("PATCH", "/partner/alerts", {
    token: tokens.owner,
    body: { recipients: [email] },
  });
  const { body: answer } = await asRoot("GET", `/admin/users/${userId}`);
  if (answer["email"] !== email) throw new Error("The user is missing.");
  // In tests there is no network, so the addresses are set here.
  await db.sql`
    update audit_log set ip = '203.0.113.77', user_agent = 'Quistbrowser' where actor_id = ${userId}`;
  await db.sql`update authentication_events set ip = '203.0.113.77' where user_id = ${userId}`;
  // The use of a token is recorded after the answer.
  await until("the use of the token is recorded", async () => {
    const { count } = await db.sql`update token_uses set ip = '203.0.113.77'`;
    return count > 0;
  });
  await db.sql`
    insert into audit_log (at, action, actor_id, company_id, details)
    values (now(), 'IMPERSONATION_STARTED', ${userId}, ${world.tenants.partners[0].accounts[0].id},
            '{"reason": "Asked by Wilhelmina Quist", "jti": "J"}')`;
  await db.sql`update users set external_id = 'quist-4711' where id = ${userId}`;
  await db.sql`
    update alert_settings set confirmed_recipients = recipients where recipients is not null`;
  await db.sql`
    insert into second_factors (id, user_id, kind, name, credential_id, public_key, sign_count, created_at)
    values (${ulid()}, ${userId}, 'passkey', 'Key of Quist', 'cXVpc3QtNDcxMQ', '\\x01', 0, now())`;
  const connection = ulid();
  await db.sql`
    insert into sso_connections (id, company_id, issuer, client_id, sealed_client_secret, password_login, is_active,
                                 created_at, updated_at)
    values (${connection}, ${world.tenants.partners[0].accounts[0].id}, 'https://idp.example', 'c',
            ${api.deps.box.seal("s", `sso:${world.tenants.partners[0].accounts[0].id}:${connection}`)}, true, true,
            now(), now())`;
  await db.sql`
    insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
    values ('https://idp.example', 'quist', ${userId}, ${connection}, now())`;
  return userId;
}
