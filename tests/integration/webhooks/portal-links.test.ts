import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { createRateLimiter } from "../../../src/http/rate-limit.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { connectRedis } from "../../../src/lib/redis.ts";
import { startApi, type Answer, type TestApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { silentLog } from "../../support/dispatch.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser, type TestUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

// Portal links, which open pages of the dashboard once, and the origins that may frame these pages (contract 6.20).

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

describe("a portal link", () => {
  test("is returned with its expiry, and its code is only in the fragment and stored as a hash", async () => {
    const made = await link({ pages: ["webhooks"] });
    expect(made.status).toBe(201);
    expect(Object.keys(made.body)).toEqual(["url", "expires_at"]);
    const url = new URL(String(made.body["url"]));
    expect([url.pathname.replace(/[^/]+$/, "KEY"), url.search]).toEqual(["/embed/KEY", ""]);
    const code = codeOf(made);
    expect(code).toMatch(/^[0-9a-f]{64}$/);
    const rows = await database.db.sql`select * from portal_links`;
    expect(JSON.stringify(rows)).not.toContain(code);
    const after = new Date(String(made.body["expires_at"])).getTime() - clock.now().getTime();
    expect(after).toBe(300_000);
    expect((await audited("PORTAL_LINK_CREATED"))?.details).toMatchObject({
      pages: ["webhooks"],
      scope: "webhooks:read",
    });
  });

  test("opens one session of at most an hour, and the audit log records link and session", async () => {
    const made = await link({ pages: ["webhooks"], theme: "dark" });
    expect(new URL(String(made.body["url"])).search).toBe("?theme=dark");
    const session = await redeem(urlOf(made));
    expect(session.status).toBe(200);
    expect(session.body).toMatchObject({
      token_type: "Bearer",
      expires_in: 3_600,
      scope: "webhooks:read",
      pages: ["webhooks"],
    });
    expect(said(await redeem(urlOf(made)))).toEqual([400, "invalid_code"]);
    expect(said(await redeem(urlOf(made).replace(/code=.*$/, `code=${"f".repeat(64)}`)))).toEqual([
      400,
      "invalid_code",
    ]);
    const row = await audited("PORTAL_LINK_REDEEMED");
    expect(row?.actor).toBe(tenants.partners[0].owner.id);
    expect(row?.details).toMatchObject({ pages: ["webhooks"], scope: "webhooks:read" });
    const token = String(session.body["token"]);
    expect((await ask(token, "/partner/webhooks")).status).toBe(200);
    clock.advance(3_599_000);
    expect((await ask(token, "/partner/webhooks")).status).toBe(200);
    clock.advance(1_000);
    expect((await ask(token, "/partner/webhooks")).status).toBe(401);
  });

  test("is redeemed by one of two concurrent requests, and not by GET", async () => {
    const made = await link({ pages: ["webhooks"] });
    const [url, code] = [urlOf(made), codeOf(made)];
    expect((await api.call("GET", `/embed/key/session?code=${code}`)).status).toBe(405);
    const page = { root: true, body: { code } };
    expect((await api.call("POST", "/embed/key/session", page)).status).toBe(405);
    const both = await Promise.all([redeem(url), redeem(url)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 400]);
  });

  test("is not redeemed at the key of another partner, and stays usable", async () => {
    const url = urlOf(await link({ pages: ["webhooks"] }));
    const elsewhere = new URL(url);
    elsewhere.pathname = new URL(urlOf(await link({ pages: ["webhooks"] }, rival))).pathname;
    for (const wrong of [elsewhere.href, url.replace(/embed\/\w+/, "embed/key")])
      expect(said(await redeem(wrong))).toEqual([400, "invalid_code"]);
    expect((await redeem(url)).status).toBe(200);
  });

  test.each([
    [{}, 300],
    [{ ttl_s: 30 }, 30],
    [{ ttl_s: 3_600 }, 3_600],
  ])("with %p works for %d seconds, and no longer", async (fields, seconds) => {
    const made = [
      await link({ pages: ["webhooks"], ...fields }),
      await link({ pages: ["webhooks"], ...fields }),
    ];
    const [first = "", second = ""] = made.map(urlOf);
    clock.advance(seconds * 1_000 - 1);
    expect((await redeem(first)).status).toBe(200);
    clock.advance(1);
    expect(said(await redeem(second))).toEqual([400, "invalid_code"]);
  });

  test.each([
    [{ pages: [] }, "pages"],
    [{ pages: ["webhooks", "webhooks"] }, "pages"],
    [{ pages: ["team"] }, "pages.0"],
    [{ pages: ["webhooks/01J00000000000000000000000"] }, "pages.0"],
    [{ pages: ["webhooks"], ttl_s: 29 }, "ttl_s"],
    [{ pages: ["webhooks"], ttl_s: 3_601 }, "ttl_s"],
    [{ pages: ["webhooks"], access: "all" }, "access"],
    [{ pages: ["webhooks"], theme: "pink" }, "theme"],
  ])("is not created from %j", async (body, field) => {
    const answer = await link(body);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual([field]);
  });

  test("opens at most two pages, and no subscription of another partner", async () => {
    expect((await link({ pages: ids.map((id) => `webhooks/${id}`) })).status).toBe(201);
    const three = ["webhooks", ...ids.map((id) => `webhooks/${id}`)];
    expect((await link({ pages: three })).status).toBe(422);
    expect((await link({ pages: [`webhooks/${ids[0]}`] }, rival)).status).toBe(422);
  });

  test("is created only by partners, with a token that has the same access", async () => {
    const account = await api.login(tenants.partners[0].accounts[0].owner.email);
    for (const token of [account, root])
      expect(said(await link({ pages: ["webhooks"] }, token))).toEqual([403, "forbidden"]);
    const body = { name: "reads", scopes: ["webhooks:read"] };
    const made = await ask(owner, "/account/personal-access-tokens", "POST", body);
    const reading = String(made.body["access_token"]);
    expect((await link({ pages: ["webhooks"] }, reading)).status).toBe(201);
    expect(said(await link({ pages: ["webhooks"], access: "write" }, reading))).toEqual([
      403,
      "insufficient_scope",
    ]);
  });
});

describe("an operator's link to a partner's pages", () => {
  const linkOf = (partner: number, body: object, token = root) =>
    ask(token, `/admin/partners/${partner}/portal-links`, "POST", body);
  const read = { pages: ["webhooks"] };

  test("opens a session as the partner's owner, which the audit log distinguishes from the owner's own", async () => {
    const [one] = tenants.partners;
    const made = await linkOf(one.id, { ...read, access: "write" });
    expect(made.status).toBe(201);
    expect((await audited("PORTAL_LINK_CREATED"))?.details).toMatchObject({ partner_id: one.id });
    const session = await redeem(urlOf(made));
    expect(session.body).toMatchObject({
      scope: "webhooks:read webhooks:write",
      pages: ["webhooks"],
    });
    const token = String(session.body["token"]);
    const list = await ask(token, "/partner/webhooks");
    expect((list.body["data"] as { id: string }[]).map(({ id }) => id)).toEqual(
      expect.arrayContaining([...ids]),
    );
    const path = `/partner/webhooks/${ids[0]}`;
    expect((await ask(token, path, "PATCH", { label: "by an operator" })).status).toBe(200);
    const [row] = await database.db.sql<{ actor: number; impersonator: number }[]>`
      select actor_id as actor, impersonator_id as impersonator from audit_log
       where action = 'WEBHOOK_UPDATED' order by id desc limit 1`;
    expect(row).toEqual({ actor: one.owner.id, impersonator: tenants.superAdmin.id });
    for (const outside of ["/partner/users", "/partner/alerts", "/account/sessions"])
      expect((await ask(token, outside)).status).toBe(403);
    expect((await ask(token, "/verify-token")).body).toMatchObject({
      user: { id: one.owner.id, name: "", email: "" },
      impersonation: { impersonator: { id: tenants.superAdmin.id, name: "", email: "" } },
    });
  });

  test("never shows a secret: show, rotate and create are a 403 with a row, and change nothing", async () => {
    const [one] = tenants.partners;
    const made = await linkOf(one.id, { ...read, access: "write" });
    const token = String((await redeem(urlOf(made))).body["token"]);
    const path = `/partner/webhooks/${ids[0]}`;
    const before = (await ask(owner, path)).body;
    const creating = {
      label: "Hook",
      delivery_kind: "immediate",
      webhook_url: "http://127.0.0.1:9/",
    };
    for (const [at, body] of [
      [`${path}/secret`, {}],
      [`${path}/rotate-secret`, {}],
      ["/partner/webhooks", creating],
    ] as const) {
      const answer = await ask(token, at, "POST", body);
      expect([said(answer), answer.body["secret"]]).toEqual([[403, "forbidden"], undefined]);
      expect((await audited("AUTHZ_DENIED"))?.details).toMatchObject({ reason: "forbidden" });
    }
    expect((await ask(owner, path)).body).toEqual(before);
    expect((await ask(token, `${path}/previous-secret`, "DELETE")).status).toBe(204);
    const own = await opened({ pages: ["webhooks"], access: "write" });
    const shown = await ask(own, `${path}/secret`, "POST", {});
    expect([shown.status, typeof shown.body["secret"]]).toEqual([200, "string"]);
    expect((await ask(own, `${path}/rotate-secret`, "POST", {})).status).toBe(200);
    expect(said(await ask(own, "/partner/webhooks", "POST", creating))[0]).toBe(409);
  });

  test("writes headers, but sends those of the partner to no other endpoint", async () => {
    const [one] = tenants.partners;
    const made = await linkOf(one.id, { ...read, access: "write" });
    const token = String((await redeem(urlOf(made))).body["token"]);
    const path = `/partner/webhooks/${ids[0]}`;
    const headers = { "X-Key": "hush-hush-1" };
    expect((await ask(owner, path, "PATCH", { headers })).status).toBe(200);
    const elsewhere = { webhook_url: "http://127.0.0.1:9/elsewhere" };
    const refused = await ask(token, path, "PATCH", elsewhere);
    expect([refused.status, Object.keys(refused.body["errors"] as object)]).toEqual([
      422,
      ["headers"],
    ]);
    expect((await ask(token, path)).text).not.toContain("hush-hush");
    const changed = await ask(token, path, "PATCH", { headers: null });
    expect([changed.status, changed.body["header_names"]]).toEqual([200, []]);
  });

  test("needs an existing partner and its own subscriptions", async () => {
    const [one, two] = tenants.partners;
    expect((await linkOf(one.accounts[0].id, read)).status).toBe(404);
    expect((await linkOf(999_999, read)).status).toBe(404);
    expect((await linkOf(one.id, { pages: [`webhooks/${ids[0]}`] })).status).toBe(201);
    expect((await linkOf(two.id, { pages: [`webhooks/${ids[0]}`] })).status).toBe(422);
    for (const token of [owner, rival])
      expect((await linkOf(one.id, read, token)).status).toBe(403);
  });

  test("needs an active owner, as whom its session acts", async () => {
    const { body } = await ask(root, "/admin/partners", "POST", { name: "Without an owner" });
    expect(said(await linkOf(Number(body["id"]), read))).toEqual([409, "no_owner"]);
  });

  test("ends when the operator is deactivated, and so does its session", async () => {
    const companyId = tenants.superAdmin.companyId;
    const email = "portal-operator@platform.test";
    const operator = await addUser(database.db, { companyId, role: "super_admin", email });
    const token = await api.login(email);
    const [one] = tenants.partners;
    const url = urlOf(await linkOf(one.id, read, token));
    const opening = await redeem(urlOf(await linkOf(one.id, read, token)));
    const session = String(opening.body["token"]);
    expect((await ask(session, "/partner/webhooks")).status).toBe(200);
    expect((await ask(root, `/admin/users/${operator.id}/deactivate`, "POST", {})).status).toBe(
      200,
    );
    expect(said(await redeem(url))).toEqual([400, "invalid_code"]);
    expect((await ask(session, "/partner/webhooks")).status).toBe(401);
  });
});

describe("the session of a link", () => {
  test("may call nothing outside of the webhooks, /verify-token and /logout", async () => {
    const token = await opened({ pages: ["webhooks"], access: "write" });
    const outside = createApp(api.deps).routes.flatMap(({ method, path, hooks }) => {
      const below = path.slice(BASE_PATH.length);
      // The token may always end itself, so `/sso/revoking-token` is left out like `/logout`.
      const inside = /^\/(?:partner\/webhooks|verify-token|logout|sso\/revoking-token)(?:\/|$)/;
      const isInside = inside.test(below);
      const takesTokens = Array.isArray(hooks.detail?.security?.[0]?.bearer);
      if (isInside || !path.startsWith(BASE_PATH) || /HEAD|ALL/.test(method)) return [];
      return takesTokens ? [{ method, path: below.replaceAll(/:\w+/g, "999999") }] : [];
    });
    expect(outside.length).toBeGreaterThan(100);
    for (const { method, path } of outside) {
      const body = method === "GET" || method === "DELETE" ? undefined : { surplus: 1 };
      const { status } = await ask(token, path, method, body);
      expect([method, path, status]).toEqual([method, path, 403]);
    }
  });

  test("for reading changes nothing, and the audit log marks changes of one for writing", async () => {
    const path = `/partner/webhooks/${ids[0]}`;
    const reading = await opened({ pages: ["webhooks"] });
    expect((await ask(reading, path)).status).toBe(200);
    expect(said(await ask(reading, path, "PATCH", { label: "x" }))).toEqual([
      403,
      "insufficient_scope",
    ]);
    expect((await ask(reading, `${path}/secret`, "POST", {})).status).toBe(403);
    const writing = await opened({ pages: ["webhooks"], access: "write" });
    expect((await ask(writing, path, "PATCH", { label: "renamed" })).status).toBe(200);
    const details = (await audited("WEBHOOK_UPDATED"))?.details;
    expect(details?.["portal_session"]).toBe(
      (await audited("PORTAL_LINK_REDEEMED"))?.details["session_id"],
    );
  });

  test("for one subscription sees no other one, and creates none", async () => {
    const token = await opened({ pages: [`webhooks/${ids[1]}`], access: "write" });
    const list = await ask(token, "/partner/webhooks");
    expect((list.body["data"] as { id: string }[]).map(({ id }) => id)).toEqual([ids[1]]);
    expect((await ask(token, `/partner/webhooks/${ids[1]}/health`)).status).toBe(200);
    for (const rest of ["", "/health", "/deliveries", "/messages", "/stats", "/stream"])
      expect((await ask(token, `/partner/webhooks/${ids[0]}${rest}`)).status).toBe(404);
    expect((await ask(token, `/partner/webhooks/${ids[0]}`, "DELETE")).status).toBe(404);
    expect((await ask(token, `/partner/webhooks/${ids[0]}/secret`, "POST", {})).status).toBe(404);
    const body = { label: "x", delivery_kind: "immediate", webhook_url: "http://127.0.0.1:9/x" };
    expect((await ask(token, "/partner/webhooks", "POST", body)).status).toBe(403);
  });

  test("does not learn the name and the address of its creator", async () => {
    const token = await opened({ pages: ["webhooks"] });
    const { body } = await ask(token, "/verify-token");
    const { id } = tenants.partners[0].owner;
    expect(body["user"]).toMatchObject({ id, role: "partner_owner", name: "", email: "" });
    expect(JSON.stringify(body)).not.toContain(tenants.partners[0].owner.email);
  });

  test("sees nothing of another partner", async () => {
    const token = await opened({ pages: ["webhooks"] }, rival);
    expect((await ask(token, "/partner/webhooks")).body["data"]).toEqual([]);
    expect((await ask(token, `/partner/webhooks/${ids[0]}`)).status).toBe(404);
  });

  test("is listed among the sessions of its creator, who may end it", async () => {
    const { token } = await freshAdmin();
    const session = await opened({ pages: ["webhooks"] }, token);
    const list = (await ask(token, "/account/sessions")).body["data"] as {
      id: string;
      method: string;
    }[];
    const found = list.find(({ method }) => method === "portal");
    expect((await ask(token, `/account/sessions/${found?.id}`, "DELETE")).status).toBe(204);
    expect((await ask(session, "/partner/webhooks")).status).toBe(401);
  });
});

describe("the origins that may frame the portal", () => {
  const allow = (origins: readonly string[], token = owner) =>
    ask(token, "/partner/embedding", "PATCH", { origins });
  async function policyOf(token: string, headers?: Record<string, string>): Promise<string> {
    const { pathname } = new URL(String((await link({ pages: ["webhooks"] }, token)).body["url"]));
    const page = await api.call("GET", pathname, { root: true, ...(headers && { headers }) });
    expect(page.status).toBe(200);
    return (
      /frame-ancestors [^;]*/.exec(page.headers.get("content-security-policy") ?? "")?.[0] ?? ""
    );
  }

  test("are none until the partner sets them, and never those of other partners", async () => {
    expect((await ask(owner, "/partner/embedding")).body).toEqual({ origins: [] });
    expect(await policyOf(owner)).toBe("frame-ancestors 'none'");
    const origins = ["https://a--b.example-1.com:65535", "http://localhost:1"];
    expect((await allow(origins)).body).toEqual({ origins });
    expect(await policyOf(owner)).toBe(`frame-ancestors ${origins.join(" ")}`);
    expect(await policyOf(rival)).toBe("frame-ancestors 'none'");
    expect((await audited("EMBEDDING_UPDATED"))?.details).toMatchObject({
      origins: 2,
      token: { kind: "access", client_id: null },
      changes: { origins: { from: [], to: expect.any(Array) } },
    });
    const unknown = await api.call("GET", "/embed/01j00000000000000000000000/webhooks", {
      root: true,
    });
    expect(unknown.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    const dashboard = await api.call("GET", "/dashboard", { root: true });
    expect(dashboard.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    await allow([]);
  });

  test("and our own origin, where a page of ours loads the portal into a frame", async () => {
    const headers = { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "iframe" };
    expect(await policyOf(owner, headers)).toBe("frame-ancestors 'self'");
    await allow(["https://app.example.com"]);
    expect(await policyOf(owner, headers)).toBe("frame-ancestors 'self' https://app.example.com");
    for (const other of [
      { ...headers, "Sec-Fetch-Site": "cross-site" },
      { ...headers, "Sec-Fetch-Site": "same-site" },
      { ...headers, "Sec-Fetch-Dest": "document" },
    ])
      expect(await policyOf(owner, other)).toBe("frame-ancestors https://app.example.com");
    await allow([]);
  });

  test.each([
    "http://app.example.com",
    "https://app.example.com/",
    "https://app.example.com:443",
    "https://APP.example.com",
    "https://*.example.com",
    "https://a;script-src",
    "https://a,b",
    "https://a'b",
    "https://user@app.example.com",
    "http://127.0.0.1.example.com",
    "http://[::1]:8080",
    "https://a.example:0",
    "https://a.example:65536",
    "https://-",
    "https://-a.example",
    "https://a-.example",
    "null",
    "*",
    "data:",
  ])("are never %s", async (origin) => {
    const answer = await allow(["https://fine.example.com", origin]);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual(["origins.1"]);
  });

  test("are at most ten, without repeats", async () => {
    const many = Array.from({ length: 11 }, (_, n) => `https://host-${n}.example.com`);
    expect((await allow(many.slice(0, 10))).status).toBe(200);
    expect((await allow(many)).status).toBe(422);
    expect((await allow(["https://a.example.com", "https://a.example.com"])).status).toBe(422);
    await allow([]);
  });

  test("are set only with a token of all scopes", async () => {
    const body = { name: "writes", scopes: ["webhooks:write"] };
    const made = await ask(owner, "/account/personal-access-tokens", "POST", body);
    const narrow = String(made.body["access_token"]);
    expect((await allow([], narrow)).status).toBe(403);
  });
});

describe("a viewer that floods the API", () => {
  /** So few that no bucket regains a request during the test. */
  const perMinute = 0.01;
  const BURST = 40;
  const SESSION = BURST / 4;
  let counting: TestApi;
  let redis: Awaited<ReturnType<typeof connectRedis>>;
  beforeAll(async () => {
    redis = await connectRedis(process.env["TEST_REDIS_URL"] ?? "", silentLog);
    const limits = { perMinute, burst: BURST };
    const limiter = createRateLimiter({
      redis,
      prefix: `test-${crypto.randomUUID()}:`,
      clock: systemClock,
      log: silentLog,
      limits: { user: limits, ip: { perMinute, burst: 10_000 }, signIn: limits },
    });
    counting = await startApi({ db: database.db, clock, config: api.deps.config, limiter });
  });
  afterAll(() => redis.disconnect());
  const statusOf = async (
    token: string,
    path = "/partner/webhooks",
    method = "GET",
    body?: object,
  ) => (await counting.call(method, path, { token, body })).status;
  const statusesOf = async (token: string, times: number) => {
    const seen: number[] = [];
    for (let i = 0; i < times; i++) seen.push(await statusOf(token));
    return seen;
  };

  test("gets a quarter of a user's requests, and does not use up those of other viewers and of the creator", async () => {
    const { token: maker } = await freshAdmin();
    const [rude, other] = [
      await opened({ pages: ["webhooks"] }, maker),
      await opened({ pages: ["webhooks"] }, maker),
    ];
    const seen = await statusesOf(rude, SESSION + 60);
    expect(seen).toEqual([
      ...Array.from({ length: SESSION }, () => 200),
      ...Array.from({ length: 60 }, () => 429),
    ]);
    const answer = await counting.call("GET", "/partner/webhooks", { token: rude });
    expect(answer.headers.get("ratelimit-limit")).toBe(String(SESSION));
    expect(answer.headers.get("ratelimit-policy")).toBe(`${perMinute / 4};w=60;burst=${SESSION}`);
    const links = { pages: ["webhooks"] };
    expect(await statusOf(other)).toBe(200);
    expect(await statusOf(maker, "/partner/portal-links", "POST", links)).toBe(201);
    expect(await statusesOf(maker, BURST)).toEqual([
      ...Array.from({ length: BURST - 1 }, () => 200),
      429,
    ]);
    expect(await statusesOf(other, SESSION)).toEqual([
      ...Array.from({ length: SESSION - 1 }, () => 200),
      429,
    ]);
  });

  test("shares a limit with all other sessions of the creator, four times that of a user", async () => {
    const { token: maker } = await freshAdmin();
    const sessions = await Promise.all(
      Array.from({ length: 17 }, () => opened({ pages: ["webhooks"] }, maker)),
    );
    const last = sessions.pop() ?? "";
    for (const session of sessions)
      expect(await statusesOf(session, SESSION)).toEqual(
        Array.from({ length: SESSION }, () => 200),
      );
    expect(await statusOf(last)).toBe(429);
    expect(await statusOf(maker)).toBe(200);
    const foreign = await opened({ pages: ["webhooks"] });
    expect(await statusOf(foreign)).toBe(200);
  });
});

let owner: string;
let root: string;
const clock = createFakeClock();

const ask = (token: string, path: string, method = "GET", body?: unknown): Promise<Answer> =>
  api.call(method, path, { token, body });

const link = (body: object, token = owner) => ask(token, "/partner/portal-links", "POST", body);

let rival: string;

let ids: readonly [immediate: string, batch: string];

beforeAll(async () => {
  const [one, two] = tenants.partners;
  owner = await api.login(one.owner.email);
  rival = await api.login(two.owner.email);
  root = await api.login(tenants.superAdmin.email);
  ids = [await subscribe(owner, "immediate"), await subscribe(owner, "batch")];
});

async function subscribe(token: string, delivery_kind: "immediate" | "batch"): Promise<string> {
  const batch = delivery_kind === "batch" ? { batch_interval_hours: 4 } : {};
  const body = {
    label: delivery_kind,
    delivery_kind,
    webhook_url: "http://127.0.0.1:9/x",
    ...batch,
  };
  const made = await api.call("POST", "/partner/webhooks", { token, body });
  return String(made.body["id"]);
}

function redeem(url: string): Promise<Answer> {
  const { pathname, hash } = new URL(url);
  const code = hash.slice("#code=".length);
  return api.call("POST", `${pathname}/session`, { body: { code } });
}

const urlOf = ({ body }: Answer) => String(body["url"]);

const codeOf = (made: Answer) => new URL(urlOf(made)).hash.slice("#code=".length);

const said = ({ status, body }: Answer) => [status, body["code"]];

async function opened(body: object, token = owner): Promise<string> {
  const session = await redeem(urlOf(await link(body, token)));
  expect(session.status).toBe(200);
  return String(session.body["token"]);
}

let people = 0;

async function freshAdmin(): Promise<{ user: TestUser; token: string }> {
  const companyId = tenants.partners[0].id;
  const email = `portal-${++people}@p1.test`;
  const user = await addUser(database.db, { companyId, role: "partner_admin", email });
  return { user, token: await api.login(email) };
}

async function audited(action: string) {
  const rows = await database.db.sql<{ details: Record<string, unknown>; actor: number }[]>`
    select details, actor_id as actor from audit_log where action = ${action} order by id`;
  return rows.at(-1);
}
