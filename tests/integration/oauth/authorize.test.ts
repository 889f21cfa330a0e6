import { describe, expect, test } from "bun:test";
import { createHash, randomUUID } from "node:crypto";

import { eq } from "drizzle-orm";

import { auditLog, companies } from "../../../db/schema/companies.ts";
import { tokens } from "../../../db/schema/tokens.ts";
import { purge } from "../../../src/auth/purge.ts";
import { hashSecret } from "../../../src/lib/secrets.ts";
import { PASSWORD, startApi, type Answer } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { inOrder } from "../../support/in-order.ts";
import {
  addClient,
  authorizeParams,
  Browser,
  CALLBACK,
  credentialsOf,
  formOf,
  newPkce,
  obtainCode,
  postForm,
  returned,
  type Form,
  type Pkce,
} from "../../support/oauth.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));
const client = fixture(() =>
  addClient(database.db, {
    companyId: tenants.partners[0].id,
    name: `Bob & "Co" <script>`,
  }),
);
const firstParty = fixture(() => addClient(database.db, { firstParty: true }));
const publicClient = fixture(() => addClient(database.db, { confidential: false }));

describe("the authorization code flow", () => {
  test("signs in, asks for consent, and returns code, state and iss; the code becomes tokens", async () => {
    const [user, pkce, browser] = [await freshUser(), newPkce(), new Browser(api)];
    expectPage(await browser.open(authorizeParams(client, pkce)), 200);
    const asked = await browser.signIn(user.email);
    expectPage(asked, 200);
    expect(asked.text).toContain("everything that you can do here");
    expect(asked.text).toContain("as long as the app renews it within 30 days.");
    const answer = await browser.submit({ action: "allow" });
    expect(answer.status).toBe(303);
    const { place, params } = returned(answer);
    expect(place).toBe(CALLBACK);
    expect(params).toEqual({
      code: expect.stringMatching(/^[0-9a-f]{64}$/),
      state: "state-1",
      iss: api.deps.config.serverRoot,
    });
    const { status, body } = await redeem(params["code"] ?? "", pkce);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      token_type: "Bearer",
      scope: "*",
      refresh_token: expect.any(String),
    });
    expect(await statusOf(body["access_token"])).toBe(200);
    expect(await auditOf(user.id)).toEqual(["CONSENT_GRANTED", "AUTH_LOGIN"]);
  });

  test("issues one code for one consent, however often and in parallel the form is sent", async () => {
    const browser = new Browser(api);
    await browser.open(authorizeParams(client, newPkce()));
    await browser.signIn((await freshUser()).email);
    const { ticket } = browser;
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => browser.submit({ ticket, action: "allow" })),
    );
    answers.push(await browser.submit({ ticket, action: "allow" }));
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([303, ...Array.from({ length: 10 }, () => 400)]);
  });

  const LOOPBACK = "http://127.0.0.1/callback";
  test.each([
    ["confidential", LOOPBACK, "is not"],
    ["public", LOOPBACK, "is"],
  ])("a %s first-party client with the redirect URI %s %s asked about", async (kind, uri, is) => {
    const settings = { confidential: kind === "confidential", redirectUris: [uri] };
    const app = await addClient(database.db, { firstParty: true, ...settings });
    const [user, browser] = [await freshUser(), new Browser(api)];
    await browser.open({ ...authorizeParams(app, newPkce()), redirect_uri: uri });
    const answer = await browser.signIn(user.email);
    expect(answer.text.includes("Allow A client to act for you?")).toBe(is === "is");
    const last = is === "is" ? await browser.submit({ action: "allow" }) : answer;
    expect(returned(last).params["code"]).toBeString();
  });

  test("names the last day of a sign-in at the consent page", async () => {
    const config = { ...api.deps.config, refreshMaxDays: 90 };
    const limited = await startApi({ db: database.connect(), config });
    const [user, browser] = [await freshUser(), new Browser(limited)];
    await browser.open(authorizeParams(client, newPkce()));
    const asked = await browser.signIn(user.email);
    expect(asked.text).toContain("renews it within 30 days, for 90 days at most.");
  });

  test("grants the scope that the page showed, within the client's", async () => {
    const narrow = await addClient(database.db, { scopes: ["reviews:read", "reviews:write"] });
    const [user, pkce] = [await freshUser(), newPkce()];
    const params = authorizeParams(narrow, pkce, { scope: "reviews:read" });
    const code = await obtainCode(api, params, user.email);
    expect((await redeem(code, pkce, credentialsOf(narrow))).body["scope"]).toBe("reviews:read");
    const wide = await new Browser(api).open(authorizeParams(narrow, pkce, { scope: "*" }));
    expect(returned(wide).params["error"]).toBe("invalid_scope");
  });

  test("answers access_denied when denied before or after the sign-in, and leaves nothing behind", async () => {
    const [user, browser] = [await freshUser(), new Browser(api)];
    await browser.open(authorizeParams(client, newPkce()));
    expect(returned(await browser.submit({ action: "deny" })).params).toMatchObject({
      error: "access_denied",
      state: "state-1",
      iss: api.deps.config.serverRoot,
    });
    await browser.signIn(user.email);
    const denied = await browser.submit({ action: "deny" });
    expect(returned(denied).params["error"]).toBe("access_denied");
    expectPage(await browser.submit({ action: "allow" }), 400);
    expect(await auditOf(user.id)).toEqual(["CONSENT_DENIED"]);
  });

  test("of a partner's client rejects users of other tenants like a wrong password", async () => {
    const browser = new Browser(api);
    await browser.open(authorizeParams(client, newPkce()));
    const foreign = await browser.signIn(tenants.partners[1].owner.email);
    const wrong = await browser.signIn((await freshUser()).email, "wrong");
    for (const answer of [foreign, wrong]) {
      expectPage(answer, 400);
      expect(answer.text).toContain("The email or the password is wrong.");
    }
  });
});

