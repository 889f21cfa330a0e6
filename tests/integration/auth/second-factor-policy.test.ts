import { afterAll, describe, expect, test } from "bun:test";

import type { SignInMethod } from "../../../src/http/principal.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { PASSWORD, startApi } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { appCode, challenged, challengeOf, prove, withApp } from "../../support/factors.ts";
import { addClient } from "../../support/oauth.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

const world = await startSignInWorld();
const { api, clock, database, tenants } = world;
const { db } = database;
const [p1, p2] = tenants.partners;
afterAll(() => world.stop());

const security = (token: string, require_second_factor: boolean, path = "/partner/security") =>
  api.call("PATCH", path, { token, body: { require_second_factor } });

describe("the requirement of a company", () => {
  test("is set by an Owner who has a factor, in person, and audited", async () => {
    const token = await api.login(p2.owner.email);
    const early = await security(token, true);
    expect([early.status, early.body["code"]]).toEqual([409, "no_second_factor"]);
    const holder = await withApp(world, p2.owner);
    const set = await security(holder.token, true);
    expect([set.status, set.body]).toEqual([200, { require_second_factor: true }]);
    const shown = await api.call("GET", "/partner/security", { token: holder.token });
    expect(shown.body).toEqual({ require_second_factor: true });
    const rows = await db.sql`select details from audit_log where action = 'SECOND_FACTOR_POLICY'`;
    expect(rows.map(({ details }) => details.changes)).toEqual([
      { require_second_factor: { from: false, to: true } },
    ]);
    const admin = await world.grant({ userId: p1.admin.id });
    expect((await security(admin, true)).status).toBe(403);
    const last = await api.call("DELETE", `/account/second-factors/${holder.factorId}`, {
      token: holder.token,
    });
    expect([last.status, last.body["code"]]).toEqual([409, "last_factor"]);
    expect((await security(holder.token, false)).status).toBe(200);
  });

  test("is one of the company's own people, set by an Owner of an account or by an operator", async () => {
    const owner = await withApp(world, p1.accounts[0].owner);
    const set = await security(owner.token, true, "/account/security");
    expect(set.status).toBe(200);
    expect((await challenged(api, p1.accounts[0].user)).enrol).toBe(true);
    await api.login(p1.accounts[1].owner.email);
    await api.login(p1.owner.email);
    const root = await api.login(tenants.superAdmin.email);
    const body = { require_second_factor: false };
    const path = `/admin/accounts/${p1.accounts[0].id}`;
    const changed = await api.call("PATCH", path, { token: root, body });
    expect([changed.status, changed.body["require_second_factor"]]).toEqual([200, false]);
    await api.login(p1.accounts[0].user.email);
  });

  test("makes a user without a factor set one up, which finishes the sign-in", async () => {
    const user = await required();
    const { token, methods, enrol, expiresIn } = await challenged(api, user);
    expect([methods, enrol, expiresIn]).toEqual([[], true, 900]);
    const begun = await api.call("POST", "/account/second-factors/totp", { token });
    const body = { code: appCode(String(begun.body["secret"]), clock) };
    const added = await api.call("POST", "/account/second-factors/totp/confirm", { token, body });
    expect(added.status).toBe(200);
    const { token: opened } = fieldsOf(added.body["sign_in"]);
    expect((await api.call("GET", "/verify-token", { token: String(opened) })).status).toBe(200);
    const again = await api.call("POST", "/account/second-factors/totp", { token });
    expect(again.status).toBe(401);
    expect((await challenged(api, user)).methods).toEqual(["totp", "recovery_code"]);
  });

  test("lets a challenge set up no factor besides one that another sign-in has set up meanwhile", async () => {
    const user = await required();
    const thief = await challenged(api, user);
    await enrolled(user);
    const late = await api.call("POST", "/account/second-factors/totp", { token: thief.token });
    expect([late.status, late.body["code"]]).toEqual([403, "forbidden"]);
  });

  test("binds a reset: the password is set, and the answer is a challenge", async () => {
    const user = await required();
    await enrolled(user);
    const token = await world.grant({
      userId: user.id,
      kind: "password_reset",
      scope: "password:reset",
    });
    const password = "quite another fine horse";
    const reset = await api.call("POST", "/reset-password", { token, body: { password } });
    expect(challengeOf(reset).methods).toEqual(["totp", "recovery_code"]);
    const login = (text: string) =>
      api.call("POST", "/login", { body: { email: user.email, password: text } });
    expect((await login(PASSWORD)).body["code"]).toBe("invalid_credentials");
    expect((await login(password)).body["code"]).toBe("second_factor_required");
  });

  test("of operators is a setting", async () => {
    const config = { ...api.deps.config, operatorsRequireSecondFactor: true };
    const strict = await startApi({ db: database.connect(), clock, config });
    expect((await challenged(strict, tenants.superAdmin)).enrol).toBe(true);
    const root = await api.login(tenants.superAdmin.email);
    const erase = await strict.call("POST", "/admin/erasures", { token: root, body: {} });
    expect([erase.status, erase.body["code"]]).toEqual([403, "step_up_required"]);
    expect((await strict.call("GET", "/admin/users", { token: root })).status).toBe(200);
    await strict.stop();
  });
});

