import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";

import { and, eq } from "drizzle-orm";
import { decodeJwt } from "jose";

import { auditLog, companies } from "../../../db/schema/companies.ts";
import { oauthClients, tokens } from "../../../db/schema/tokens.ts";
import { PASSWORD, startApi, type Answer, type TestApi } from "../../support/api.ts";
import { behindReset } from "../../support/auth-races.ts";
import {
  addClient,
  basicOf,
  credentialsOf,
  postForm,
  type Form,
  type TestClient,
} from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

describe("the password grant", () => {
  test("returns an access token that works and a refresh token", async () => {
    const { status, body, headers } = await token(passwordForm(await freshUser()));
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: "Bearer",
      expires_in: 86_400,
      refresh_token: expect.any(String),
      scope: "*",
    });
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("pragma")).toBe("no-cache");
    expect(headers.get("content-type")).toStartWith("application/json");
    expect(await statusOf(body["access_token"])).toBe(200);
  });

  test("accepts the client's credentials by Basic as well, with form-encoded parts", async () => {
    const user = await freshUser();
    const form = { ...passwordForm(user), client_id: undefined, client_secret: undefined };
    expect((await token(form, basicOf(client))).status).toBe(200);
    const encoded = basicOf({ ...client, clientId: client.clientId.replaceAll("-", "%2D") });
    expect((await token(form, encoded)).status).toBe(200);
    expect((await token({ ...form, client_id: client.clientId }, basicOf(client))).status).toBe(
      200,
    );
  });

  test("gives the requested scope in the requested order, and no more than the client's", async () => {
    const user = await freshUser();
    const narrow = await addClient(database.db, {
      firstParty: true,
      scopes: ["reviews:read", "webhooks:read"],
    });
    const asked = (scope?: string) =>
      token(passwordForm(user, { ...credentialsOf(narrow), scope }));
    expect((await asked("webhooks:read reviews:read")).body["scope"]).toBe(
      "webhooks:read reviews:read",
    );
    expect((await asked()).body["scope"]).toBe("reviews:read webhooks:read");
    expect((await asked("*")).body["error"]).toBe("invalid_scope");
  });

  test("of a partner's client answers users of other tenants like a wrong password", async () => {
    const [p1, p2] = tenants.partners;
    const own = await addClient(database.db, { firstParty: true, companyId: p1.id });
    const statuses = await Promise.all(
      [p1.owner, p1.accounts[0].owner, p2.owner, p2.accounts[0].owner, tenants.superAdmin].map(
        async (user) => (await token(passwordForm(user, credentialsOf(own)))).status,
      ),
    );
    expect(statuses).toEqual([200, 200, 400, 400, 400]);
  });

  test("gives no refresh token to a client that may not refresh", async () => {
    const once = await addClient(database.db, { firstParty: true, grantTypes: ["password"] });
    const { body } = await token(passwordForm(await freshUser(), credentialsOf(once)));
    expect(body["access_token"]).toBeString();
    expect(body["refresh_token"]).toBeUndefined();
  });

  test("shares the sign-in lock with login, and reports the wait", async () => {
    const user = await freshUser();
    for (let i = 0; i < 5; i++)
      expect((await token(passwordForm(user, { password: "wrong" }))).body["error"]).toBe(
        "invalid_grant",
      );
    const { status, body, headers } = await token(passwordForm(user));
    expect([status, body["error"]]).toEqual([429, "invalid_grant"]);
    expect(headers.get("retry-after")).toBe("60");
    const login = { email: user.email, password: PASSWORD };
    expect((await api.call("POST", "/login", { body: login })).status).toBe(429);
  });

  test("with a client that fails to authenticate never touches the lock", async () => {
    const user = await freshUser();
    for (let i = 0; i < 6; i++) await token(passwordForm(user, { client_secret: "wrong" }));
    expect((await token(passwordForm(user))).status).toBe(200);
  });
});