describe("an authorization code", () => {
  test("works once; a second use ends the sign-in of the first, and is audited", async () => {
    const [user, pkce] = [await freshUser(), newPkce()];
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    const { body } = await redeem(code, pkce);
    const again = await redeem(code, pkce);
    expect([again.status, again.body["error"]]).toEqual([400, "invalid_grant"]);
    expect(await statusOf(body["access_token"])).toBe(401);
    expect(await database.db.select().from(tokens).where(eq(tokens.userId, user.id))).toEqual([]);
    expect(await auditOf(user.id)).toContain("CODE_REPLAYED");
  });

  test("redeemed 20 times at once yields one pair at most, which the other attempts end", async () => {
    const [user, pkce] = [await freshUser(), newPkce()];
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(code, pkce)));
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 400)]);
    for (const { body } of answers.filter(({ status }) => status === 200))
      expect(await statusOf(body["access_token"])).toBe(401);
  });

  test("lives 60 s, to the last millisecond", async () => {
    const [user, pkce] = [await freshUser(), newPkce()];
    const params = authorizeParams(client, pkce);
    const inTime = await obtainCode(api, params, user.email);
    clock.advance(59_999);
    expect((await redeem(inTime, pkce)).status).toBe(200);
    const late = await obtainCode(api, params, user.email);
    clock.advance(60_000);
    expect((await redeem(late, pkce)).body["error"]).toBe("invalid_grant");
  });

  test("is rejected with another verifier, without one, to another client and for another redirect URI, and stays valid", async () => {
    const [user, pkce] = [await freshUser(), newPkce()];
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    const stranger = await addClient(database.db);
    for (const more of [
      { code_verifier: newPkce().verifier },
      { code_verifier: undefined },
      { code_verifier: pkce.challenge },
      credentialsOf(stranger),
      { redirect_uri: `${CALLBACK}/` },
      { redirect_uri: "https://app.example/other" },
    ]) {
      const { status, body } = await redeem(code, pkce, more);
      expect([status, body["error"]]).toEqual([400, "invalid_grant"]);
    }
    expect((await redeem(code, pkce, { redirect_uri: undefined })).body["error"]).toBe(
      "invalid_request",
    );
    expect((await redeem(code, pkce)).status).toBe(200);
  });

  test.each([
    ["A".repeat(42), 400],
    ["A".repeat(43), 200],
    ["a.~_-".repeat(25).padEnd(128, "0"), 200],
    ["A".repeat(129), 400],
    [`${"A".repeat(43)}é`, 400],
  ])("with the verifier %p of a matching challenge is %i", async (verifier, expected) => {
    const user = await freshUser();
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const pkce = { verifier, challenge };
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    expect((await redeem(code, pkce)).status).toBe(expected);
  });

  test("ends with a password reset, and so does a page that waits for consent", async () => {
    const [user, pkce, browser] = [await freshUser(), newPkce(), new Browser(api)];
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    await browser.open(authorizeParams(client, pkce));
    await browser.signIn(user.email);
    const token = await api.login(user.email);
    const body = { password: "violet anchor museum 71" };
    expect((await api.call("POST", "/reset-password", { token, body })).status).toBe(200);
    expect((await redeem(code, pkce)).body["error"]).toBe("invalid_grant");
    const late = await browser.submit({ action: "allow" });
    expectPage(late, 400);
    expect(late.text).toContain("expired");
  });

  test("is stored only as a hash, and purged after it expires; a used one a day later", async () => {
    await purge(api.deps, clock.now());
    const [user, pkce] = [await freshUser(), newPkce()];
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    const rows = await database.db
      .sql`select * from authorization_codes where user_id = ${user.id}`;
    expect(rows).toMatchObject([{ secret_hash: hashSecret(code), state: "issued" }]);
    expect(JSON.stringify(rows)).not.toContain(code);
    await redeem(code, pkce);
    clock.advance(12 * 60_000);
    expect((await purge(api.deps, clock.now()))["authorizationCodes"]).toBeGreaterThan(0);
    const left = await database.db.sql<{ state: string }[]>`
      select state from authorization_codes where user_id = ${user.id}`;
    expect(left.map(({ state }) => state)).toEqual(["redeemed"]);
    clock.advance(24 * 3_600_000);
    await purge(api.deps, clock.now());
    expect(
      await database.db.sql`select 1 from authorization_codes where user_id = ${user.id}`,
    ).toHaveLength(0);
  });
});

