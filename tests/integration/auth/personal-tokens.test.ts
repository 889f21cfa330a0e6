import { afterAll, describe, expect, test } from "bun:test";

import { and, eq } from "drizzle-orm";
import { decodeJwt } from "jose";

import { oauthClients, tokens } from "../../../db/schema/tokens.ts";
import {
  everyPage,
  startApi,
  type Answer,
  type CallOptions,
  type TestApi,
} from "../../support/api.ts";
import { behindReset } from "../../support/auth-races.ts";
import { until } from "../../support/network/receiver.ts";
import { addClient } from "../../support/oauth.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

describe("the dashboard's personal access token", () => {
  test("can be made, shown again, regenerated and deleted", async () => {
    const { user, token } = await freshLogin();
    expect((await requestContext("GET", DASHBOARD, token)).status).toBe(404);
    const made = await requestContext("POST", DASHBOARD, token);
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      token: expect.any(String),
      created_at: isoNow(),
      last_used_at: null,
    });
    expect(made.headers.get("cache-control")).toBe("no-store");
    const shown = await requestContext("GET", DASHBOARD, token);
    expect(shown).toMatchObject({ status: 200, body: made.body });
    expect((await requestContext("POST", DASHBOARD, token)).body).toMatchObject({
      code: "token_exists",
    });
    expect((await requestContext("POST", DASHBOARD, token)).status).toBe(409);
    const next = await requestContext("POST", `${DASHBOARD}/regenerate`, token);
    expect(next.status).toBe(200);
    expect(await statusOf(tokenOf(made), other)).toBe(401);
    expect(await statusOf(tokenOf(next), other)).toBe(200);
    expect(decodeJwt(tokenOf(next))).toMatchObject({ sub: String(user.id), scope: "*" });
    expect((await requestContext("DELETE", DASHBOARD, token)).status).toBe(204);
    expect(await statusOf(tokenOf(next), other)).toBe(401);
    for (const [method, path] of [
      ["GET", DASHBOARD],
      ["DELETE", DASHBOARD],
      ["POST", `${DASHBOARD}/regenerate`],
    ] as const)
      expect((await requestContext(method, path, token)).status).toBe(404);
  });

  test("outlives the sign-in that made it", async () => {
    const { token } = await freshLogin();
    const pat = tokenOf(await requestContext("POST", DASHBOARD, token));
    await requestContext("GET", "/logout", token);
    expect(await statusOf(pat)).toBe(200);
  });

  test("leaves an audit row when it is made, viewed, used, regenerated and deleted", async () => {
    const { user, token } = await freshLogin();
    const headers = { "X-Request-Id": `pat-audit-${user.id}` };
    const pat = tokenOf(await requestContext("POST", DASHBOARD, token, { headers }));
    await requestContext("GET", DASHBOARD, token, { headers });
    await requestContext("GET", "/verify-token", pat, { headers });
    await untilAudited(headers["X-Request-Id"], 3);
    await requestContext("POST", `${DASHBOARD}/regenerate`, token, { headers });
    await requestContext("DELETE", DASHBOARD, token, { headers });
    const rows = await auditOf(headers["X-Request-Id"]);
    expect(rows.map((row) => row.action)).toEqual([
      "TOKEN_ISSUED",
      "TOKEN_VIEWED",
      "TOKEN_USED",
      "TOKEN_REVOKED",
      "TOKEN_ISSUED",
      "TOKEN_REVOKED",
    ]);
    expect(new Set(rows.map((row) => row.actorId))).toEqual(new Set([user.id]));
    expect(rows.every((row) => (row.details as { kind?: string }).kind === "dashboard_pat")).toBe(
      true,
    );
    expect(JSON.stringify(rows)).not.toContain(pat);
  });

  test("is audited as used once per hour of the clock, and shows its last use", async () => {
    const { user, token } = await freshLogin();
    const pat = tokenOf(await requestContext("POST", DASHBOARD, token));
    // Advances the clock to the beginning of an hour.
    clock.advance(HOUR_MS - (clock.now().getTime() % HOUR_MS));
    const headers = { "X-Request-Id": `pat-hour-${user.id}` };
    const use = (on = api) => requestContext("GET", "/verify-token", pat, { headers, on });
    await Promise.all([use(), use(other), use(), use(other)]);
    await untilAudited(headers["X-Request-Id"], 1);
    clock.advance(HOUR_MS - 1);
    await use();
    await untilUsed(user.id);
    expect(await auditOf(headers["X-Request-Id"])).toHaveLength(1);
    clock.advance(60_001);
    await use();
    await untilAudited(headers["X-Request-Id"], 2);
    const fresh = await api.login(user.email);
    expect((await requestContext("GET", DASHBOARD, fresh)).body["last_used_at"]).toBe(isoNow());
  });

  test("is made once when 20 requests make it at once", async () => {
    const { user, token } = await freshLogin();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        requestContext("POST", DASHBOARD, token, { on: i % 2 ? api : other }),
      ),
    );
    const statuses = answers.map((answer) => answer.status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    expect(await livingPats(user.id)).toHaveLength(1);
  });

  test("is the last one when 20 requests regenerate it at once; the others are dead", async () => {
    const { user, token } = await freshLogin();
    await requestContext("POST", DASHBOARD, token);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        requestContext("POST", `${DASHBOARD}/regenerate`, token, { on: i % 2 ? api : other }),
      ),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    expect(await livingPats(user.id)).toHaveLength(1);
    const alive = await Promise.all(answers.map((answer) => statusOf(tokenOf(answer), other)));
    expect(alive.filter((status) => status === 200)).toHaveLength(1);
    const kept = answers[alive.indexOf(200)];
    expect((await requestContext("GET", DASHBOARD, token)).body["token"]).toBe(
      tokenOf(kept as Answer),
    );
  });

  test("stays valid if making its successor fails", async () => {
    const { token } = await freshLogin();
    const pat = tokenOf(await requestContext("POST", DASHBOARD, token));
    const { keys, config } = api.deps;
    const broken = await startApi({
      db: database.db,
      clock,
      config,
      keys: {
        ...keys,
        verify: (type, text) => keys.verify(type, text),
        sign: () => Promise.reject(new Error("no key")),
      },
    });
    expect(
      (await requestContext("POST", `${DASHBOARD}/regenerate`, token, { on: broken })).status,
    ).toBe(500);
    expect(await statusOf(pat)).toBe(200);
    expect((await requestContext("GET", DASHBOARD, token)).body["token"]).toBe(pat);
  });

  test.each([
    ["POST", DASHBOARD, undefined],
    ["POST", `${DASHBOARD}/regenerate`, undefined],
    ["POST", API, { name: "a" }],
  ] as const)(
    "is not created by %s %s after a password reset that runs meanwhile",
    async (method, path, body) => {
      const { user, token } = await freshLogin();
      const answer = await behindReset(database.db, user.id, () =>
        requestContext(method, path, token, { on: other, body }),
      );
      expect(answer.status).toBe(401);
      const rows = await database.db.select().from(tokens).where(eq(tokens.userId, user.id));
      expect(rows).toEqual([]);
    },
  );
});

