import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";

import { auditLog, users } from "../../../db/schema/companies.ts";
import { oauthClients, tokens } from "../../../db/schema/tokens.ts";
import { openSession } from "../../../src/auth/sign-in/open-session.ts";
import { issueRefreshToken, refreshSession } from "../../../src/auth/sign-in/refresh-session.ts";
import { addMs } from "../../../src/lib/clock.ts";
import { startApi, type TestApi } from "../../support/api.ts";
import { behindReset } from "../../support/auth-races.ts";
import { addClient } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

// Tests the action that `/oauth/token` calls.

describe("a refresh", () => {
  test("returns a new pair, ends the old refresh token and leaves the earlier access token valid", async () => {
    const first = await signIn(await freshUser());
    const { access, refresh: next, scope } = await redeem(first.refresh, other);
    expect(scope).toBe("*");
    expect(await statusOf(access.token)).toBe(200);
    expect(await statusOf(first.access)).toBe(200);
    expect(await refresh(first.refresh)).toEqual({ kind: "refused" });
    expect((await refresh(next.token)).kind).toBe("refreshed");
  });

  test("succeeds for one of 50 requests at once in two processes, and the winner's new token works", async () => {
    const user = await freshUser();
    const first = await signIn(user);
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) => refresh(first.refresh, i % 2 ? api : other)),
    );
    const won = outcomes.filter((outcome) => outcome.kind === "refreshed");
    expect(won).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(49);
    for (const { refresh: child } of won)
      expect((await refresh(child.token)).kind).toBe("refreshed");
  });

  test("lives 30 days from each issue, to the last millisecond", async () => {
    const [inTime, late] = [await signIn(await freshUser()), await signIn(await freshUser())];
    clock.advance(REFRESH_TTL_MS - 1);
    const { refresh: next } = await redeem(inTime.refresh);
    clock.advance(1);
    expect(await refresh(late.refresh)).toEqual({ kind: "refused" });
    clock.advance(REFRESH_TTL_MS - 2);
    expect((await refresh(next.token)).kind).toBe("refreshed");
  });

  test("is possible until the last day of its sign-in, to the millisecond, and not at all after it", async () => {
    const limited = await limitedTo(40);
    const user = await freshUser();
    const [one, two] = [
      await signIn(user, { on: limited }),
      await signIn(user, { on: limited }),
    ] as const;
    clock.advance(20 * DAY_MS);
    const [next, late] = [await redeem(one.refresh, limited), await redeem(two.refresh, limited)];
    // The 30 days of the new refresh token would end later.
    expect(next.refresh.expiresAt).toEqual(addMs(clock.now(), 20 * DAY_MS));
    clock.advance(20 * DAY_MS - 1);
    const last = await redeem(next.refresh.token, limited);
    expect(last.refresh.expiresAt).toEqual(clock.now());
    clock.advance(1);
    expect(await refresh(late.refresh.token, limited)).toEqual({ kind: "refused" });
    // The last access token lives to its own end.
    expect(await statusOf(last.access.token, limited)).toBe(200);
    clock.advance(DAY_MS);
    expect(await statusOf(last.access.token, limited)).toBe(401);
  });

  test("of a sign-in from before the last day was set is refused after it, and ends nothing else", async () => {
    const first = await signIn(await freshUser());
    clock.advance(25 * DAY_MS);
    expect(await refresh(first.refresh, await limitedTo(25))).toEqual({ kind: "refused" });
    expect((await refresh(first.refresh, await limitedTo(26))).kind).toBe("refreshed");
  });

  test("repeated within 10 s is rejected; later it ends the sign-in and is audited", async () => {
    const user = await freshUser();
    const first = await signIn(user);
    const next = await redeem(first.refresh);
    clock.advance(10_000);
    expect(await refresh(first.refresh)).toEqual({ kind: "refused" });
    expect(await statusOf(next.access.token)).toBe(200);
    clock.advance(1);
    expect(await refresh(first.refresh)).toEqual({ kind: "refused" });
    for (const token of [first.access, next.access.token]) expect(await statusOf(token)).toBe(401);
    expect(await refresh(next.refresh.token)).toEqual({ kind: "refused" });
    const rows = await database.db.select().from(auditLog).where(eq(auditLog.actorId, user.id));
    expect(rows.map((row) => row.action)).toContain("REFRESH_REPLAYED");
    expect(rows.find((row) => row.action === "REFRESH_REPLAYED")?.details).toEqual({
      session_id: first.familyId,
      revoked: 4,
    });
  });

  test("may narrow the access token but never widen it, and the next refresh token keeps the scope", async () => {
    const first = await signIn(await freshUser(), { scope: "reviews:read webhooks:read" });
    expect(await refresh(first.refresh, api, { scopes: ["webhooks:write"] })).toEqual({
      kind: "too_wide",
    });
    expect(await refresh(first.refresh, api, { scopes: ["*"] })).toEqual({ kind: "too_wide" });
    const narrow = await refresh(first.refresh, api, { scopes: ["reviews:read"] });
    if (narrow.kind !== "refreshed") throw new Error(narrow.kind);
    expect(narrow.scope).toBe("reviews:read");
    expect((await redeem(narrow.refresh.token)).scope).toBe("reviews:read webhooks:read");
  });

  test.each(["an access token", "garbage", "another client's"] as const)(
    "of %s is refused",
    async (what) => {
      const { clientId } = await addClient(database.db, { firstParty: true });
      const first = await signIn(await freshUser(), { clientId });
      const token = { "an access token": first.access, garbage: "a.b.c" }[what as string];
      expect(await refresh(token ?? first.refresh, api)).toEqual({ kind: "refused" });
      const own = await refresh(first.refresh, api, { clientId });
      expect(own.kind).toBe("refreshed");
    },
  );

  test("of a user who is not active is refused", async () => {
    const user = await freshUser();
    const first = await signIn(user);
    await database.db.update(users).set({ isActive: false }).where(eq(users.id, user.id));
    expect(await refresh(first.refresh)).toEqual({ kind: "refused" });
  });
});

