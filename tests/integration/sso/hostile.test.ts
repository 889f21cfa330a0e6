import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";

import { createHmac, generateKeyPairSync, sign as signBytes } from "node:crypto";

import { decodeJwt } from "jose";

import type { Config } from "../../../src/lib/config.ts";
import { startApi, type Answer } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import {
  Browser,
  CLIENT,
  connect,
  HostileProvider,
  listenWith,
  nextStep,
  type Claims,
} from "../../support/sso.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("an honest provider", () => {
  test("signs in a user of its company", async () => {
    says(victim, { sub: "johndoe" });
    expect((await attempt()).headers.get("location")).toStartWith(`${ROOT}/dashboard?code=`);
  });
});

describe("an id_token is rejected", () => {
  test.each([
    ["with another nonce", { nonce: "another" }, "wrong_nonce"],
    ["without a nonce", { nonce: undefined }, "wrong_nonce"],
    ["for another audience", { aud: "another" }, "wrong_audience"],
    [
      "for several audiences without azp",
      { aud: [CLIENT.id, "another"] },
      "wrong_authorized_party",
    ],
    ["with another authorized party", { azp: "another" }, "wrong_authorized_party"],
    ["of another issuer", { iss: "https://idp.example" }, "wrong_issuer"],
    ["of the issuer with a slash more", { iss: "slash" }, "wrong_issuer"],
    ["that has expired", { exp: 1 }, "expired_id_token"],
    ["that never expires", { exp: undefined }, "expired_id_token"],
    ["that is from tomorrow", { iat: 4_000_000_000, exp: 4_000_000_100 }, "wrong_issue_time"],
    ["that is old", { iat: 1 }, "wrong_issue_time"],
    ["that has no time", { iat: undefined }, "wrong_issue_time"],
    ["without a subject", { sub: undefined }, "malformed_id_token"],
    ["with an empty subject", { sub: "" }, "malformed_id_token"],
    ["with a subject of 256 characters", { sub: "s".repeat(256) }, "malformed_id_token"],
    ["with a NUL in the subject", { sub: "s\0" }, "malformed_id_token"],
    ["with an email of a foreign domain", { email: "user@other.test" }, "foreign_domain"],
    ["with an email that is a list", { email: ["victim@corp.test"] }, "bad_userinfo"],
    ["of nobody here", { email: "nobody@corp.test" }, "unknown_user"],
    ["of another company's user", { email: "guest@corp.test" }, "foreign_user"],
    ["of a super-admin", { email: "boss@corp.test" }, "super_admin"],
    ["of a user who has another subject", { email: "victim@corp.test" }, "other_subject"],
  ])("%s", async (_, claims: Claims, reason) => {
    const iss = claims["iss"] === "slash" ? { iss: `${provider.issuer}/` } : {};
    says("nobody@corp.test", { ...claims, ...iss });
    await expectRefused(await attempt(), reason);
  });

  /** Replaces the token in the provider's response by one of our own. */
  async function attemptForged(forge: (claims: Claims) => string): Promise<Answer> {
    says(victim, { sub: "johndoe" });
    provider.onTokenAnswer = (body) => {
      body["id_token"] = forge(decodeJwt(String(body["id_token"])));
    };
    return attempt();
  }

  const kid = () => provider.keys.get()?.kid;
  const hmac = (key: string) => (data: string) => createHmac("sha256", key).update(data).digest();
  const foreign = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rs256 = (data: string) => signBytes("sha256", Buffer.from(data), foreign.privateKey);

  test.each<[how: string, header: () => object, sign: (data: string) => Buffer, reason: string]>([
    [
      "with HS256 and the client secret",
      () => ({ alg: "HS256", kid: kid() }),
      hmac(CLIENT.secret),
      "wrong_algorithm",
    ],
    [
      "with HS256 and the public key",
      () => ({ alg: "HS256", kid: kid() }),
      (data) => hmac(JSON.stringify(provider.keys.toJSON()[0]))(data),
      "wrong_algorithm",
    ],
    ["with nothing", () => ({ alg: "none" }), () => Buffer.alloc(0), "wrong_algorithm"],
    [
      "with an algorithm that discovery does not name",
      () => ({ alg: "ES256", kid: kid() }),
      () => Buffer.alloc(64),
      "wrong_algorithm",
    ],
    [
      "with another key, under the id of the right one",
      () => ({ alg: "RS256", kid: kid() }),
      rs256,
      "wrong_signature",
    ],
    [
      "with another key, under its own id",
      () => ({ alg: "RS256", kid: "unknown" }),
      rs256,
      "unknown_key",
    ],
    [
      "with a key that it contains",
      () => ({ alg: "RS256", kid: kid(), jwk: foreign.publicKey.export({ format: "jwk" }) }),
      rs256,
      "wrong_signature",
    ],
  ])("signed %s", async (_, header, sign, reason) => {
    await expectRefused(await attemptForged((claims) => jws(header(), claims, sign)), reason);
  });

  test("that is not a JWT", async () => {
    for (const text of ["no token", "a.b.c", "e30.e30.", "\0"])
      await expectRefused(await attemptForged(() => text), "malformed_id_token");
  });
});