describe("the errors of the token endpoint", () => {
  let user: TestUser;
  let weak: TestClient;
  let open: TestClient;
  let third: TestClient;
  beforeAll(async () => {
    user = await freshUser();
    weak = await addClient(database.db, { firstParty: true, grantTypes: ["authorization_code"] });
    open = await addClient(database.db, { firstParty: true, confidential: false });
    third = await addClient(database.db);
  });

  const rows: [name: string, change: () => Form, status: number, error: string][] = [
    ["a wrong password", () => ({ password: "wrong" }), 400, "invalid_grant"],
    ["an unknown email", () => ({ username: "nobody@p1.test" }), 400, "invalid_grant"],
    ["a wrong client_secret", () => ({ client_secret: "wrong" }), 401, "invalid_client"],
    ["an unknown client_id", () => ({ client_id: randomUUID() }), 401, "invalid_client"],
    ["a client_id that is no id", () => ({ client_id: "a'; --" }), 401, "invalid_client"],
    ["no client_id", () => ({ client_id: undefined }), 401, "invalid_client"],
    ["no client_secret", () => ({ client_secret: undefined }), 401, "invalid_client"],
    ["no credentials", () => ({ client_id: "", client_secret: "" }), 401, "invalid_client"],
    ["no grant_type", () => ({ grant_type: undefined }), 400, "unsupported_grant_type"],
    ["an empty grant_type", () => ({ grant_type: "" }), 400, "unsupported_grant_type"],
    [
      "client_credentials",
      () => ({ grant_type: "client_credentials" }),
      400,
      "unsupported_grant_type",
    ],
    ["no username", () => ({ username: undefined }), 400, "invalid_request"],
    ["an empty username", () => ({ username: "" }), 400, "invalid_request"],
    ["no password", () => ({ password: undefined }), 400, "invalid_request"],
    ["no refresh_token", () => ({ grant_type: "refresh_token" }), 400, "invalid_request"],
    ["no code", () => ({ grant_type: "authorization_code" }), 400, "invalid_request"],
    ["an unknown scope", () => ({ scope: "reviews:delete" }), 400, "invalid_scope"],
    ["a scope that no grant gives", () => ({ scope: "password:reset" }), 400, "invalid_scope"],
    ["a client without the grant", () => credentialsOf(weak), 400, "unauthorized_client"],
    ["a third-party client", () => credentialsOf(third), 400, "unauthorized_client"],
    [
      "a public client",
      () => ({ client_id: open.clientId, client_secret: undefined }),
      400,
      "unauthorized_client",
    ],
    ["a public client with a secret", () => credentialsOf(open), 401, "invalid_client"],
    [
      "an unknown refresh token",
      () => ({ grant_type: "refresh_token", refresh_token: "a.b.c" }),
      400,
      "invalid_grant",
    ],
    [
      "an unknown code",
      () => ({ grant_type: "authorization_code", code: "x", redirect_uri: "https://app.example" }),
      400,
      "invalid_grant",
    ],
  ];
  test.each(rows)("for %s have the right status and code", async (_, change, status, error) => {
    const answer = await token({ ...passwordForm(user), ...change() });
    expect([answer.status, answer.body["error"]]).toEqual([status, error]);
    expect(Object.keys(answer.body).toSorted()).toEqual(["error", "error_description"]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("www-authenticate")).toBeNull();
    expect(answer.headers.get("x-request-id")).toBeTruthy();
  });

  test("are checked in the order of grant type, parameters, client, user", async () => {
    const worst = { client_id: "no", client_secret: "no", password: undefined, scope: "none" };
    const step = async (change: Form) =>
      (await token({ ...passwordForm(user), ...worst, ...change })).body["error"];
    expect(await step({ grant_type: "implicit" })).toBe("unsupported_grant_type");
    expect(await step({})).toBe("invalid_request");
    expect(await step({ password: "wrong", scope: "*" })).toBe("invalid_client");
    expect(await step({ password: "wrong", scope: "*", ...credentialsOf(client) })).toBe(
      "invalid_grant",
    );
  });

  test.each(["grant_type", "username", "password", "client_id", "client_secret", "scope", "x"])(
    "include invalid_request for a repeated %s",
    async (name) => {
      const form = new URLSearchParams(Object.entries(passwordForm(user)) as [string, string][]);
      form.append(name, form.get(name) ?? "*");
      form.append(name, "*");
      const { status, body } = await token(form.toString());
      expect([status, body["error"]]).toEqual([400, "invalid_request"]);
    },
  );

  test("ask for Basic if Basic was used and was wrong or malformed", async () => {
    const form = { ...passwordForm(user), client_id: undefined, client_secret: undefined };
    for (const headers of [
      basicOf({ ...client, secret: "wrong" }),
      { Authorization: "Basic !" },
      { Authorization: "Basic bm8gY29sb24=" },
      { Authorization: "Bearer x" },
    ]) {
      const answer = await token(form, headers);
      expect([answer.status, answer.body["error"]]).toEqual([401, "invalid_client"]);
      expect(answer.headers.get("www-authenticate")).toStartWith("Basic");
    }
  });

  test("include invalid_request for credentials in the body beside Basic", async () => {
    const { status, body } = await token(passwordForm(user), basicOf(client));
    expect([status, body["error"]]).toEqual([400, "invalid_request"]);
    const ids = { ...passwordForm(user), client_id: weak.clientId, client_secret: undefined };
    expect((await token(ids, basicOf(client))).body["error"]).toBe("invalid_request");
  });

  test("have the same form for a JSON body, broken UTF-8, a large body and a wrong method", async () => {
    const json = await token(JSON.stringify(passwordForm(user)), {
      "Content-Type": "application/json",
    });
    const broken = await token("grant_type=%ff");
    const large = await token(`grant_type=${"x".repeat(70_000)}`);
    const get = await api.call("GET", "/oauth/token", { root: true });
    for (const [answer, status] of [
      [json, 400],
      [broken, 400],
      [large, 413],
      [get, 405],
    ] as const) {
      expect([answer.status, answer.body["error"]]).toEqual([status, "invalid_request"]);
      expect(Object.keys(answer.body).toSorted()).toEqual(["error", "error_description"]);
    }
    expect(get.headers.get("allow")).toBe("POST");
  });

  test("have the same form for an unknown path below /oauth", async () => {
    for (const path of ["/oauth", "/oauth/nope", "/oauth/token/x"]) {
      const { status, body } = await api.call("POST", path, { root: true });
      expect([status, body["error"]]).toEqual([404, "invalid_request"]);
    }
  });

  test("treat a request without a body as a form without parameters", async () => {
    const { status, body } = await api.call("POST", "/oauth/token", { root: true });
    expect([status, body["error"]]).toEqual([400, "unsupported_grant_type"]);
  });

  test("ignore parameters in the URL", async () => {
    const query = new URLSearchParams(Object.entries(passwordForm(user)) as [string, string][]);
    const { body } = await postForm(api, `/oauth/token?${query.toString()}`, "");
    expect(body["error"]).toBe("unsupported_grant_type");
  });

  test("have the same form for a request over the rate limit", async () => {
    const limit = { perMinute: 60, burst: 1 };
    const taken = { allowed: false, remaining: 0, limit, fullInS: 1, nextInS: 7 };
    const limited = await startApi({
      db: database.db,
      clock,
      config: api.deps.config,
      limiter: { take: async () => taken, unchecked: 0 },
    });
    const { status, body, headers } = await token(passwordForm(user), {}, limited);
    expect([status, body["error"]]).toEqual([429, "temporarily_unavailable"]);
    expect(headers.get("retry-after")).toBe("7");
    expect(headers.get("ratelimit-remaining")).toBe("0");
  });

  test("include invalid_client for a client of an inactive tenant", async () => {
    const [, p2] = tenants.partners;
    const own = await addClient(database.db, { firstParty: true, companyId: p2.id });
    const set = (isActive: boolean) =>
      database.db.update(companies).set({ isActive }).where(eq(companies.id, p2.id));
    await set(false);
    const { status, body } = await token(passwordForm(p2.owner, credentialsOf(own)));
    await set(true);
    expect([status, body["error"]]).toEqual([401, "invalid_client"]);
  });
});

