import { afterAll, beforeEach, describe, expect, test } from "bun:test";

import { createRateLimiter, type RateLimiter } from "../../../src/http/rate-limit.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { connectRedis } from "../../../src/lib/redis.ts";
import { startApi, type Answer, type TestApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { silentLog } from "../../support/dispatch.ts";
import { addProvider, send } from "../../support/factory.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const redis = fixture(() => connectRedis(process.env["TEST_REDIS_URL"] ?? "", silentLog));
const free = fixture(() => startApi({ db: database.db }));

describe("a user", () => {
  test("may send as many requests as its burst, with headers on every response", async () => {
    const token = await owner();
    const answers = [await list(token), await list(token), await list(token), await list(token)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    const header = (name: string) => answers.map(({ headers }) => headers.get(name));
    expect(header("ratelimit-remaining")).toEqual(["2", "1", "0", "0"]);
    expect(header("ratelimit-limit")).toEqual(["3", "3", "3", "3"]);
    expect(header("ratelimit-policy")[0]).toBe("1;w=60;burst=3");
    expect(Number(header("ratelimit-reset")[3])).toBeGreaterThan(100);
    const last = answers.at(-1);
    expect(last?.body["code"]).toBe("rate_limited");
    expect(Number(last?.headers.get("retry-after"))).toBeGreaterThanOrEqual(59);
    expect(Number(last?.headers.get("retry-after"))).toBeLessThanOrEqual(60);
    expect(answers.slice(0, 3).map(({ headers }) => headers.get("retry-after"))).toEqual([
      null,
      null,
      null,
    ]);
  });

  test("has one bucket for all tokens, shared by all processes", async () => {
    const [one, again] = [await owner(), await owner()];
    const stranger = await free.login(tenants.partners[1].owner.email);
    const pat = await free.call("POST", "/account/personal-access-tokens", {
      token: one,
      body: { name: "another bucket?" },
    });
    const owned = [one, again, String(pat.body["access_token"]), again];
    const prefix = `test-${crypto.randomUUID()}:`;
    const processes = await Promise.all(
      [1, 2].map(() =>
        startApi({
          db: database.db,
          config: free.deps.config,
          limiter: limiterOf(redis, 1, prefix),
        }),
      ),
    );
    const ask = (i: number, token: string) =>
      processes[i % 2]?.call("GET", "/partner/webhooks", { token });
    const seen = [];
    for (const [i, token] of owned.entries()) seen.push((await ask(i, token))?.status);
    expect(seen).toEqual([200, 200, 200, 429]);
    expect((await ask(0, stranger))?.status).toBe(200);
  });

  test("is also counted while acting as the owners of accounts", async () => {
    const token = await owner();
    const { accounts } = tenants.partners[0];
    const acting = await Promise.all(
      accounts.map(({ id }) =>
        free.call("POST", "/partner/account-owner/token", { token, body: { account_id: id } }),
      ),
    );
    const [one, two] = acting.map(({ body }) => String(body["access_token"]));
    const seen = [];
    for (const each of [one, two, one, two, token])
      seen.push((await api.call("GET", "/verify-token", { token: each })).status);
    expect(seen).toEqual([200, 200, 200, 429, 429]);
  });

  test("gets exactly its burst of ten concurrent requests through", async () => {
    const token = await owner();
    const answers = await Promise.all(Array.from({ length: 10 }, () => list(token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(BURST.user);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10 - BURST.user);
  });

  test("regains requests over time", async () => {
    const fast = limiterOf(redis, 60_000);
    api = await startApi({ db: database.db, config: free.deps.config, limiter: fast });
    const token = await owner();
    await statuses(BURST.user, () => list(token));
    let status = 0;
    for (let i = 0; i < 200 && status !== 200; i++) ({ status } = await list(token));
    expect(status).toBe(200);
  });

  test("is counted for denied requests too, before record and fields are checked", async () => {
    const token = await free.login(tenants.partners[0].accounts[0].owner.email);
    expect(await statuses(4, () => list(token))).toEqual([403, 403, 403, 429]);
  });
});

describe("an address", () => {
  test("without a token may send as many requests as its burst, with wrong tokens too", async () => {
    const asked = [
      () => list(),
      () => list("nonsense"),
      () => api.call("POST", "/auth/discover", { body: { email: "a@b.test" } }),
      () => api.call("POST", "/auth/invitation/preview", { body: { code: "x" } }),
      () => list(),
      () => api.call("POST", "/auth/discover", { body: {} }),
    ];
    const seen: Answer[] = [];
    for (const ask of asked) seen.push(await ask());
    expect(seen.map(({ status }) => status)).toEqual([401, 401, 200, 400, 429, 429]);
    expect(seen.map(({ headers }) => headers.get("ratelimit-remaining"))).toEqual([
      "3",
      "2",
      "1",
      "0",
      "0",
      "0",
    ]);
    expect((await list(await owner())).status).toBe(200);
  });

  test("may try passwords, codes and tokens less often, with one bucket for all of them", async () => {
    const email = "a@b.test";
    const form = { "Content-Type": "application/x-www-form-urlencoded" };
    const tries = [
      () => api.call("POST", "/login", { body: { email, password: "wrong" } }),
      () => api.call("POST", "/email-otp/verify", { body: { email, otp: "1", type: "signup" } }),
      () => api.call("POST", "/login", { body: { email, password: "wrong" } }),
      () => api.call("POST", "/email-otp/verify", { body: { email, otp: "1", type: "signup" } }),
      () => api.call("POST", "/email-otp/resend", { body: { email, type: "signup" } }),
      () => api.call("POST", "/oauth/token", { root: true, body: "grant_type=x", headers: form }),
      () => api.call("POST", "/oauth/authorize", { root: true, body: "a=b", headers: form }),
      () => api.call("GET", "/auth/sso/exchange?code=x"),
    ];
    const seen: Answer[] = [];
    for (const attempt of tries) seen.push(await attempt());
    expect(seen.map(({ status }) => status)).toEqual([401, 422, 429, 429, 429, 429, 429, 429]);
    expect(seen[0]?.headers.get("ratelimit-limit")).toBe("2");
    expect((await list()).status).toBe(401);
  });

  test("has its bodies that are too large counted the same way", async () => {
    const token = await owner();
    const ask = () => api.call("POST", "/partner/webhooks", { token, body: "x".repeat(65 * 1024) });
    expect(await statuses(5, ask)).toEqual([413, 413, 413, 413, 429]);
  });

  test("of IPv6 counts as its /64, and a mapped one as its IPv4", async () => {
    const take = async (id: string) => (await limiter.take({ kind: "ip", id }))?.remaining;
    expect([
      await take("2001:db8::1"),
      await take("2001:0db8:0:0:ffff::2"),
      await take("2001:db8:0:1::1"),
      await take("192.0.2.1"),
      await take("::ffff:192.0.2.1"),
      await take("::1"),
      await take("::2"),
    ]).toEqual([3, 2, 3, 3, 2, 3, 2]);
  });

  test("of IPv6 may try twice as often from its /56 as from its /64, and four times from its /48", async () => {
    const tries = async (id: string, times: number) => {
      const seen: (boolean | undefined)[] = [];
      for (let i = 0; i < times; i++)
        seen.push((await limiter.take({ kind: "signIn", id }))?.allowed);
      return seen;
    };
    expect(BURST.signIn).toBe(2);
    // Requests that the /64 rejects are not taken from the networks around it.
    expect(await tries("2001:db8:0:1::1", 9)).toEqual([
      true,
      true,
      ...Array.from({ length: 7 }, () => false),
    ]);
    expect(await tries("2001:db8:0:2::1", 3)).toEqual([true, true, false]);
    expect(await tries("2001:db8:0:3::1", 3)).toEqual([false, false, false]);
    expect(await tries("2001:db8:0:100::1", 2)).toEqual([true, true]);
    expect(await tries("2001:db8:0:200::1", 2)).toEqual([true, true]);
    expect(await tries("2001:db8:0:300::1", 2)).toEqual([false, false]);
    expect(await tries("2001:db8:1::1", 2)).toEqual([true, true]);
  });

  test("of IPv6 gets the headers of the bucket that blocks it, also that of its /56", async () => {
    const take = (lan: number) => limiter.take({ kind: "signIn", id: `2001:db8:0:${lan}::1` });
    expect(await take(1)).toMatchObject({ remaining: 1, limit: { perMinute: 1, burst: 2 } });
    for (const lan of [1, 2, 2]) await take(lan);
    const refused = await take(3);
    expect(refused).toMatchObject({ allowed: false, remaining: 0, limit: { perMinute: 2 } });
    expect(refused?.nextInS).toBeLessThanOrEqual(30);
    expect((await take(1))?.nextInS).toBeGreaterThan(30);
  });
});

describe("the rate limits do not count", () => {
  test("reports of a review site", async () => {
    const provider = await addProvider(database.db, free.deps.box, "unlimited");
    const seen = [];
    for (let i = 0; i < 6; i++) seen.push(await send(api, provider, { events: [] }));
    expect(new Set(seen.map(({ status }) => status))).toEqual(new Set([422]));
    expect(seen[0]?.headers.get("ratelimit-limit")).toBeNull();
  });

  test("requests with the token of a service, but with a revoked one", async () => {
    const token = await free.login(tenants.superAdmin.email);
    const make = async (path: string, made: object) =>
      (await free.call("POST", path, { token, body: made })).body;
    const one = await make("/admin/services", { name: "Site", scopes: ["tokens:introspect"] });
    const service = String(one["id"]);
    const body = await make(`/admin/services/${service}/tokens`, {
      name: "one",
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const introspect = () =>
      api.call("POST", "/platform/introspect", {
        token: String(body["access_token"]),
        body: { token },
      });
    expect(await statuses(5, introspect)).toEqual([200, 200, 200, 200, 200]);
    await free.call("DELETE", `/admin/services/${service}`, { token });
    expect(await statuses(5, introspect)).toEqual([401, 401, 401, 401, 429]);
  });

  test("the documents and the health pages", async () => {
    for (const path of ["/healthz", "/readyz", "/.well-known/jwks.json"]) {
      const { status, headers } = await api.call("GET", path, { root: true });
      expect([status, headers.get("ratelimit-limit")]).toEqual([200, null]);
    }
  });

  test("anything with the limits off", async () => {
    const token = await owner();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => free.call("GET", "/partner/webhooks", { token })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(answers[0]?.headers.get("ratelimit-limit")).toBeNull();
  });
});

describe("without Redis", () => {
  test("requests pass, are counted, and do not wait for it each time", async () => {
    let asked = 0;
    const dead = {
      defineCommand: () => {},
      takeTokens: () => {
        asked += 1;
        return Promise.reject(new Error("Connection is closed."));
      },
    };
    const clock = createFakeClock();
    const one = { perMinute: 1, burst: 1 };
    const lost = createRateLimiter({
      redis: dead,
      prefix: "x:",
      clock,
      log: silentLog,
      limits: { user: one, ip: one, signIn: one },
    });
    api = await startApi({ db: database.db, config: free.deps.config, limiter: lost });
    const token = await owner();
    expect(await statuses(5, () => list(token))).toEqual([200, 200, 200, 200, 200]);
    expect([lost.unchecked, asked]).toEqual([5, 1]);
    clock.advance(1_000);
    const { headers } = await list(token);
    expect(headers.get("ratelimit-limit")).toBeNull();
    expect([lost.unchecked, asked]).toEqual([6, 2]);
  });

  test("requests are limited again with a Redis that has lost the script", async () => {
    await redis.script("FLUSH");
    const token = await owner();
    expect(await statuses(4, () => list(token))).toEqual([200, 200, 200, 429]);
  });
});

type Redis = Awaited<ReturnType<typeof connectRedis>>;

const BURST = { user: 3, ip: 4, signIn: 2 };

let api: TestApi;

let limiter: RateLimiter;

beforeEach(async () => {
  limiter = limiterOf(redis);
  api = await startApi({ db: database.db, config: free.deps.config, limiter });
});

afterAll(async () => {
  redis.disconnect();
});

/** Makes a limiter with separate buckets, which refill too slowly to matter during a test. */
function limiterOf(
  connection: Pick<Redis, "defineCommand" | "takeTokens">,
  perMinute = 1,
  prefix = `test-${crypto.randomUUID()}:`,
): RateLimiter {
  return createRateLimiter({
    redis: connection,
    prefix,
    clock: systemClock,
    log: silentLog,
    limits: {
      user: { perMinute, burst: BURST.user },
      ip: { perMinute, burst: BURST.ip },
      signIn: { perMinute, burst: BURST.signIn },
    },
  });
}

const owner = () => free.login(tenants.partners[0].owner.email);

const list = (token?: string) => api.call("GET", "/partner/webhooks", { token });

const statuses = async (times: number, ask: () => Promise<Answer>) => {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push((await ask()).status);
  return seen;
};