describe("a personal access token of the API", () => {
  test("is issued for a day, listed with its last use, and deleted", async () => {
    const { token } = await freshLogin();
    const made = await make(token, { name: "nightly import", scopes: ["reviews:read"] });
    expect(made.status).toBe(201);
    const issuedAt = isoNow();
    const expires = new Date(clock.now().getTime() + 86_400_000).toISOString();
    const { id } = made.body["token"] as { id: string };
    expect(made.body).toEqual({
      access_token: expect.any(String),
      token: { id, name: "nightly import", expires_at: expires.replace("Z", "+00:00") },
    });
    expect(made.headers.get("cache-control")).toBe("no-store");
    const pat = String(made.body["access_token"]);
    clock.advance(60_000);
    expect(await statusOf(pat)).toBe(200);
    await untilLastUse(id);
    const list = await requestContext("GET", API, token);
    expect(list.body).toEqual({
      data: [
        {
          id,
          name: "nightly import",
          scopes: ["reviews:read"],
          created_at: issuedAt,
          expires_at: expires.replace("Z", "+00:00"),
          last_used_at: isoNow(),
        },
      ],
      next_cursor: null,
      dashboard_token: null,
    });
    expect(list.text).not.toContain(pat);
    expect((await requestContext("DELETE", `${API}/${id}`, token)).status).toBe(204);
    expect(await statusOf(pat, other)).toBe(401);
    expect((await requestContext("DELETE", `${API}/${id}`, token)).status).toBe(404);
  });

  test("is listed beside the token of the dashboard, whose value and reading are left out", async () => {
    const { user, token } = await freshLogin();
    const made = await requestContext("POST", DASHBOARD, token);
    const list = await requestContext("GET", API, token);
    expect(list.body["dashboard_token"]).toEqual({ created_at: isoNow(), last_used_at: null });
    expect(list.text).not.toContain(String(made.body["token"]));
    expect((await requestContext("GET", API, (await freshLogin()).token)).body).toMatchObject({
      dashboard_token: null,
    });
    const views = await database.db.sql`
      select from audit_log where action = 'TOKEN_VIEWED' and actor_id = ${user.id}`;
    expect(views.length).toBe(0);
  });

  test("lives a day to the last millisecond, and is not listed afterwards", async () => {
    const { user, token } = await freshLogin();
    const pat = String((await make(token, { name: "a" })).body["access_token"]);
    clock.advance(86_399_999);
    expect(await statusOf(pat)).toBe(200);
    clock.advance(1);
    expect(await statusOf(pat)).toBe(401);
    const fresh = await api.login(user.email);
    expect((await requestContext("GET", API, fresh)).body["data"]).toEqual([]);
  });

  test("has at most the scopes of the caller's token, and all of them by default", async () => {
    const { user, token } = await freshLogin();
    const { clientId } = await addClient(database.db, { firstParty: true });
    const narrow = await firstParty(user, { clientId, scope: "reviews:read webhooks:read" });
    const scopeOf = (answer: Answer) => decodeJwt(String(answer.body["access_token"]))["scope"];
    expect(scopeOf(await make(token, { name: "a" }))).toBe("*");
    expect(scopeOf(await make(narrow, { name: "a" }))).toBe("reviews:read webhooks:read");
    expect(scopeOf(await make(narrow, { name: "a", scopes: ["webhooks:read"] }))).toBe(
      "webhooks:read",
    );
    for (const scopes of [["*"], ["webhooks:write"], ["reviews:read", "impersonate"]])
      expect((await make(narrow, { name: "a", scopes })).body).toMatchObject({
        code: "insufficient_scope",
      });
    const [denied] = await database.db.sql`
      select details from audit_log where action = 'AUTHZ_DENIED' and actor_id = ${user.id} order by id`;
    expect(denied?.["details"]).toEqual({
      scopes: ["*"],
      reason: "insufficient_scope",
      token: { jti: decodeJwt(narrow).jti, kind: "access", client_id: clientId },
    });
  });

  test("is listed in pages, newest first, without a gap between equal instants", async () => {
    const { token } = await freshLogin();
    for (let i = 0; i < 5; i++) await make(token, { name: `token ${i}` });
    clock.advance(1);
    await make(token, { name: "last" });
    const pages = await everyPage<{ name: string }>(api, `${API}?limit=2`, token);
    const seen = pages.flat().map((one) => one.name);
    expect(seen[0]).toBe("last");
    expect(seen.toSorted()).toEqual([
      "last",
      "token 0",
      "token 1",
      "token 2",
      "token 3",
      "token 4",
    ]);
  });

  test("of another user is 403 and audited, a missing one 404", async () => {
    const [mine, theirs] = [await freshLogin(), await freshLogin()];
    const made = await make(theirs.token, { name: "a" });
    const { id } = made.body["token"] as { id: string };
    const headers = { "X-Request-Id": "foreign-pat" };
    expect((await requestContext("DELETE", `${API}/${id}`, mine.token, { headers })).status).toBe(
      403,
    );
    expect(await auditOf("foreign-pat")).toMatchObject([
      { action: "AUTHZ_DENIED", actorId: mine.user.id, details: { token_id: id } },
    ]);
    expect(await statusOf(String(made.body["access_token"]))).toBe(200);
    for (const odd of ["AAAAAAAAAAAAAAAAAAAAAA", "%00", "1", "a".repeat(65), "..%2F"])
      expect((await requestContext("DELETE", `${API}/${odd}`, mine.token)).status).toBe(404);
    // The token of a sign-in is not a personal access token.
    const jti = decodeJwt(mine.token).jti ?? "";
    expect((await requestContext("DELETE", `${API}/${jti}`, mine.token)).status).toBe(404);
  });

  test.each([
    ["with a name of 101 characters", { name: "n".repeat(101) }, ["name"]],
    ["with no scope at all", { name: "a", scopes: [] }, ["scopes"]],
    ["with a scope twice", { name: "a", scopes: ["*", "*"] }, ["scopes"]],
    ["for the password reset", { name: "a", scopes: ["password:reset"] }, ["scopes.0"]],
  ])("%s is 422", async (_, body, fields) => {
    const answer = await make(await api.login(tenants.superAdmin.email), body);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual(fields);
  });

  test("with a name of 100 characters is made", async () => {
    const token = await api.login(tenants.superAdmin.email);
    expect((await make(token, { name: "n".repeat(100) })).status).toBe(201);
  });

  test("is limited to 100 live ones, even if 10 are made at once", async () => {
    const { user, token } = await freshLogin();
    for (let i = 0; i < 95; i++) await grant({ userId: user.id, kind: "api_pat", name: "x" });
    const oneMore = () => make(token, { name: "one more" });
    const made = await Promise.all(Array.from({ length: 10 }, oneMore));
    const refused = made.filter(({ status }) => status !== 201);
    expect(refused.map(({ status, body }) => [status, body["code"]])).toEqual(
      Array.from({ length: 5 }, () => [409, "limit_reached"]),
    );
    const [one] = made.filter(({ status }) => status === 201);
    const { id } = (one?.body["token"] ?? {}) as { id?: string };
    expect((await requestContext("DELETE", `${API}/${id}`, token)).status).toBe(204);
    expect((await oneMore()).status).toBe(201);
    clock.advance(24 * HOUR_MS);
    const next = await api.login(user.email);
    expect(
      (await requestContext("POST", API, next, { body: { name: "a day later" } })).status,
    ).toBe(201);
  });

  test("ends with the client through which it was made", async () => {
    const { user } = await freshLogin();
    const { clientId } = await addClient(database.db, { firstParty: true });
    const token = await firstParty(user, { clientId });
    const pat = String((await make(token, { name: "a" })).body["access_token"]);
    expect(await statusOf(pat)).toBe(200);
    await database.db.delete(oauthClients).where(eq(oauthClients.clientId, clientId));
    expect(await statusOf(pat, other)).toBe(401);
  });
});