describe("a race of a redemption", () => {
  const tokensOf = (userId: number) =>
    database.db.select().from(tokens).where(eq(tokens.userId, userId));

  test("behind a password reset is rejected, and leaves only the reset's own token", async () => {
    const [user, pkce] = [await freshUser(), newPkce()];
    const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
    const token = await api.login(user.email);
    const body = { password: "violet anchor museum 71" };
    const [reset, redeemed] = await inOrder(
      database.db,
      user.id,
      () => api.call("POST", "/reset-password", { token, body }),
      () => redeem(code, pkce),
    );
    expect(reset.status).toBe(200);
    expect([redeemed.status, redeemed.body["error"]]).toEqual([400, "invalid_grant"]);
    expect(await tokensOf(user.id)).toMatchObject([{ kind: "access", clientId: null }]);
  });

  test("that is a replay and a refresh ends all tokens", async () => {
    for (let round = 0; round < 5; round++) {
      const [user, pkce] = [await freshUser(), newPkce()];
      const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
      const { body } = await redeem(code, pkce);
      await Promise.all([
        redeem(code, pkce),
        postForm(api, "/oauth/token", {
          grant_type: "refresh_token",
          refresh_token: String(body["refresh_token"]),
          ...credentialsOf(client),
        }),
      ]);
      expect(await tokensOf(user.id)).toEqual([]);
    }
  });
});