describe("step-up", () => {
  test("asks a session of such a company for a proof of the last ten minutes, and audits no refusal", async () => {
    const user = await required();
    const { token, secret } = await enrolled(user);
    const ask = () => api.call("GET", "/account/api-token", { token });
    expect((await ask()).status).toBe(404);
    clock.advance(600_000);
    const stale = await ask();
    expect([stale.status, stale.body["code"]]).toEqual([403, "step_up_required"]);
    const body = { code: appCode(secret, clock) };
    const proved = await api.call("POST", "/account/second-factors/step-up", { token, body });
    expect(proved.status).toBe(200);
    clock.advance(599_999);
    expect((await ask()).status).toBe(404);
    clock.advance(1);
    expect((await ask()).status).toBe(403);
    const denied = await db.sql`
      select 1 from audit_log where actor_id = ${user.id} and action = 'AUTHZ_DENIED'`;
    expect(denied).toHaveLength(0);
  });

  test("counts a single sign-on as a proof, and asks neither clients nor personal tokens", async () => {
    const user = await required();
    await enrolled(user);
    const { clientId } = await addClient(db, { firstParty: true });
    const status = async (token: string) => {
      const body = { name: "one" };
      const { body: answer } = await api.call("POST", "/account/personal-access-tokens", {
        token,
        body,
      });
      return answer["code"] ?? "made";
    };
    expect(await status(await session(user, "sso"))).toBe("made");
    expect(await status(await session(user, "login"))).toBe("step_up_required");
    expect(await status(await session(user, "password_reset"))).toBe("step_up_required");
    expect(await status(await session(user, "authorization_code", clientId))).toBe("made");
    const pat = await world.grant({ userId: user.id, kind: "api_pat", name: "one" });
    expect((await api.call("GET", "/account/sessions", { token: pat })).status).toBe(200);
  });

  test("asks nobody where nothing is required, also without a proof", async () => {
    const { user } = await withApp(world, await world.freshUser());
    const token = await session(user, "login");
    expect((await api.call("GET", "/account/api-token", { token })).status).toBe(404);
  });
});

describe("the recovery by an operator", () => {
  test("removes the factors, ends all access, tells the user, and lifts the lock", async () => {
    const { user, token } = await withApp(world, await world.freshUser());
    const waiting = await challenged(api, user);
    for (let i = 0; i < 5; i++)
      await prove(api, (await challenged(api, user)).token, { code: "000000" });
    const root = await api.login(tenants.superAdmin.email);
    const path = `/admin/users/${user.id}/second-factors`;
    expect((await api.call("GET", path, { token: root })).body).toMatchObject({
      factors: [{ kind: "totp" }],
      recovery_codes_left: 10,
      is_required: false,
      fresh_until: null,
    });
    expect((await api.call("DELETE", path, { token: root })).status).toBe(204);
    expect((await api.call("GET", "/verify-token", { token })).status).toBe(401);
    expect(
      (await api.call("GET", "/account/second-factors", { token: waiting.token })).status,
    ).toBe(401);
    await api.login(user.email);
    const left = await db.sql`select 1 from second_factors where user_id = ${user.id}
      union all select 1 from recovery_codes where user_id = ${user.id}`;
    expect(left).toHaveLength(0);
    const mails = await mailsTo(api.deps, user.email);
    expect(mails.map(({ subject }) => subject)).toContain("Your second factors were removed");
    const [row] = await db.sql`
      select actor_id, details from audit_log where action = 'SECOND_FACTORS_RESET'`;
    expect([row?.["actor_id"], row?.["details"].user_id]).toEqual([tenants.superAdmin.id, user.id]);
    expect(
      (await api.call("DELETE", "/admin/users/999999/second-factors", { token: root })).status,
    ).toBe(404);
  });
});

/** A user of an account of its own kind: one whose company requires a factor from now on. */
async function required(): Promise<TestUser> {
  const user = await world.freshUser("account_user");
  await db.sql`update companies set require_second_factor = true where id = ${user.companyId}`;
  return user;
}

/** Sets up the app of a user who has to, and returns the session of it. */
async function enrolled(user: TestUser) {
  const { token } = await challenged(api, user);
  const begun = await api.call("POST", "/account/second-factors/totp", { token });
  const secret = String(begun.body["secret"]);
  const body = { code: appCode(secret, clock) };
  const added = await api.call("POST", "/account/second-factors/totp/confirm", { token, body });
  const { token: opened } = fieldsOf(added.body["sign_in"]);
  return { secret, token: String(opened) };
}

async function session(user: TestUser, method: SignInMethod, clientId: string | null = null) {
  return (await sessionOf(world, user, method, { clientId })).token;
}
