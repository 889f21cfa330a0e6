import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { createHash, randomBytes } from "node:crypto";

import { hashSecret } from "../../../src/lib/secrets.ts";
import { PASSWORD, startApi, type Answer } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Browser, connect, HostileProvider } from "../../support/sso.ts";
import { addTenants, addUser, type TestUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() =>
  startApi({ db: database.db, config: { ssoReturnTo: [APP, ORIGIN, NATIVE] } }),
);

describe("the one-time code", () => {
  test("works for one of many requests at once", async () => {
    const code = codeOf(await signIn());
    const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(`?code=${code}`)));
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 400)]);
  });

  test("is stored as a hash", async () => {
    const code = codeOf(await signIn());
    const rows = await database.db.sql`select * from sso_codes`;
    expect(rows.map(({ code_hash }) => code_hash)).toContain(hashSecret(code));
    expect(JSON.stringify(rows)).not.toContain(code);
    const states = await database.db.sql`select * from sso_states`;
    expect(JSON.stringify(states)).toContain(`${ROOT}/dashboard`);
  });

  test("expires after 60 seconds", async () => {
    const code = codeOf(await signIn());
    const [row] = await database.db.sql<{ s: number }[]>`
      select extract(epoch from expires_at - created_at)::int as s from sso_codes
      order by created_at desc limit 1`;
    expect(row?.s).toBe(60);
    await database.db.sql`update sso_codes set expires_at = created_at`;
    await expectRefused(await exchange(`?code=${code}`), "expired_code");
  });

  test.each(["", "?code=a&code=b", "?code=%00", `?code=${"c".repeat(43)}`])(
    "cannot be %p",
    async (query) => {
      await expectRefused(await exchange(query), "unknown_code");
    },
  );

  test("needs the verifier of its challenge, and a wrong verifier consumes it", async () => {
    const verifier = randomBytes(32).toString("base64url");
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const query = `&code_challenge=${challenge}&code_challenge_method=S256`;
    const good = codeOf(await signIn(query));
    expect((await exchange(`?code=${good}&code_verifier=${verifier}`)).status).toBe(200);
    for (const wrong of ["", `&code_verifier=${challenge}`, "&code_verifier=short"]) {
      const code = codeOf(await signIn(query));
      await expectRefused(await exchange(`?code=${code}${wrong}`), "wrong_verifier");
      const late = await exchange(`?code=${code}&code_verifier=${verifier}`);
      await expectRefused(late, "replayed_code");
    }
  });

  test("is rejected with a verifier if there was no challenge", async () => {
    const code = codeOf(await signIn());
    const query = `?code=${code}&code_verifier=${"v".repeat(43)}`;
    await expectRefused(await exchange(query), "wrong_verifier");
  });

  test("ends with a password reset", async () => {
    const before = codeOf(await signIn());
    const { token } = (await exchange(`?code=${before}`)).body;
    const code = codeOf(await signIn());
    const password = "another horse, another staple";
    const reset = { token: String(token), body: { password } };
    expect((await api.call("POST", "/reset-password", reset)).status).toBe(200);
    await expectRefused(await exchange(`?code=${code}`), "replayed_code");
  });

  test("is refused while the connection is switched off", async () => {
    const { sql } = database.db;
    const code = codeOf(await signIn());
    await sql`update sso_connections set is_active = false`;
    await expectRefused(await exchange(`?code=${code}`), "unknown_connection");
    await sql`update sso_connections set is_active = true`;
    expect((await exchange(`?code=${code}`)).status).toBe(200);
  });

  test("works while wrong passwords lock the email, also for a new redirect, and leaves the lock as it is", async () => {
    const before = codeOf(await signIn());
    const body = { email: user.email, password: "wrong" };
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await api.call("POST", "/login", { body })).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
    const lock = async () => database.db.sql`select * from sign_in_locks`;
    const locked = await lock();
    expect((await exchange(`?code=${before}`)).status).toBe(200);
    expect((await exchange(`?code=${codeOf(await signIn())}`)).status).toBe(200);
    expect(await lock()).toEqual(locked);
    expect(
      (await api.call("POST", "/login", { body: { ...body, password: PASSWORD } })).status,
    ).toBe(429);
    await database.db.sql`delete from sign_in_locks`;
  });
});

describe("return_to", () => {
  test.each([APP, NATIVE, ORIGIN, `${ORIGIN}/deep/er`, `${ROOT}/dashboard`])(
    "may be %s",
    async (place) => {
      const end = await signIn(`&return_to=${encodeURIComponent(place)}`);
      expect(end.href).toStartWith(`${place === ORIGIN ? `${place}/` : place}?code=`);
    },
  );

  test.each([
    "https://evil.example",
    "//evil.example",
    "/dashboard",
    `${APP}/`,
    `${APP}?next=https://evil.example`,
    "https://app.example:443/signed-in",
    `${ROOT}/dashboard/../../evil`,
    `${ROOT}.evil.example/dashboard`,
    `${ROOT}/oauth/authorize/sso`,
    `${ROOT}/oauth/authorize/sso?ticket=x`,
    `${ORIGIN}.evil.example/`,
    `${ORIGIN}:8443/`,
    `${ORIGIN}@evil.example/`,
    `${ORIGIN}/\\evil.example`,
    `${ORIGIN}/../x`,
    `${ORIGIN}/#x`,
    "http://web.example/",
    "javascript:alert(1)",
    `${APP}\r\nSet-Cookie: a=b`,
    "",
  ])("cannot be %p", async (place) => {
    const { pathname, search } = new URL(start(`&return_to=${encodeURIComponent(place)}`));
    const answer = await api.call("GET", pathname + search, { root: true });
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual(["return_to"]);
    expect(answer.headers.get("location")).toBeNull();
  });
});