describe("an authorization request", () => {
  const pkce = newPkce();
  const open = (params: Form | string) => new Browser(api).open(params);

  test.each([
    ["an unknown client", () => ({ client_id: randomUUID() })],
    ["no client", () => ({ client_id: undefined })],
    ["a client_id that is no id", () => ({ client_id: "x\0'" })],
    ["no redirect_uri", () => ({ redirect_uri: undefined })],
  ] as const)("with %s shows an error to the user and redirects nowhere", async (_, change) => {
    expectPage(await open(authorizeParams(client, pkce, change())), 400);
  });

  test("for a redirect URI that is not registered redirects nowhere", async () => {
    const redirect_uri = "https://evil.example/callback";
    expectPage(await open(authorizeParams(client, pkce, { redirect_uri })), 400);
  });

  test("may name a port of a loopback address that is registered without one, and of no other", async () => {
    const redirectUris = ["http://127.0.0.1/cb", "http://localhost/cb"];
    const native = await addClient(database.db, { confidential: false, redirectUris });
    const status = async (redirect_uri: string) =>
      (await open(authorizeParams(native, pkce, { redirect_uri }))).status;
    expect(await status("http://127.0.0.1:51234/cb")).toBe(200);
    expect(await status("http://localhost:4000/cb")).toBe(400);
  });

  const pairs: [name: string, change: Form, error: string][] = [
    ["no response_type", { response_type: undefined }, "invalid_request"],
    ["the implicit flow", { response_type: "token" }, "unsupported_response_type"],
    ["an unknown scope", { scope: "everything" }, "invalid_scope"],
    ["the plain method", { code_challenge_method: "plain" }, "invalid_request"],
    ["no method, which means plain", { code_challenge_method: undefined }, "invalid_request"],
    ["a method without a challenge", { code_challenge: undefined }, "invalid_request"],
    ["a challenge of another length", { code_challenge: "abc" }, "invalid_request"],
    ["a fragment as the response mode", { response_mode: "fragment" }, "invalid_request"],
    ["a request object", { request: "eyJ.eyJ." }, "request_not_supported"],
    ["a reference to one", { request_uri: "https://a.example/" }, "request_uri_not_supported"],
  ];
  test.each(pairs)("with %s is redirected back with the error", async (_, change, error) => {
    const answer = await open(authorizeParams(client, pkce, change));
    expect(answer.status).toBe(302);
    const { place, params } = returned(answer);
    expect(place).toBe(CALLBACK);
    expect(params).toMatchObject({ error, state: "state-1", iss: api.deps.config.serverRoot });
  });

  test("of a public client without PKCE is redirected back with the error", async () => {
    const none = { code_challenge: undefined, code_challenge_method: undefined };
    const answer = await open(authorizeParams(publicClient, pkce, none));
    expect(returned(answer).params["error"]).toBe("invalid_request");
  });

  test("of a client without the grant is redirected back with unauthorized_client", async () => {
    const other = await addClient(database.db, { grantTypes: ["password"] });
    const answer = await open(authorizeParams(other, pkce));
    expect(returned(answer).params["error"]).toBe("unauthorized_client");
  });

  test.each(["client_id", "redirect_uri"])("with %s twice redirects nowhere", async (name) => {
    const query = formOf(authorizeParams(client, pkce));
    expectPage(await open(`${query}&${name}=https%3A%2F%2Fevil.example`), 400);
  });

  test.each(["state", "scope", "code_challenge", "response_type", "nonsense"])(
    "with %s twice is redirected back with invalid_request",
    async (name) => {
      const query = `${formOf(authorizeParams(client, pkce, { scope: "*" }))}&${name}=a&${name}=b`;
      const { place, params } = returned(await open(query));
      expect([place, params["error"]]).toEqual([CALLBACK, "invalid_request"]);
      expect(params["state"]).toBe(name === "state" ? undefined : "state-1");
    },
  );
});