describe("a refresh", () => {
  test("of 50 at once in two processes is answered 200 once and 400 invalid_grant otherwise, and the new token works", async () => {
    const first = await signIn(await freshUser());
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        token(refreshForm(first["refresh_token"]), {}, i % 2 ? api : other),
      ),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    const lost = answers.filter(({ status }) => status !== 200);
    expect(new Set(lost.map(({ status, body }) => `${status} ${String(body["error"])}`))).toEqual(
      new Set(["400 invalid_grant"]),
    );
    const child = won[0]?.body ?? {};
    expect(await statusOf(child["access_token"])).toBe(200);
    expect((await token(refreshForm(child["refresh_token"]))).status).toBe(200);
  });

  test("repeated within 10 s is rejected; later it ends the family and is audited", async () => {
    const user = await freshUser();
    const first = await signIn(user);
    const [row] = await tokensOf(user.id);
    const { body: next } = await token(refreshForm(first["refresh_token"]));
    clock.advance(10_000);
    expect((await token(refreshForm(first["refresh_token"]))).body["error"]).toBe("invalid_grant");
    for (const access of [first["access_token"], next["access_token"]])
      expect(await statusOf(access)).toBe(200);
    clock.advance(1);
    expect((await token(refreshForm(first["refresh_token"]))).body["error"]).toBe("invalid_grant");
    for (const access of [first["access_token"], next["access_token"]])
      expect(await statusOf(access)).toBe(401);
    expect((await token(refreshForm(next["refresh_token"]))).body["error"]).toBe("invalid_grant");
    const replays = await database.db
      .select()
      .from(auditLog)
      .where(and(eq(auditLog.actorId, user.id), eq(auditLog.action, "REFRESH_REPLAYED")));
    expect(replays).toMatchObject([{ details: { session_id: row?.familyId, revoked: 4 } }]);
  });

  test("may narrow the scope and never widen it, and the next refresh token keeps the scope", async () => {
    const user = await freshUser();
    const { body } = await token(passwordForm(user, { scope: "reviews:read webhooks:read" }));
    const wide = await token(refreshForm(body["refresh_token"], { scope: "reviews:write" }));
    expect([wide.status, wide.body["error"]]).toEqual([400, "invalid_scope"]);
    const narrow = await token(refreshForm(body["refresh_token"], { scope: "reviews:read" }));
    expect(narrow.body["scope"]).toBe("reviews:read");
    const next = await token(refreshForm(narrow.body["refresh_token"]));
    expect(next.body["scope"]).toBe("reviews:read webhooks:read");
  });

  test("is possible for 30 days from each issue, to the last millisecond", async () => {
    const [inTime, late] = [await signIn(await freshUser()), await signIn(await freshUser())];
    clock.advance(REFRESH_TTL_MS - 1);
    const next = await token(refreshForm(inTime["refresh_token"]));
    expect(next.status).toBe(200);
    clock.advance(1);
    expect((await token(refreshForm(late["refresh_token"]))).body["error"]).toBe("invalid_grant");
    clock.advance(REFRESH_TTL_MS - 2);
    expect((await token(refreshForm(next.body["refresh_token"]))).status).toBe(200);
  });

  test("is possible until the last day of its sign-in, to the millisecond, and not at all after it", async () => {
    const limited = await limitedTo(40);
    const on = (form: Form) => token(form, {}, limited);
    const user = await freshUser();
    const [one, two] = [await on(passwordForm(user)), await on(passwordForm(user))];
    clock.advance(20 * DAY_MS);
    const next = await on(refreshForm(one.body["refresh_token"]));
    const late = await on(refreshForm(two.body["refresh_token"]));
    // The 30 days of the new refresh token would end later.
    const lastS = Math.floor(clock.now().getTime() / 1000) + 20 * 86_400;
    expect(decodeJwt(String(next.body["refresh_token"])).exp).toBe(lastS);
    clock.advance(20 * DAY_MS - 1);
    const last = await on(refreshForm(next.body["refresh_token"]));
    expect(last.status).toBe(200);
    clock.advance(1);
    expect((await on(refreshForm(late.body["refresh_token"]))).body["error"]).toBe("invalid_grant");
    // The last access token lives to its own end.
    expect(await statusOf(last.body["access_token"], limited)).toBe(200);
    clock.advance(DAY_MS);
    expect(await statusOf(last.body["access_token"], limited)).toBe(401);
  });

  test("of a sign-in from before the last day was set is refused after it, and ends nothing else", async () => {
    const form = refreshForm((await signIn(await freshUser()))["refresh_token"]);
    clock.advance(25 * DAY_MS);
    expect((await token(form, {}, await limitedTo(25))).body["error"]).toBe("invalid_grant");
    expect((await token(form, {}, await limitedTo(26))).status).toBe(200);
  });

  test("follows a client whose scopes were reduced since", async () => {
    const shrinking = await addClient(database.db, { firstParty: true });
    const { body } = await token(passwordForm(await freshUser(), credentialsOf(shrinking)));
    await database.db
      .update(oauthClients)
      .set({ scopes: ["reviews:read"] })
      .where(eq(oauthClients.clientId, shrinking.clientId));
    const form = refreshForm(body["refresh_token"], credentialsOf(shrinking));
    expect((await token({ ...form, scope: "reviews:write" })).body["error"]).toBe("invalid_scope");
    expect((await token(form)).body["scope"]).toBe("reviews:read");
  });

  test("of another client's token is rejected and leaves the token as it is", async () => {
    const first = await signIn(await freshUser());
    const stranger = await addClient(database.db, { firstParty: true });
    const form = refreshForm(first["refresh_token"], credentialsOf(stranger));
    expect((await token(form)).body["error"]).toBe("invalid_grant");
    expect((await token(refreshForm(first["refresh_token"]))).status).toBe(200);
  });
});

