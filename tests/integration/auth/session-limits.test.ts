import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { decodeJwt } from "jose";

import { ulidFloor } from "../../../db/partitions.ts";
import { tokens } from "../../../db/schema/tokens.ts";
import { introspect } from "../../../src/auth/tokens/service-tokens.ts";
import { pollStreams } from "../../../src/webhooks/queries/watch.ts";
import { startApi, type TestApi } from "../../support/api.ts";
import { startSerialApi } from "../../support/serial-api.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

describe("the absolute end of a session", () => {
  test("comes 8 hours after the sign-in, while its token lives on where no limit is set", async () => {
    const token = await absolute.login((await freshUser()).email);
    clock.advance(8 * HOUR_MS - 1);
    expect(await statusOf(token, absolute)).toBe(200);
    clock.advance(1);
    expect(await statusOf(token, absolute)).toBe(401);
    expect(await introspect(absolute.deps, token, CALL)).toEqual({ active: false });
    expect(await introspect(api.deps, token, CALL)).toMatchObject({ active: true });
    expect(await statusOf(token, api)).toBe(200);
  });

  test.each(["login", "sso", "password_reset"] as const)(
    "counts for a sign-in by %s, in each of two concurrent requests",
    async (method) => {
      const signedIn = async () => (await sessionOf(world, await freshUser(), method)).token;
      const issued = await Promise.all([signedIn(), signedIn()]);
      const statuses = () => Promise.all(issued.map((one) => statusOf(one, absolute)));
      expect(await statuses()).toEqual([200, 200]);
      clock.advance(8 * HOUR_MS);
      expect(await statuses()).toEqual([401, 401]);
    },
  );

  test("is the end in the list of sessions, which leaves out a session that passed it", async () => {
    const user = await freshUser();
    const first = await absolute.login(user.email);
    const [listed] = await sessions(first, absolute);
    expect(new Date(listed?.expires_at ?? "")).toEqual(
      new Date(clock.now().getTime() + 8 * HOUR_MS),
    );
    clock.advance(8 * HOUR_MS);
    const second = await absolute.login(user.email);
    const later = await sessions(second, absolute);
    expect(later.map((one) => one.is_current)).toEqual([true]);
    const path = `/account/sessions/${listed?.id}`;
    expect((await absolute.call("DELETE", path, { token: second })).status).toBe(404);
    expect(await sessions(second, api)).toHaveLength(2);
  });
});

describe("the idle end of a session", () => {
  test("comes 15 minutes after the last use, which each request moves, but none that is refused", async () => {
    const token = await api.login((await freshUser()).email);
    for (let n = 0; n < 3; n++) {
      clock.advance(15 * MINUTE_MS - 1);
      expect(await statusOf(token, idle)).toBe(200);
      await idle.settled();
      expect(await isStampedNow(token)).toBe(true);
    }
    clock.advance(15 * MINUTE_MS);
    expect(await statusOf(token, idle)).toBe(401);
    await idle.settled();
    expect(await isStampedNow(token)).toBe(false);
  });

  test("comes 15 minutes after the sign-in of a session that was never used", async () => {
    const token = await api.login((await freshUser()).email);
    clock.advance(15 * MINUTE_MS);
    expect(await statusOf(token, idle)).toBe(401);
  });

  test("ends the streams of the token", async () => {
    const jti = jtiOf(await api.login((await freshUser()).email));
    const isLive = async () => {
      const now = clock.now();
      const given = { ids: [], jtis: [jti], now, firstId: ulidFloor(now) };
      const limits = idle.deps.config.sessionLimits;
      return (await pollStreams(database.db, { ...given, ...limits })).bearers.has(jti);
    };
    clock.advance(15 * MINUTE_MS - 1);
    expect(await isLive()).toBe(true);
    clock.advance(1);
    expect(await isLive()).toBe(false);
  });
});

const world = await startSignInWorld();
const { database, clock, api, freshUser } = world;
const absolute = await startApi({
  db: database.connect(),
  clock,
  config: { ...api.deps.config, sessionLimits: { maxHours: 8, idleMinutes: null } },
});
const idle = await startSerialApi(world, { sessionLimits: { maxHours: null, idleMinutes: 15 } });

afterAll(async () => {
  await idle.stop();
  await world.stop();
});

const CALL = { requestId: "r", ip: "192.0.2.1", userAgent: null, headers: new Headers() };

const statusOf = async (token: string, on: TestApi) =>
  (await on.call("GET", "/verify-token", { token })).status;

async function sessions(token: string, on: TestApi) {
  const { body } = await on.call("GET", "/account/sessions", { token });
  return body["data"] as { id: string; is_current: boolean; expires_at: string }[];
}

const jtiOf = (token: string) => decodeJwt(token).jti ?? "";

async function isStampedNow(token: string): Promise<boolean> {
  const [row] = await database.db
    .select({ at: tokens.lastUsedAt })
    .from(tokens)
    .where(eq(tokens.jti, jtiOf(token)));
  return row?.at?.getTime() === clock.now().getTime();
}