describe("the page", () => {
  test("cannot be framed, runs no script, sends no Referer, and has the name and colour of the tenant", async () => {
    const { headers, text } = await new Browser(api).open(authorizeParams(client, newPkce()));
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).not.toContain("unsafe");
    expect(policy).not.toContain("script-src");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(text).not.toMatch(/<script|javascript:|\son\w+="/i);
    const nonce = /<style nonce="([^"]+)"/.exec(text)?.[1] ?? "none";
    expect(policy).toContain(`style-src 'nonce-${nonce}'`);
    const cookie = headers.get("set-cookie") ?? "";
    expect(cookie).toContain("HttpOnly");
    expect(cookie).toContain("SameSite=Lax");
    expect(text).toContain("Brand p1");
    expect(text).toContain("--brand: #112233; --on-brand: #ffffff");
    expect(text).toMatch(/type="password"\s+autocomplete="current-password"/);
  });

  test("uses the cookie prefix __Host- if it is served over https", async () => {
    const secure = await startApi({
      db: database.db,
      clock,
      config: { ...api.deps.config, serverRoot: "https://reviews.example" },
    });
    const { headers } = await new Browser(secure).open(authorizeParams(client, newPkce()));
    expect(headers.get("set-cookie")).toMatch(/^__Host-authorize=.*; Path=\/.*; Secure/);
  });

  test("escapes text from elsewhere", async () => {
    const browser = new Browser(api);
    const { text } = await browser.open(authorizeParams(client, newPkce(), { state: `"><b>` }));
    expect(text).toContain("Bob &amp; &quot;Co&quot; &lt;script&gt;");
    const wrong = await browser.submit({ action: "sign_in", email: `"><i>x`, password: "x" });
    expect(wrong.text).toContain("&quot;&gt;&lt;i&gt;x");
    for (const page of [text, wrong.text]) expect(page).not.toMatch(/<(script|b|i)>/);
  });

  test("puts only a colour of the tenant into the style sheet, and no logo over plain http", async () => {
    const [, p2] = tenants.partners;
    const own = await addClient(database.db, { companyId: p2.id });
    await database.db
      .update(companies)
      .set({ primaryColor: "red}</style><script>", logoUrl: "http://x.example/logo.png" })
      .where(eq(companies.id, p2.id));
    const { text, headers } = await new Browser(api).open(authorizeParams(own, newPkce()));
    expect(text).not.toContain("<script>");
    expect(text).not.toContain("<img");
    expect(headers.get("content-security-policy")).toContain("img-src 'none'");
  });

  test("explains a lock and its wait in words, with Retry-After", async () => {
    const [user, browser] = [await freshUser(), new Browser(api)];
    await browser.open(authorizeParams(client, newPkce()));
    for (let i = 0; i < 5; i++) {
      const wrong = await browser.signIn(user.email, "wrong");
      expectPage(wrong, 400);
      expect(wrong.text).toContain("<title>Sign in: there is a problem – Brand p1</title>");
    }
    const locked = await browser.signIn(user.email);
    expectPage(locked, 429);
    expect(locked.headers.get("retry-after")).toBe("60");
    expect(locked.text).toContain("try again in 1 minute.");
    expect(locked.text).toContain('role="alert"');
    clock.advance(60_000);
    expectPage(await browser.signIn(user.email), 200);
  });

  test("that has expired asks for the password again, and continues from there", async () => {
    const [user, browser] = [await freshUser(), new Browser(api)];
    await browser.open(authorizeParams(client, newPkce()));
    clock.advance(10 * 60_000);
    const stale = await browser.signIn(user.email);
    expectPage(stale, 400);
    expect(stale.text).toContain("This page has expired. Please sign in again.");
    expectPage(await browser.signIn(user.email), 200);
    clock.advance(10 * 60_000);
    expectPage(await browser.submit({ action: "allow" }), 400);
  });

  test("works in two tabs of one browser", async () => {
    const [user, browser] = [await freshUser(), new Browser(api)];
    await browser.open(authorizeParams(firstParty, newPkce(), { state: "one" }));
    const first = browser.ticket;
    await browser.open(authorizeParams(firstParty, newPkce(), { state: "two" }));
    const fields = { action: "sign_in", email: user.email, password: PASSWORD };
    const one = await browser.submit({ ...fields, ticket: first });
    const two = await browser.submit(fields);
    expect([returned(one).params["state"], returned(two).params["state"]]).toEqual(["one", "two"]);
  });
});