describe("a response of the provider is rejected", () => {
  test.each([
    ["an error", { error: "access_denied" }, "provider_error"],
    ["an error and a code", { error: "access_denied", code: "c" }, "provider_error"],
    ["no code", { code: null }, "no_code"],
    ["another issuer", { iss: "https://idp.example" }, "wrong_response_issuer"],
    ["an unknown state", { state: "unknown" }, "unknown_state"],
    ["no state", { state: null }, "unknown_state"],
  ])("with %s", async (_, changes: Record<string, string | null>, reason) => {
    says(victim, { sub: "johndoe" });
    provider.onCallback = (url) => {
      for (const [name, value] of Object.entries(changes))
        if (value === null) url.searchParams.delete(name);
        else url.searchParams.set(name, value);
    };
    await expectRefused(await attempt(), reason);
  });

  test("that names an error which is not a code, and the text is not stored", async () => {
    provider.onCallback = (url) => url.searchParams.set("error", "<script>\n\0");
    await expectRefused(await attempt(), "provider_error");
    expect((await lastRefusal())?.details).not.toHaveProperty("error");
  });

  test("without the issuer that the metadata promises", async () => {
    const fresh = await startApi({ db: database.db, box: api.deps.box, keys: api.deps.keys });
    provider.onDiscovery = (document) => {
      document["authorization_response_iss_parameter_supported"] = true;
    };
    await expectRefused(await attempt(new Browser(fresh)), "wrong_response_issuer");
    says(victim, { sub: "johndoe" });
    provider.onCallback = (url) => url.searchParams.set("iss", provider.issuer);
    const answer = await attempt(new Browser(fresh));
    expect(answer.headers.get("location")).toContain("?code=");
  });

  test("with a code of another sign-in, whose PKCE verifier is not ours", async () => {
    says(victim, { sub: "johndoe" });
    const stolen = new URL(await toCallback(new Browser(api))).searchParams.get("code") ?? "";
    provider.onCallback = (url) => url.searchParams.set("code", stolen);
    await expectRefused(await attempt(), "bad_token_answer");
  });

  test.each([
    ["no id_token", (body: Claims) => void delete body["id_token"]],
    ["an id_token that is a number", (body: Claims) => void (body["id_token"] = 7)],
  ])("that holds %s", async (_, change) => {
    says(victim, { sub: "johndoe" });
    provider.onTokenAnswer = change;
    await expectRefused(await attempt(), "bad_token_answer");
  });
});

describe("a state", () => {
  test("works for one of many callbacks at once", async () => {
    says(victim, { sub: "johndoe" });
    const browser = new Browser(api);
    const callback = await toCallback(browser);
    const answers = await Promise.all(Array.from({ length: 8 }, () => browser.get(callback)));
    const places = answers.map((one) => nextStep(one, callback));
    expect(places.filter((one) => one.includes("?code="))).toHaveLength(1);
    expect(places.filter((one) => one === REFUSED)).toHaveLength(7);
  });

  test("works only in its own browser, and another browser does not consume it", async () => {
    says(victim, { sub: "johndoe" });
    const browser = new Browser(api);
    const callback = await toCallback(browser);
    await expectRefused(await new Browser(api).get(callback), "foreign_browser");
    const stranger = new Browser(api);
    await toCallback(stranger);
    await expectRefused(await stranger.get(callback), "foreign_browser");
    stranger.setCookie("localhost:3000", "rr_sso", "malformed");
    await expectRefused(await stranger.get(callback), "foreign_browser");
    expect(nextStep(await browser.get(callback), callback)).toContain("?code=");
  });

  test("expires after ten minutes", async () => {
    const browser = new Browser(api);
    const callback = await toCallback(browser);
    const [row] = await database.db.sql`
      select extract(epoch from expires_at - created_at)::int as s from sso_states
       order by created_at desc limit 1`;
    expect(row).toEqual({ s: 600 });
    await database.db.sql`update sso_states set expires_at = created_at`;
    await expectRefused(await browser.get(callback), "expired_state");
  });

  test("of one provider is rejected at another's callback, and consumed there", async () => {
    says(victim, { sub: "johndoe" });
    const browser = new Browser(api);
    const callback = await toCallback(browser);
    const mixedUp = callback.replace(connection, otherConnection);
    await expectRefused(await browser.get(mixedUp), "mixed_up_provider");
    await expectRefused(await browser.get(callback), "replayed_state");
  });

  test("is rejected at a callback of no connection", async () => {
    for (const path of ["x", "%00", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]) {
      const browser = new Browser(api);
      const callback = await toCallback(browser);
      await expectRefused(
        await browser.get(callback.replace(connection, path)),
        "mixed_up_provider",
      );
    }
  });
});