/** Redeems one refresh token after the other until one is rejected. Returns all tokens that it got. */
async function chase(token: string, on: TestApi): Promise<string[]> {
  const got: string[] = [];
  for (let next = token; ;) {
    const outcome = await refresh(next, on);
    if (outcome.kind !== "refreshed") return got;
    got.push(outcome.access.token);
    next = outcome.refresh.token;
  }
}

describe("a race", () => {
  test("of a refresh and a reset that starts meanwhile rejects the refresh", async () => {
    const user = await freshUser();
    const first = await signIn(user);
    const outcome = await behindReset(database.db, user.id, () => refresh(first.refresh, other));
    expect(outcome).toEqual({ kind: "refused" });
    expect(await tokensOf(user.id)).toEqual([]);
  });

  test("of a login and a reset that starts meanwhile puts them in order: the login's token is issued after it", async () => {
    const user = await freshUser();
    const token = await behindReset(database.db, user.id, () => other.login(user.email));
    expect(await statusOf(token)).toBe(200);
  });

  test("of 20 refreshes and a password reset leaves only the fresh token", async () => {
    for (let round = 0; round < 5; round++) {
      const user = await freshUser();
      const sessions = await Promise.all(Array.from({ length: 20 }, () => signIn(user)));
      const own = await api.login(user.email);
      const chases = sessions.map((one, i) => chase(one.refresh, i % 2 ? api : other));
      const { status, body } = await api.call("POST", "/reset-password", {
        token: own,
        body: { password: "violet anchor museum 71" },
      });
      expect(status).toBe(200);
      const got = (await Promise.all(chases)).flat();
      for (const token of [...got, ...sessions.map((one) => one.access)])
        expect(await statusOf(token, other)).toBe(401);
      expect(await statusOf(String(body["token"]), other)).toBe(200);
      expect(await tokensOf(user.id)).toMatchObject([{ kind: "access" }]);
    }
  });

  test("with the end of the session leaves no token of it", async () => {
    for (let round = 0; round < 10; round++) {
      const user = await freshUser();
      const own = await api.login(user.email);
      const first = await signIn(user);
      const chasing = chase(first.refresh, other);
      const { status } = await api.call("DELETE", `/account/sessions/${first.familyId}`, {
        token: own,
      });
      expect(status).toBe(204);
      for (const token of await chasing) expect(await statusOf(token)).toBe(401);
      expect(await tokensOf(user.id)).toHaveLength(1);
    }
  });

  test("with a logout leaves no token of the sign-in", async () => {
    for (let round = 0; round < 10; round++) {
      const user = await freshUser();
      const first = await signIn(user);
      const chasing = chase(first.refresh, other);
      await api.call("GET", round % 2 ? "/logout" : "/sso/revoking-token", {
        token: first.access,
      });
      for (const access of await chasing) expect(await statusOf(access)).toBe(401);
      expect(await tokensOf(user.id)).toEqual([]);
    }
  });

  test("with the deletion of the client leaves no token of it, and nothing fails", async () => {
    for (let round = 0; round < 5; round++) {
      const user = await freshUser();
      const { clientId } = await addClient(database.db, { firstParty: true });
      const sessions = await Promise.all([1, 2, 3].map(() => signIn(user, { clientId })));
      const chases = sessions.map((one, i) =>
        refresh(one.refresh, i % 2 ? api : other, { clientId }),
      );
      await database.db.delete(oauthClients).where(eq(oauthClients.clientId, clientId));
      await Promise.all(chases);
      expect(await tokensOf(user.id)).toEqual([]);
    }
  });
});

const world = await startSignInWorld();

const DAY_MS = 86_400_000;
const REFRESH_TTL_MS = 30 * DAY_MS;

const requestContext = {
  requestId: "refresh",
  ip: "127.0.0.1",
  userAgent: null,
  headers: new Headers(),
};

const { database, clock, api, other, freshUser } = world;

afterAll(() => world.stop());

/** Opens a sign-in with a refresh token, as the password grant does. */
async function signIn(
  user: TestUser,
  { clientId = null as string | null, scope = "*", on = api } = {},
) {
  const now = clock.now();
  return database.db.transaction(async (tx) => {
    const method = "password_grant";
    const session = await openSession(tx, on.deps, {
      user,
      method,
      clientId,
      scope,
      requestContext,
      now,
    });
    const { familyId } = session;
    const holder = { userId: user.id, familyId, clientId, scope, signedInAt: now, now };
    const refresh = await issueRefreshToken(tx, on.deps, holder);
    return { access: session.token, refresh: refresh.token, familyId };
  });
}

/** An API whose sign-ins at clients have a last day. */
const limitedTo = (refreshMaxDays: number) =>
  startApi({
    db: database.connect(),
    clock,
    config: { ...api.deps.config, refreshMaxDays },
  });

const refresh = (
  token: string,
  on = api,
  over: { clientId?: string | null; scopes?: string[] } = {},
) => refreshSession(on.deps, { token, clientId: null, ...over }, requestContext);

async function redeem(token: string, on = api) {
  const outcome = await refresh(token, on);
  if (outcome.kind !== "refreshed") throw new Error(`The refresh was answered ${outcome.kind}.`);
  return outcome;
}

const statusOf = async (token: string, on = api) =>
  (await on.call("GET", "/verify-token", { token })).status;

const tokensOf = (userId: number) =>
  database.db.select().from(tokens).where(eq(tokens.userId, userId));