const DASHBOARD = "/account/api-token";
const API = "/account/personal-access-tokens";
const world = await startSignInWorld();

const make = (token: string, body: unknown, on = api) =>
  requestContext("POST", API, token, { body, on });

/** Waits for the uses, which are written after the response. */
async function untilAudited(requestId: string, rows: number): Promise<void> {
  await until("the uses", async () => (await auditOf(requestId)).length >= rows);
}
async function untilUsed(userId: number): Promise<void> {
  await until("the last use", async () => {
    const [row] = await livingPats(userId);
    return row?.lastUsedAt?.getTime() === clock.now().getTime();
  });
}
async function untilLastUse(jti: string): Promise<void> {
  await until("the last use", async () => {
    const [row] = await database.db.select().from(tokens).where(eq(tokens.jti, jti));
    return row?.lastUsedAt?.getTime() === clock.now().getTime();
  });
}

const HOUR_MS = 3_600_000;

const { database, tenants, clock, api, other, freshUser, grant, statusOf, auditOf } = world;

afterAll(() => world.stop());

async function freshLogin(role: "partner_admin" | "account_user" = "partner_admin") {
  const user = await freshUser(role);
  return { user, token: await api.login(user.email) };
}

/** Issues the token of a sign-in at a first-party client. */
const firstParty = async (user: TestUser, client: { clientId: string; scope?: string }) =>
  (await sessionOf(world, user, "password_grant", client)).token;

const tokenOf = (answer: Answer) => String(answer.body["token"]);

const isoNow = () => clock.now().toISOString().replace("Z", "+00:00");

const requestContext = (
  method: string,
  path: string,
  token: string,
  { on = api, ...options }: CallOptions & { on?: TestApi } = {},
) => on.call(method, path, { token, ...options });

const livingPats = (userId: number) =>
  database.db
    .select()
    .from(tokens)
    .where(and(eq(tokens.userId, userId), eq(tokens.kind, "dashboard_pat")));