describe("a linked user", () => {
  const setUp = async (email: string) => {
    const user = await addPerson(email);
    const sub = `linked-${user.id}`;
    says(email, { sub });
    expect((await attempt()).headers.get("location")).toContain("?code=");
    return user;
  };

  test("does not get in once inactive, promoted, moved, or in a company that is switched off", async () => {
    const { sql } = database.db;
    const user = await setUp("changed@corp.test");
    await sql`update users set is_active = false where id = ${user.id}`;
    await expectRefused(await attempt(), "inactive_user");
    expect((await lastRefusal())?.actor_id).toBe(user.id);
    const platform = tenants.superAdmin.companyId;
    await sql`update users set is_active = true, role = 'super_admin', company_id = ${platform}
      where id = ${user.id}`;
    await expectRefused(await attempt(), "super_admin");
    const elsewhere = tenants.partners[1].accounts[0].id;
    await sql`update users set role = 'account_user', company_id = ${elsewhere} where id = ${user.id}`;
    await expectRefused(await attempt(), "foreign_user");
    await sql`update users set company_id = ${user.companyId} where id = ${user.id}`;
    await sql`update companies set is_active = false where id = ${user.companyId}`;
    const browser = new Browser(api);
    const place = nextStep(await browser.get(REDIRECT + connection), REDIRECT);
    await sql`update companies set is_active = true where id = ${user.companyId}`;
    expect(place).toBe(REFUSED);
    expect((await attempt()).headers.get("location")).toContain("?code=");
  });
});

describe("a provider's documents", () => {
  /** Starts a flow through an API process that has not requested this provider before. */
  async function expectNoStart(issuer: string, details: Claims, over: Partial<Config> = {}) {
    const fresh = await startApi({
      db: database.db,
      box: api.deps.box,
      keys: api.deps.keys,
      config: over,
    });
    const company_id = tenants.partners[1].accounts[0].id;
    const id = await connect(api, admin, { company_id, issuer, domains: [`d${++serial}.test`] });
    const answer = await new Browser(fresh).get(REDIRECT + id);
    expect((await lastRefusal())?.details).toMatchObject({
      leg: "redirect",
      connection_id: id,
      ...details,
    });
    neutral ??= outside(answer);
    expect(outside(answer)).toEqual(neutral);
  }

  test("at private addresses are not requested if those are not allowed", async () => {
    const egress = { allowHttp: true, allowedNetworks: [] };
    const details = { reason: "provider_unreachable", fault: "blocked_address" };
    await expectNoStart(provider.issuer, details, { egress });
  });

  test("that are huge or cut off count as unreachable", async () => {
    const reason = "provider_unreachable";
    const huge = await listenWith((_request, response) => response.end("x".repeat(300_000)));
    await expectNoStart(huge.issuer, { reason, fault: "too_large" });
    const cut = await listenWith((_request, response) => void response.destroy());
    await expectNoStart(cut.issuer, { reason });
    huge.stop();
    cut.stop();
  });

  test("that never arrive are awaited for ten seconds, once for all callers", async () => {
    let asked = 0;
    const server = await listenWith(() => void (asked += 1));
    const company_id = tenants.partners[1].accounts[0].id;
    const { issuer } = server;
    const id = await connect(api, admin, { company_id, issuer, domains: ["hang.test"] });
    const start = REDIRECT + id;
    const answers = await Promise.all([1, 2, 3].map(() => new Browser(api).get(start)));
    for (const answer of answers) expect(nextStep(answer, start)).toBe(REFUSED);
    const details = { reason: "provider_unreachable", fault: "timeout" };
    expect((await lastRefusal())?.details).toMatchObject(details);
    expect(asked).toBe(1);
    server.stop();
  });

  test("are not followed to another URL", async () => {
    const server = await listenWith((_request, response) =>
      response.writeHead(302, { Location: provider.issuer }).end(),
    );
    await expectNoStart(server.issuer, { reason: "bad_discovery", status: 302 });
    server.stop();
  });

  test.each(["", "[]", "null", "{", "<html>"])("with the body %p are rejected", async (text) => {
    const server = await listenWith((_request, response) => response.end(text));
    await expectNoStart(server.issuer, { reason: "bad_discovery", status: 200 });
    server.stop();
  });

  test("are fetched again for a new key, but not for every invented key id", async () => {
    const fresh = await startApi({ db: database.db, box: api.deps.box, keys: api.deps.keys });
    says(victim, { sub: "johndoe" });
    expect((await attempt(new Browser(fresh))).headers.get("location")).toContain("?code=");
    // The provider signs with its keys in turn, the newest one last.
    await provider.keys.generate("RS256");
    for (let round = 0; round < 2; round++)
      expect((await attempt(new Browser(fresh))).headers.get("location")).toContain("?code=");
    await provider.keys.generate("RS256");
    const places: string[] = [];
    for (let round = 0; round < 3; round++)
      places.push((await attempt(new Browser(fresh))).headers.get("location") ?? "");
    expect(places).toContain(REFUSED);
    expect((await lastRefusal())?.details).toMatchObject({ reason: "unknown_key" });
  });
});