describe("behind a password reset", () => {
  test("a refresh is rejected", async () => {
    const user = await freshUser();
    const form = refreshForm((await signIn(user))["refresh_token"]);
    const late = await behindReset(database.db, user.id, () => token(form, {}, other));
    expect([late.status, late.body["error"]]).toEqual([400, "invalid_grant"]);
    expect(await tokensOf(user.id)).toEqual([]);
  });
});

describe("refreshes that race with", () => {
  test.each(Object.entries(ENDINGS))("%s leave no token of the sign-ins", async (_, end) => {
    for (let round = 0; round < 4; round++) {
      const user = await freshUser();
      const as = await addClient(database.db, { firstParty: true });
      const form = passwordForm(user, credentialsOf(as));
      const sessions = [await token(form), await token(form), await token(form)];
      const own = await api.login(user.email);
      const chases = sessions.map(({ body }, i) =>
        chase(body["refresh_token"], i % 2 ? api : other, as),
      );
      const ended = await end({ client: as, sessions: sessions.map(({ body }) => body), own });
      for (const { status } of ended) expect(status).toBeLessThan(300);
      for (const access of (await Promise.all(chases)).flat())
        expect(await statusOf(access)).toBe(401);
      // The token with which the user ended them, or the one that the reset issued.
      expect(await tokensOf(user.id)).toMatchObject([{ kind: "access", clientId: null }]);
    }
  });
});