describe("the redirect", () => {
  test.each([
    ["", "connection"],
    ["?email=a@b.test&connection=x", "connection"],
    ["?connection=x&connection=y", "connection"],
    ["?connection=x&code_challenge=short", "code_challenge"],
    ["?connection=x&code_challenge_method=S256", "code_challenge"],
    ["?connection=x&code_challenge_method=plain", "code_challenge_method"],
  ])("with %p is 422", async (query, field) => {
    const answer = await api.call("GET", `/auth/sso/redirect${query}`);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual([field]);
  });

  test.each([
    "?email=nobody@plain.test",
    "?email=nobody",
    "?email=%00",
    "?connection=x",
    "?connection=%00",
    "?connection=01ARZ3NDEKTSV4RRFFQ69G5FAV",
  ])(
    "by %p, which has no provider, ends at the dashboard with one neutral error",
    async (query) => {
      const answer = await api.call("GET", `/auth/sso/redirect${query}`);
      expect(answer.status).toBe(302);
      expect(answer.headers.get("location")).toBe(`${ROOT}/dashboard?error=sso_failed`);
      expect(answer.headers.getSetCookie()).toEqual([]);
      const details = { leg: "redirect", reason: "unknown_connection" };
      expect((await lastRefusal())?.details).toEqual(details);
    },
  );

  test("binds the browser with a cookie that scripts and other sites cannot read", async () => {
    const path = `/auth/sso/redirect?connection=${connection}`;
    const { headers } = await api.call("GET", path);
    expect(headers.get("set-cookie")).toMatch(
      /^rr_sso=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    const secure = await startApi({
      db: database.db,
      box: api.deps.box,
      keys: api.deps.keys,
      config: { serverRoot: "https://reviews.example" },
    });
    const answer = await secure.call("GET", path);
    expect(answer.headers.get("set-cookie")).toMatch(
      /^__Host-rr_sso=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    );
  });

  test("gives every flow its own state, nonce and challenge", async () => {
    const browser = new Browser(api);
    const seen = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const location = (await browser.get(start())).headers.get("location") ?? "";
      const { searchParams } = new URL(location);
      for (const name of ["state", "nonce", "code_challenge"])
        seen.add(searchParams.get(name) ?? "");
    }
    expect(seen.size).toBe(9);
    expect(seen.has("")).toBe(false);
  });
});

const ROOT = "http://localhost:3000";
const APP = "https://app.example/signed-in";
const ORIGIN = "https://web.example";
const NATIVE = "com.example.app:/signed-in";

let admin: string;

let provider: HostileProvider;

let connection: string;

let user: TestUser;

beforeAll(async () => {
  admin = await api.login(tenants.superAdmin.email);
  provider = await HostileProvider.start();
  const company_id = tenants.partners[0].accounts[0].id;
  const { issuer } = provider;
  connection = await connect(api, admin, { company_id, issuer, domains: ["corp.test"] });
  const role = "account_user";
  user = await addUser(database.db, { companyId: company_id, role, email: "ada@corp.test" });
  provider.onIdToken = (payload) =>
    void Object.assign(payload, { sub: "ada", email: user.email, email_verified: true });
});

afterAll(async () => {
  await provider.stop();
});

const start = (query = "") => `${ROOT}/api/v1/auth/sso/redirect?connection=${connection}${query}`;

const exchange = (query: string) => api.call("GET", `/auth/sso/exchange${query}`);

/** Runs a whole sign-in and returns the URL at which it ends. */
async function signIn(query = ""): Promise<URL> {
  const browser = new Browser(api);
  return new URL(
    await browser.follow(start(query), (url) => url.includes("code=") && !isCallback(url)),
  );
}

const isCallback = (url: string) => url.includes("/sso/callback/");

const codeOf = (end: URL) => end.searchParams.get("code") ?? "";

async function lastRefusal() {
  const [row] = await database.db.sql<{ details: Record<string, unknown>; actor_id: number }[]>`
    select details, actor_id from audit_log where action = 'SSO_REFUSED' order by id desc limit 1`;
  return row;
}

const shape = ({ status, body, headers }: Answer) => ({
  status,
  body: { ...body, request_id: "" },
  headers: [...headers.keys()],
});

let neutral: ReturnType<typeof shape> | undefined;

async function expectRefused(answer: Answer, reason: string): Promise<void> {
  expect(answer.body).toMatchObject({ code: "invalid_code" });
  expect((await lastRefusal())?.details).toMatchObject({ leg: "exchange", reason });
  neutral ??= shape(answer);
  expect(shape(answer)).toEqual(neutral);
  expect(answer.status).toBe(400);
}