const ROOT = "http://localhost:3000";
const REDIRECT = `${ROOT}/api/v1/auth/sso/redirect?connection=`;
let admin: string;
let provider: HostileProvider;
let connection: string;
let serial = 0;
let victim = "";
let neutral: ReturnType<typeof outside> | undefined;

function jws(header: object, claims: object, signer: (data: string) => Buffer): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const data = `${encode(header)}.${encode(claims)}`;
  return `${data}.${signer(data).toString("base64url")}`;
}

const REFUSED = `${ROOT}/dashboard?error=sso_failed`;

let other: HostileProvider;

let otherConnection: string;

beforeAll(async () => {
  admin = await api.login(tenants.superAdmin.email);
  [provider, other] = await Promise.all([HostileProvider.start(), HostileProvider.start()]);
  const [first, second] = tenants.partners[0].accounts;
  const { issuer } = provider;
  connection = await connect(api, admin, { company_id: first.id, issuer, domains: ["corp.test"] });
  otherConnection = await connect(api, admin, {
    company_id: second.id,
    issuer: other.issuer,
    domains: ["other.test"],
  });
  victim = (await addPerson("victim@corp.test")).email;
  await addPerson("guest@corp.test", second.id);
  await addPerson("user@other.test", second.id);
  await addPerson("moved@other.test");
  const platform = tenants.superAdmin.companyId;
  await addUser(database.db, {
    companyId: platform,
    role: "super_admin",
    email: "boss@corp.test",
  });
});

afterEach(() => {
  provider.reset();
  other.reset();
});

afterAll(async () => {
  await Promise.all([provider.stop(), other.stop()]);
});

function addPerson(email: string, companyId = tenants.partners[0].accounts[0].id) {
  return addUser(database.db, { companyId, role: "account_user", email });
}

/** Returns claims with that email and a new subject. */
function says(email: string, more: Claims = {}) {
  const claims = { sub: `subject-${++serial}`, email, email_verified: true, ...more };
  provider.onIdToken = (payload) => void Object.assign(payload, claims);
}

/** Returns the URL of the callback without opening it. */
async function toCallback(browser: Browser, id = connection): Promise<string> {
  return browser.follow(REDIRECT + id, (url) => url.includes("/sso/callback/"));
}

async function attempt(browser = new Browser(api)): Promise<Answer> {
  return browser.get(await toCallback(browser));
}

async function lastRefusal() {
  const [row] = await database.db.sql<{ details: Claims; actor_id: number | null }[]>`
    select details, actor_id from audit_log where action = 'SSO_REFUSED' order by id desc limit 1`;
  return row;
}

/** Returns everything that a client sees, except for headers that differ between any two responses. */
function outside({ status, headers, text }: Answer) {
  const fields = [...headers].filter(([name]) => name !== "x-request-id" && name !== "date");
  return { status, text, headers: Object.fromEntries(fields) };
}

async function expectRefused(answer: Answer, reason: string): Promise<void> {
  expect((await lastRefusal())?.details).toMatchObject({ leg: "callback", reason });
  expect(answer.headers.get("location")).toBe(REFUSED);
  neutral ??= outside(answer);
  expect(outside(answer)).toEqual(neutral);
}
