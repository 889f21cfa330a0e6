import { afterAll, describe, expect, test } from "bun:test";

import { decodeJwt } from "jose";
import { ulid } from "ulid";

import type { Answer } from "../../support/api.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

const TEAMS = [
  { team: "partner", path: "/partner/", owner: "partner_owner", member: "partner_admin" },
  { team: "account", path: "/account/team-", owner: "account_owner", member: "account_user" },
] as const;

describe.each(TEAMS)("the sign-ins of a $team's people", ({ path, owner, member }) => {
  test("are those of its own people, and an owner ends one with all its tokens", async () => {
    const [boss, mate] = [await freshUser(owner), await freshUser(member)];
    const [token, theirs] = [await api.login(boss.email), await api.login(mate.email)];
    const foreign = await Promise.all(outsiders(path).map(({ email }) => api.login(email)));
    expect(foreign).toHaveLength(2);
    const list = await rowsOf(call("GET", `${path}sessions?limit=100`, token));
    const ofOthers = outsiders(path).map(({ id }) => id);
    expect(list.filter((one) => ofOthers.includes(Number(one["user_id"])))).toEqual([]);
    expect(list.filter((one) => one["is_current"])).toMatchObject([{ user_id: boss.id }]);
    const [session, ...more] = list.filter((one) => one["user_id"] === mate.id);
    expect(more).toEqual([]);
    expect(session).toMatchObject({ method: "login", user_id: mate.id, is_current: false });
    expect(JSON.stringify(list)).not.toContain(String(decodeJwt(theirs).jti));
    const ended = `${path}sessions/${String(session?.["id"])}`;
    expect((await call("DELETE", ended, token)).status).toBe(204);
    expect((await call("GET", "/verify-token", theirs)).status).toBe(401);
    expect(await lastAudit("SESSION_REVOKED")).toMatchObject({
      actor: boss.id,
      details: { session_id: session?.["id"], user_id: mate.id, revoked: 1 },
    });
    expect(codeOf(await call("DELETE", ended, token))).toEqual([404, "not_found"]);
    for (const id of [ulid(), "x", "%00"])
      expect((await call("DELETE", `${path}sessions/${id}`, token)).status).toBe(404);
  });

  test("of another company are 403 and audited, and live on", async () => {
    const boss = await freshUser(owner);
    const token = await api.login(boss.email);
    for (const { email } of outsiders(path)) {
      const foreign = await api.login(email);
      const [own] = await rowsOf(call("GET", "/account/sessions", foreign));
      const id = String(own?.["id"]);
      expect(codeOf(await call("DELETE", `${path}sessions/${id}`, token))).toEqual([
        403,
        "forbidden",
      ]);
      expect(await lastAudit("AUTHZ_DENIED")).toMatchObject({
        actor: boss.id,
        details: { session_id: id, reason: "foreign_record" },
      });
      expect((await call("GET", "/verify-token", foreign)).status).toBe(200);
    }
  });
});

describe.each(TEAMS)("the tokens of a $team's people", ({ path, owner, member }) => {
  test("are shown to an owner without their values, and ended at once", async () => {
    const [boss, mate] = [await freshUser(owner), await freshUser(member)];
    const token = await api.login(boss.email);
    const pat = await grant({ userId: mate.id, kind: "api_pat", name: "script" });
    const list = await rowsOf(call("GET", `${path}tokens?limit=100`, token));
    const [shown] = list.filter((one) => one["user_id"] === mate.id);
    expect(shown).toMatchObject({ id: decodeJwt(pat).jti, kind: "api_pat", name: "script" });
    expect(JSON.stringify(list)).not.toContain(pat.split(".")[2] ?? "");
    const other = outsiders(path)[0];
    const foreign = await grant({ userId: other?.id ?? 0, kind: "api_pat", name: "theirs" });
    const end = (one: string) => call("DELETE", `${path}tokens/${decodeJwt(one).jti}`, token);
    expect(codeOf(await end(foreign))).toEqual([403, "forbidden"]);
    expect((await end(pat)).status).toBe(204);
    expect((await call("GET", "/verify-token", pat)).status).toBe(401);
    expect((await call("GET", "/verify-token", foreign)).status).toBe(200);
    expect(await lastAudit("TOKEN_REVOKED")).toMatchObject({
      actor: boss.id,
      details: { kind: "api_pat", user_id: mate.id },
    });
  });
});

test("an account's list of tokens leaves out those with which its partner acts for it", async () => {
  const boss = await freshUser("account_owner");
  const acting = { kind: "impersonation", impersonatorId: tenants.partners[0].admin.id } as const;
  const pat = await grant({ userId: boss.id, ...acting });
  const token = await api.login(boss.email);
  const list = await rowsOf(call("GET", "/account/team-tokens?limit=100", token));
  expect(list.map((one) => one["id"])).not.toContain(decodeJwt(pat).jti);
  const ended = await call("DELETE", `/account/team-tokens/${decodeJwt(pat).jti}`, token);
  expect(ended.status).toBe(403);
});

const world = await startSignInWorld();
const { database, tenants, api, freshUser, grant } = world;

afterAll(() => world.stop());

const call = (method: string, path: string, token: string) => api.call(method, path, { token });

/** Users outside of the team: one of the same tenant, and one of another. */
function outsiders(path: string) {
  const [one, two] = tenants.partners;
  return path === "/partner/"
    ? [one.accounts[0].owner, two.owner]
    : [one.admin, two.accounts[0].owner];
}

async function rowsOf(answer: Promise<Answer>) {
  const { status, body, text } = await answer;
  if (status !== 200) throw new Error(text);
  return body["data"] as Record<string, unknown>[];
}

const codeOf = ({ status, body }: Answer) => [status, body["code"]];

async function lastAudit(action: string) {
  const rows = await database.db.sql<{ details: object; actor: number }[]>`
    select details, actor_id as actor from audit_log where action = ${action} order by id desc limit 1`;
  return rows[0];
}
