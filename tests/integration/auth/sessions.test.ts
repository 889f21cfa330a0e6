import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { ulid } from "ulid";

import { authenticationEvents, tokens } from "../../../db/schema/tokens.ts";
import { everyPage } from "../../support/api.ts";
import { until } from "../../support/network/receiver.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

describe("the list of sessions", () => {
  test("contains the live sign-ins of the user, newest first, and marks the current one", async () => {
    const user = await freshUser();
    const first = await api.login(user.email);
    clock.advance(5);
    const second = await api.login(user.email);
    await api.login(tenants.partners[0].owner.email);
    // The last use is written after the response of the request.
    await until("the stamp", async () => (await sessions(second))[0]?.last_used_at !== null);
    const list = await sessions(second);
    expect(list.map((one) => one.is_current)).toEqual([true, false]);
    expect(list[0]).toEqual({
      id: expect.any(String),
      method: "login",
      client_id: null,
      ip: "127.0.0.1",
      user_agent: null,
      created_at: clock.now().toISOString().replace("Z", "+00:00"),
      last_used_at: expect.anything(),
      expires_at: new Date(clock.now().getTime() + 86_400_000).toISOString().replace("Z", "+00:00"),
      factor_at: null,
      is_current: true,
    } as never);
    await api.call("GET", "/logout", { token: first });
    expect(await sessions(second)).toHaveLength(1);
    clock.advance(86_400_000);
    const third = await api.login(user.email);
    expect(await sessions(third)).toHaveLength(1);
  });

  test("is paginated without a gap for any page size", async () => {
    const user = await freshUser();
    let token = "";
    for (let i = 0; i < 5; i++) {
      token = await api.login(user.email);
      clock.advance(5);
    }
    const pages = await everyPage<Session>(api, "/account/sessions?limit=2", token);
    const seen = pages.flat().map((one) => one.id);
    expect(seen).toEqual((await sessions(token)).map((one) => one.id));
    expect(seen).toHaveLength(5);
  });
});

describe("the end of a session", () => {
  test("ends all its tokens at once, in every process, and no others, and is audited", async () => {
    const user = await freshUser();
    const gone = await api.login(user.email);
    clock.advance(5);
    const kept = await api.login(user.email);
    const [, older] = await sessions(kept);
    const id = older?.id ?? "";
    await grant({ userId: user.id, kind: "refresh", familyId: id });
    expect((await end(kept, id, "end-session")).status).toBe(204);
    expect(await statusOf(gone, other)).toBe(401);
    expect(await statusOf(kept, other)).toBe(200);
    expect(await database.db.select().from(tokens).where(eq(tokens.familyId, id))).toEqual([]);
    const [event] = await database.db
      .select()
      .from(authenticationEvents)
      .where(eq(authenticationEvents.id, id));
    expect(event?.logoutTime).toEqual(clock.now());
    expect(await auditOf("end-session")).toMatchObject([
      { action: "SESSION_REVOKED", actorId: user.id, details: { session_id: id, revoked: 2 } },
    ]);
    expect((await end(kept, id)).status).toBe(404);
  });

  test("may be requested with a token of the same session", async () => {
    const token = await api.login((await freshUser()).email);
    const [own] = await sessions(token);
    expect((await end(token, own?.id ?? "")).status).toBe(204);
    expect(await statusOf(token)).toBe(401);
  });

  test("of another user is 403 and audited, a missing or malformed one 404", async () => {
    const [mine, theirs] = [await freshUser(), await freshUser()];
    const token = await api.login(mine.email);
    const foreign = await api.login(theirs.email);
    const [session] = await sessions(foreign);
    expect((await end(token, session?.id ?? "", "foreign-session")).status).toBe(403);
    expect(await auditOf("foreign-session")).toMatchObject([
      { action: "AUTHZ_DENIED", details: { session_id: session?.id, reason: "foreign_record" } },
    ]);
    expect(await statusOf(foreign)).toBe(200);
    for (const id of [ulid(), "x", "1", "%00", "..%2F"])
      expect((await end(token, id)).status).toBe(404);
  });
});

describe("GET /sso/revoking-token", () => {
  test("ends the token and its sign-in in every process, and leaves other sign-ins alone", async () => {
    const user = await freshUser();
    const [token, kept] = [await api.login(user.email), await other.login(user.email)];
    const own = (await sessions(token)).find((one) => one.is_current)?.id ?? "";
    await grant({ userId: user.id, kind: "refresh", familyId: own });
    const sibling = await grant({ userId: user.id, familyId: own });
    const headers = { "X-Request-Id": "revoking" };
    const answer = await api.call("GET", "/sso/revoking-token", { token, headers });
    expect(answer).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect(await statusOf(token, other)).toBe(401);
    expect(await statusOf(sibling, other)).toBe(401);
    expect(await statusOf(kept, other)).toBe(200);
    expect(await database.db.select().from(tokens).where(eq(tokens.familyId, own))).toEqual([]);
    expect(await auditOf("revoking")).toMatchObject([
      { action: "TOKEN_REVOKED", actorId: user.id, details: { kind: "access" } },
    ]);
    const events = await database.db
      .select()
      .from(authenticationEvents)
      .where(eq(authenticationEvents.userId, user.id));
    expect(events.map((event) => event.logoutTime)).toEqual([null, null]);
  });

  test("accepts any kind of token, of any user", async () => {
    const userId = tenants.partners[0].accounts[1].locationUser.id;
    for (const over of [
      { kind: "api_pat", name: "ci" },
      { kind: "dashboard_pat", ttlS: null, box: api.deps.box },
      { scope: "reviews:read" },
    ] as const) {
      const token = await grant({ userId, ...over });
      expect((await api.call("GET", "/sso/revoking-token", { token })).status).toBe(200);
      expect((await api.call("GET", "/sso/revoking-token", { token })).status).toBe(401);
    }
    const token = await api.login(tenants.superAdmin.email);
    expect((await api.call("GET", "/sso/revoking-token", { token })).status).toBe(200);
    expect((await api.call("GET", "/sso/revoking-token")).status).toBe(401);
  });
});

const world = await startSignInWorld();

const { database, tenants, clock, api, other, freshUser, grant, statusOf, auditOf } = world;

afterAll(() => world.stop());

interface Session {
  readonly id: string;
  readonly method: string;
  readonly is_current: boolean;
  readonly user_agent: string | null;
  readonly last_used_at: string | null;
}

async function sessions(token: string, query = ""): Promise<Session[]> {
  const { status, body, text } = await api.call("GET", `/account/sessions${query}`, {
    token,
  });
  if (status !== 200) throw new Error(text);
  return body["data"] as Session[];
}

const end = (token: string, id: string, requestId = "r") =>
  api.call("DELETE", `/account/sessions/${id}`, {
    token,
    headers: { "X-Request-Id": requestId },
  });
