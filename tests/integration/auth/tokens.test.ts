import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { connect } from "node:net";

import { eq } from "drizzle-orm";
import { exportSPKI, generateKeyPair, importJWK, SignJWT, type CryptoKey, type JWK } from "jose";

import { auditLog } from "../../../db/schema/companies.ts";
import { authenticationEvents, signingKeys, tokens } from "../../../db/schema/tokens.ts";
import { issueToken, type TokenGrant } from "../../../src/auth/sign-in/open-session.ts";
import { openKeyRing } from "../../../src/auth/keys/key-ring.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { startSerialApi } from "../../support/serial-api.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addUser } from "../../support/tenants.ts";

describe("a bearer token", () => {
  test.each(["Bearer", "bearer", "BEARER", "bEaReR", "Bearer  "])(
    "is accepted with the scheme written %p",
    async (scheme) => {
      const { token } = await grant();
      const headers = { Authorization: `${scheme} ${token}` };
      expect((await api.call("GET", "/verify-token", { headers })).status).toBe(200);
    },
  );

  test("lives to the last millisecond", async () => {
    const short = createFakeClock();
    const config = { ...api.deps.config, accessTokenTtlS: 2 };
    const brief = await startApi({ db: database.db, clock: short, config });
    const token = await brief.login(tenants.superAdmin.email);
    short.advance(1_999);
    expect((await verify(token, brief)).status).toBe(200);
    short.advance(1);
    expect((await verify(token, brief)).status).toBe(401);
  });

  test("has the same expiry in its claims as in the answer", async () => {
    const token = await api.login(tenants.superAdmin.email);
    const [, payload = ""] = token.split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    expect(Object.keys(claims).toSorted()).toEqual(
      ["iss", "aud", "sub", "jti", "iat", "exp", "client_id", "scope"].toSorted(),
    );
    expect(claims).toMatchObject({
      iss: ISSUER,
      aud: AUDIENCE,
      sub: String(tenants.superAdmin.id),
    });
    expect(claims.exp).toBe(Math.floor(clock.now().getTime() / 1000) + 86_400);
  });

  test("shows its user in verify-token, without the fields that only login shows", async () => {
    const { owner, id } = tenants.partners[0].accounts[0];
    const { status, body, headers } = await verify(await api.login(owner.email));
    expect(status).toBe(200);
    expect(Object.keys(body).toSorted()).toEqual([
      "company",
      "plan",
      "theme",
      "user",
      "white_label",
    ]);
    expect(body).toMatchObject({ user: { id: owner.id }, company: { id } });
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

describe("a request without a valid token", () => {
  let signing: { kid: string; key: CryptoKey; publicJwk: JWK };
  let jti: string;
  let userId: number;
  let exp: number;

  beforeAll(async () => {
    const [row] = await database.db
      .select()
      .from(signingKeys)
      .where(eq(signingKeys.state, "current"));
    const { kid = "", sealedPrivateKey = "", publicJwk } = row ?? {};
    const key = await importJWK(
      JSON.parse(api.deps.box.open(sealedPrivateKey, `signing-key:${kid}`)),
      "RS256",
    );
    if (key instanceof Uint8Array) throw new Error("no RSA key");
    signing = { kid, key, publicJwk: publicJwk as JWK };
    userId = tenants.partners[0].owner.id;
    // The row is live, so that only the token itself is wrong.
    const issued = await grant({ userId });
    jti = issued.jti;
    exp = Math.floor((issued.expiresAt?.getTime() ?? 0) / 1000);
  });

  function forge(
    header: Record<string, unknown> = {},
    payload: Record<string, unknown> = {},
    key = signing.key,
  ) {
    const head = { alg: "RS256", kid: signing.kid, typ: "at+jwt", ...header };
    const common = { iss: ISSUER, aud: AUDIENCE, sub: String(userId), jti, iat: nowS(), exp };
    const claims = { ...common, client_id: "reviewrelay", scope: "*", ...payload };
    return new SignJWT(claims).setProtectedHeader(head).sign(key, { crit: { unheard: true } });
  }

  async function unsigned(header: Record<string, unknown>): Promise<[string, string]> {
    const [, payload = ""] = (await forge()).split(".");
    return [encode({ kid: signing.kid, typ: "at+jwt", ...header }), payload];
  }

  test("is not caused by the forging itself: one with right claims is accepted, also 300 s ahead", async () => {
    for (const claims of [{}, { iat: nowS() + 300 }])
      expect((await verify(await forge({}, claims))).status).toBe(200);
  });

  const hostile: [string, () => Promise<string>][] = [
    ["with another typ", () => forge({ typ: "JWT" })],
    ["with the typ of a refresh token", () => forge({ typ: "rt+jwt" })],
    ["without typ", () => forge({ typ: undefined })],
    ["without kid", () => forge({ kid: undefined })],
    ["with an unknown kid", () => forge({ kid: "x".repeat(43) })],
    ["with a kid that is no text", () => forge({ kid: 7 })],
    ["with a critical header", () => forge({ crit: ["unheard"], unheard: 1 })],
    ["of another issuer", () => forge({}, { iss: "http://localhost:3001" })],
    ["without issuer", () => forge({}, { iss: undefined })],
    ["for another audience", () => forge({}, { aud: ISSUER })],
    ["without audience", () => forge({}, { aud: undefined })],
    ["that has expired", () => forge({}, { exp: nowS() - 2 })],
    ["not valid before next hour", () => forge({}, { nbf: nowS() + 3600 })],
    ["issued next hour", () => forge({}, { iat: nowS() + 3600 })],
    ["whose issue has no time", () => forge({}, { iat: undefined })],
    ["with a longer life than its row", () => forge({}, { exp: exp + 1 })],
    ["without an end", () => forge({}, { exp: undefined })],
    ["of another user", () => forge({}, { sub: String(userId + 1) })],
    ["of another client", () => forge({}, { client_id: "0b6c7f0e-1f3b-4a57-9c55-6d1f0d6a1a11" })],
    ["of another scope", () => forge({}, { scope: "reviews:read" })],
    ["that claims to act", () => forge({}, { act: { sub: "1" } })],
    ["whose jti has no row", () => forge({}, { jti: "AAAAAAAAAAAAAAAAAAAAAA" })],
    ["with a NUL in its jti", () => forge({}, { jti: "A\0A" })],
    [
      "signed by a foreign key",
      async () => forge({}, {}, (await generateKeyPair("RS256")).privateKey),
    ],
    [
      "with a foreign key in its header",
      async () => {
        const { privateKey } = await generateKeyPair("RS256");
        return forge({ jwk: signing.publicJwk, jku: "http://localhost/keys" }, {}, privateKey);
      },
    ],
    [
      "signed with PS256",
      async () => forge({ alg: "PS256" }, {}, (await generateKeyPair("PS256")).privateKey),
    ],
    ["with alg none", async () => `${(await unsigned({ alg: "none" })).join(".")}.`],
    [
      "with alg none and the old signature",
      async () => `${(await unsigned({ alg: "none" })).join(".")}.${(await forge()).split(".")[2]}`,
    ],
    [
      "signed with HS256 and the public key as secret",
      async () => {
        const input = (await unsigned({ alg: "HS256" })).join(".");
        const publicKey = await importJWK({ ...signing.publicJwk, ext: true }, "RS256");
        const secret = await exportSPKI(publicKey as CryptoKey);
        return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
      },
    ],
    [
      "with tampered claims",
      async () => {
        const [header, payload = "", signature] = (await forge()).split(".");
        const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
        return `${header}.${encode({ ...claims, scope: "*  " })}.${signature}`;
      },
    ],
    [
      "whose claims are no object",
      async () => `${encode({ alg: "RS256", kid: signing.kid })}.${encode([])}.AAAA`,
    ],
    [
      "whose signature is spelled in another way",
      async () => {
        const token = await forge();
        // The last character of a 256-byte signature has four unused bits.
        const last = { A: "B", Q: "R", g: "h", w: "x" }[token.at(-1) ?? ""];
        return token.slice(0, -1) + last;
      },
    ],
    ["whose header is no JSON", async () => "AAAA.BBBB.CCCC"],
  ];

  test.each(hostile)("%s is 401", async (_, make) => {
    const answer = await api.call("GET", "/verify-token", {
      token: await make(),
      headers: { "X-Request-Id": "one" },
    });
    expect(answer.text).toBe(
      '{"message":"Unauthenticated.","code":"unauthenticated","request_id":"one"}',
    );
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(api.lines.filter((line) => line.includes("request.failed"))).toEqual([]);
  });

  test.each([
    ["nothing", {}],
    ["an empty field", { Authorization: "" }],
    ["the scheme alone", { Authorization: "Bearer" }],
    ["another scheme", { Authorization: "Basic YTpi" }],
    ["garbage", { Authorization: "Bearer garbage" }],
    ["a fourth part", { Authorization: "Bearer a.b.c.d" }],
  ])("with %s as Authorization is 401", async (_, headers) => {
    expect((await api.call("GET", "/verify-token", { headers })).status).toBe(401);
  });

  test("is one with a valid token in the URL or in a cookie", async () => {
    const token = await forge();
    const path = `/verify-token?token=${token}&access_token=${token}`;
    expect((await api.call("GET", path)).status).toBe(401);
    expect(
      (await api.call("GET", "/verify-token", { headers: { Cookie: `token=${token}` } })).status,
    ).toBe(401);
  });

  test("is one with two Authorization headers, over a real connection", async () => {
    const line = `Authorization: Bearer ${await forge()}\r\n`;
    const port = Number(new URL(api.listen()).port);
    expect(await statusOf(port, line)).toBe(200);
    expect(await statusOf(port, line + line)).toBe(401);
  });
});

/** Returns the status of a raw request to verify-token. */
function statusOf(port: number, fields: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", reject);
    socket.on("data", (data) => {
      socket.destroy();
      resolve(Number(data.toString().split(" ")[1]));
    });
    socket.write(`GET /api/v1/verify-token HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`);
  });
}

describe("logout", () => {
  test("ends the token at once, in every process, and leaves other tokens of the user alone", async () => {
    const { email } = tenants.superAdmin;
    const [token, kept] = [await api.login(email), await other.login(email)];
    expect((await verify(token, other)).status).toBe(200);
    const answer = await api.call("GET", "/logout", { token });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ message: expect.any(String) });
    expect((await verify(token, other)).status).toBe(401);
    expect((await verify(token)).status).toBe(401);
    expect((await verify(kept)).status).toBe(200);
    expect((await api.call("GET", "/logout", { token })).status).toBe(401);
  });

  test("ends all tokens of its own family and no others", async () => {
    const userId = tenants.partners[0].owner.id;
    const [own, foreign] = [await family(userId), await family(userId)];
    const { token } = await grant({ familyId: own });
    const refresh = await grant({ kind: "refresh", familyId: own });
    const kept = await grant({ kind: "refresh", familyId: foreign });
    const sibling = await grant({ familyId: own });
    await api.call("GET", "/logout", { token });
    const rows = await database.db.select().from(tokens).where(eq(tokens.userId, userId));
    const living = rows.map((row) => row.jti);
    for (const ended of [refresh, sibling]) expect(living).not.toContain(ended.jti);
    expect(living).toContain(kept.jti);
  });

  test("stamps logout_time on the user's latest sign-in and writes AUTH_LOGOUT", async () => {
    const { id, email } = await addUser(database.db, {
      companyId: tenants.partners[0].id,
      role: "partner_admin",
      email: "leaver@p1.test",
    });
    const first = await api.login(email);
    clock.advance(5);
    await api.login(email);
    clock.advance(5);
    await family(id, "impersonation");
    clock.advance(5);
    await api.call("GET", "/logout", {
      token: first,
      headers: { "X-Request-Id": "leave" },
    });
    const events = await database.db
      .select()
      .from(authenticationEvents)
      .where(eq(authenticationEvents.userId, id))
      .orderBy(authenticationEvents.at);
    expect(events.map((event) => [event.method, event.logoutTime])).toEqual([
      ["login", null],
      ["login", clock.now()],
      ["impersonation", null],
    ]);
    const rows = await database.db.select().from(auditLog).where(eq(auditLog.requestId, "leave"));
    expect(rows.map((row) => [row.action, row.actorId])).toEqual([["AUTH_LOGOUT", id]]);
  });

  test("of two at once with one token succeeds once", async () => {
    const token = await api.login(tenants.superAdmin.email);
    const answers = await Promise.all(
      [api, other, api, other].map((on) => on.call("GET", "/logout", { token })),
    );
    const statuses = answers.map((answer) => answer.status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
  });
});

describe("the last use of a token", () => {
  test("is stamped at the first request and then at most once a minute", async () => {
    const serial = await startSerialApi(world);
    const { token, jti } = await grant();
    const lastUse = async () => {
      expect((await verify(token, serial)).status).toBe(200);
      await serial.settled();
      const [row] = await database.db.select().from(tokens).where(eq(tokens.jti, jti));
      return row?.lastUsedAt;
    };
    const first = clock.now();
    expect(await lastUse()).toEqual(first);
    clock.advance(59_999);
    expect(await lastUse()).toEqual(first);
    clock.advance(1);
    expect(await lastUse()).toEqual(clock.now());
    await serial.stop();
  });
});

test("a loaded key ring verifies tokens while the database is unreachable, and the failed look-up is a 503 without details", async () => {
  const ring = await openKeyRing({ ...api.deps, db: database.db });
  const pool = database.connect();
  const broken = await startApi({ db: pool, clock, keys: ring, config: api.deps.config });
  const { token } = await grant();
  await pool.close();
  const answer = await verify(token, broken);
  expect(answer.status).toBe(503);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(answer.body).toEqual({
    code: "unavailable",
    message: expect.any(String),
    request_id: expect.any(String),
  });
});

const ISSUER = "http://localhost:3000";
const AUDIENCE = `${ISSUER}/api`;
const world = await startSignInWorld();
const { database, tenants, clock, api, other } = world;
const nowS = () => Math.floor(clock.now().getTime() / 1000);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

afterAll(() => world.stop());

const verify = (token: string, on = api) => on.call("GET", "/verify-token", { token });

/** Issues a token with its row, without a route. */
async function grant(over: Partial<TokenGrant> = {}) {
  const userId = over.userId ?? tenants.partners[0].owner.id;
  const base = {
    kind: "access",
    familyId: null,
    clientId: null,
    impersonatorId: null,
    scope: "*",
  } as const;
  return database.db.transaction((tx) =>
    issueToken(tx, api.deps.keys, { ...base, userId, ttlS: 86_400, now: clock.now(), ...over }),
  );
}

async function family(
  userId: number,
  method: "login" | "impersonation" = "login",
): Promise<string> {
  const id = `F${crypto.randomUUID()}`;
  await database.db.insert(authenticationEvents).values({ id, userId, method, at: clock.now() });
  return id;
}