const world = await startSignInWorld();
const { database, tenants, clock, api, other, freshUser } = world;
const client = await addClient(database.db, { firstParty: true });

afterAll(() => world.stop());

const token = (form: Form | string, headers = {}, on = api) =>
  postForm(on, "/oauth/token", form, headers);

const passwordForm = (user: Pick<TestUser, "email">, more: Form = {}): Form => ({
  grant_type: "password",
  username: user.email,
  password: PASSWORD,
  ...credentialsOf(client),
  ...more,
});

const refreshForm = (refresh: unknown, more: Form = {}): Form => ({
  grant_type: "refresh_token",
  refresh_token: String(refresh),
  ...credentialsOf(client),
  ...more,
});

const statusOf = async (access: unknown, on = api) =>
  (await on.call("GET", "/verify-token", { token: String(access) })).status;

async function signIn(user: TestUser): Promise<Answer["body"]> {
  const { status, body, text } = await token(passwordForm(user));
  if (status !== 200) throw new Error(text);
  return body;
}

const tokensOf = (userId: number) =>
  database.db.select().from(tokens).where(eq(tokens.userId, userId));

const DAY_MS = 86_400_000;

const REFRESH_TTL_MS = 30 * DAY_MS;

/** Starts an API whose sign-ins at clients have a last day. */
const limitedTo = (refreshMaxDays: number) =>
  startApi({
    db: database.connect(),
    clock,
    config: { ...api.deps.config, refreshMaxDays },
  });

/** Refreshes one token after the other until one is rejected. Returns all access tokens that it got. */
async function chase(refresh: unknown, on: TestApi, as: TestClient): Promise<unknown[]> {
  const got: unknown[] = [];
  for (let next = refresh; ;) {
    const { status, body } = await token(refreshForm(next, credentialsOf(as)), {}, on);
    if (status !== 200) {
      expect([400, 401]).toContain(status);
      return got;
    }
    got.push(body["access_token"]);
    next = body["refresh_token"];
  }
}

/** Sign-ins of one user at one client, and a token of the user from login. */
interface Racing {
  readonly client: TestClient;
  readonly sessions: readonly Answer["body"][];
  readonly own: string;
}

/** The requests that end all the sign-ins. */
const ENDINGS: Readonly<Record<string, (racing: Racing) => Promise<Answer[]>>> = {
  "a revocation of their refresh tokens": ({ client: as, sessions }) =>
    Promise.all(
      sessions.map(({ refresh_token: refresh }) =>
        postForm(api, "/oauth/revoke", { token: String(refresh), ...credentialsOf(as) }),
      ),
    ),
  "a logout of each": withAccessTokens("/logout"),
  "a revocation of their access tokens": withAccessTokens("/sso/revoking-token"),
  "the end of the sessions": async ({ own }) => {
    const { body } = await api.call("GET", "/account/sessions", { token: own });
    const sessions = body["data"] as { id: string; is_current: boolean }[];
    return Promise.all(
      sessions
        .filter(({ is_current }) => !is_current)
        .map(({ id }) => api.call("DELETE", `/account/sessions/${id}`, { token: own })),
    );
  },
  "the deletion of the client": async ({ client: { clientId } }) => {
    const root = await api.login(tenants.superAdmin.email);
    return [await api.call("DELETE", `/sso/clients/${clientId}`, { token: root })];
  },
  "a password reset": async ({ own }) => {
    const body = { password: "violet anchor museum 71" };
    return [await api.call("POST", "/reset-password", { token: own, body })];
  },
};

function withAccessTokens(path: string) {
  return ({ sessions }: Racing) =>
    Promise.all(
      sessions.map(({ access_token: access }) => api.call("GET", path, { token: String(access) })),
    );
}