describe("a form", () => {
  const attempt = async (change: {
    cookie?: string | null;
    ticket?: string;
    headers?: Record<string, string>;
  }) => {
    const user = await freshUser();
    const browser = new Browser(api);
    await browser.open(authorizeParams(firstParty, newPkce()));
    if (change.cookie !== undefined) browser.cookie = change.cookie ?? undefined;
    if (change.ticket !== undefined) browser.ticket = change.ticket;
    const fields = { action: "sign_in", email: user.email, password: PASSWORD };
    return browser.submit(fields, change.headers);
  };

  test("of an attacker's own page is rejected in another browser: no login CSRF", async () => {
    const attacker = new Browser(api);
    await attacker.open(authorizeParams(firstParty, newPkce()));
    expectPage(await attempt({ ticket: attacker.ticket ?? "" }), 400);
    expectPage(await attempt({ cookie: null }), 400);
    expectPage(await attempt({ cookie: `authorize=${"A".repeat(43)}` }), 400);
    expectPage(await attempt({ ticket: "v1.x.y" }), 400);
    expect((await attempt({})).status).toBe(303);
  });

  test("from another origin or without one is rejected", async () => {
    for (const Origin of ["https://evil.example", "null", "http://localhost:3001", ""])
      expectPage(await attempt({ headers: { Origin } }), 403);
    const crossSite = { Origin: "null", "Sec-Fetch-Site": "cross-site" };
    expectPage(await attempt({ headers: crossSite }), 403);
    const sameSite = { Origin: "null", "Sec-Fetch-Site": "same-origin" };
    expect((await attempt({ headers: sameSite })).status).toBe(303);
  });

  test("from a script that names no site and presses no button is accepted", async () => {
    const { email } = await freshUser();
    const browser = new Browser(api);
    await browser.open(authorizeParams(firstParty, newPkce()));
    const { ticket, cookie: Cookie = "" } = browser;
    const form = { ticket, email, password: PASSWORD };
    const answer = await postForm(api, "/oauth/authorize", form, { Cookie });
    expect([answer.status, returned(answer).place]).toEqual([303, CALLBACK]);
  });

  test("that consents without a sign-in, or for another browser's sign-in, is rejected", async () => {
    const [user, victim, attacker] = [await freshUser(), new Browser(api), new Browser(api)];
    await attacker.open(authorizeParams(client, newPkce()));
    expectPage(await attacker.submit({ action: "allow" }), 400);
    await victim.open(authorizeParams(client, newPkce()));
    await victim.signIn(user.email);
    attacker.ticket = victim.ticket;
    expectPage(await attacker.submit({ action: "allow" }), 400);
  });

  test("with a field that is repeated, unknown, empty or JSON gives a page, never a redirect", async () => {
    const browser = new Browser(api);
    await browser.open(authorizeParams(client, newPkce()));
    const headers = {
      Origin: api.deps.config.serverRoot,
      Cookie: browser.cookie ?? "",
    };
    const ticket = encodeURIComponent(browser.ticket ?? "");
    for (const form of [
      `ticket=${ticket}&ticket=${ticket}&action=deny`,
      `ticket=${ticket}&action=deny&action=allow`,
      `ticket=${ticket}&action=other`,
      `ticket=${ticket}&action=sign_in`,
      `ticket=${ticket}`,
      "",
    ])
      expectPage(await postForm(api, "/oauth/authorize", form, headers), 400);
    const json = { ...headers, "Content-Type": "application/json" };
    expectPage(await postForm(api, "/oauth/authorize", "{}", json), 400);
  });
});

const clock = createFakeClock();
let names = 0;

const freshUser = () =>
  addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_admin",
    email: `page-${++names}@p1.test`,
  });

const redeem = (code: string, pkce: Pkce, more: Form = {}) =>
  postForm(api, "/oauth/token", {
    grant_type: "authorization_code",
    code,
    redirect_uri: CALLBACK,
    code_verifier: pkce.verifier,
    ...credentialsOf(client),
    ...more,
  });

const statusOf = async (access: unknown) =>
  (await api.call("GET", "/verify-token", { token: String(access) })).status;

const auditOf = async (userId: number) =>
  (
    await database.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.actorId, userId))
      .orderBy(auditLog.id)
  ).map(({ action }) => action);

const expectPage = (answer: Answer, status: number) => {
  expect(answer.status).toBe(status);
  expect(answer.headers.get("location")).toBeNull();
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
};
