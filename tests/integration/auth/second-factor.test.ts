import { afterAll, describe, expect, test } from "bun:test";

import { hashSecret } from "../../../src/lib/secrets.ts";
import { PASSWORD } from "../../support/api.ts";
import { appCode, challenged, prove, withApp, wrongCode } from "../../support/factors.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

const world = await startSignInWorld();
const { api, other, clock, database } = world;
afterAll(() => world.stop());

describe("an authenticator app", () => {
  test("is set up by a secret, one right code, and answers ten recovery codes once", async () => {
    const user = await world.freshUser();
    const token = await api.login(user.email);
    const begun = await api.call("POST", "/account/second-factors/totp", { token });
    expect(begun.status).toBe(200);
    const secret = String(begun.body["secret"]);
    const uri = new URL(String(begun.body["uri"]));
    expect([uri.protocol, uri.host, uri.searchParams.get("secret")]).toEqual([
      "otpauth:",
      "totp",
      secret,
    ]);
    expect(decodeURIComponent(uri.pathname)).toBe(`/Brand p1:${user.email}`);
    const wrong = await confirm(token, wrongCode({ secret }, clock));
    expect([wrong.status, Object.keys(wrong.body["errors"] ?? {})]).toEqual([422, ["code"]]);
    const added = await confirm(token, appCode(secret, clock));
    expect(added).toMatchObject({
      status: 200,
      body: { factor: { kind: "totp", name: "Authenticator app" }, sign_in: null },
    });
    expect(new Set(recoveryCodesIn(added.body)).size).toBe(10);
    const list = await api.call("GET", "/account/second-factors", { token });
    expect(list.body).toEqual({
      factors: [added.body["factor"]],
      recovery_codes_left: 10,
      is_required: false,
      fresh_until: expect.any(String),
    });
    expect(list.text).not.toContain(secret);
  });

  test("is one per user, and its secret is stored sealed", async () => {
    const user = await world.freshUser();
    const token = await api.login(user.email);
    const begin = () => api.call("POST", "/account/second-factors/totp", { token });
    const secret = String((await begin()).body["secret"]);
    const challenges = () => database.db.sql`
      select sealed_secret from second_factor_challenges
       where sealed_secret is not null
         and jti in (select jti from tokens where user_id = ${user.id})`;
    const waiting = await challenges();
    expect(waiting).toMatchObject([{ sealed_secret: expect.any(String) }]);
    expect(JSON.stringify(waiting)).not.toContain(secret);
    expect((await confirm(token, appCode(secret, clock))).status).toBe(200);
    expect(await challenges()).toHaveLength(0);
    const second = await begin();
    expect([second.status, second.body["code"]]).toEqual([409, "limit_reached"]);
    const rows = await database.db.sql`
      select sealed_secret from second_factors where user_id = ${user.id}`;
    expect(rows).toMatchObject([{ sealed_secret: expect.any(String) }]);
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test("is set up until 15 minutes after its secret was made", async () => {
    for (const [late, status] of [
      [0, 200],
      [1, 422],
    ] as const) {
      const user = await world.freshUser();
      const token = await api.login(user.email);
      // The sign-in is fresh for ten minutes, so the secret is asked for late in them.
      clock.advance(599_000);
      const begun = await api.call("POST", "/account/second-factors/totp", { token });
      const familyAt = clock.now();
      await database.db.sql`update authentication_events set at = ${familyAt.toISOString()}
        where user_id = ${user.id}`;
      clock.advance(599_000);
      await database.db.sql`update authentication_events set at = ${clock.now().toISOString()}
        where user_id = ${user.id}`;
      clock.advance(300_999 + late);
      const secret = String(begun.body["secret"]);
      expect((await confirm(token, appCode(secret, clock))).status).toBe(status);
    }
  });
});

describe("a sign-in of a user with an app", () => {
  test("answers 401 with a challenge, and the code answers the login object", async () => {
    const plain = await api.call("POST", "/login", {
      body: { email: (await world.freshUser()).email, password: PASSWORD },
    });
    const { user, secret } = await withApp(world, await world.freshUser());
    const { token, methods, enrol, expiresIn } = await challenged(api, user);
    expect([methods, enrol, expiresIn]).toEqual([["totp", "recovery_code"], false, 300]);
    const answer = await prove(other, token, { code: appCode(secret, clock) });
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.body)).toEqual(Object.keys(plain.body));
    const me = await api.call("GET", "/verify-token", { token: String(answer.body["token"]) });
    expect(me.body["user"]).toMatchObject({ id: user.id });
    expect((await prove(api, token, { code: appCode(secret, clock, 1) })).status).toBe(401);
    expect(await actionsOf(user.id)).toEqual(["AUTH_LOGIN", "SECOND_FACTOR_ADDED", "AUTH_LOGIN"]);
  });

  test("takes a code one step early or late, and not two", async () => {
    const outcomes = [];
    for (const steps of [-2, -1, 0, 1, 2]) {
      const { user, secret } = await withApp(world, await world.freshUser());
      clock.advance(90_000);
      const { token } = await challenged(api, user);
      outcomes.push((await prove(api, token, { code: appCode(secret, clock, steps) })).status);
    }
    expect(outcomes).toEqual([422, 200, 200, 200, 422]);
  });

  test("takes a code once, and none of an earlier step afterwards", async () => {
    const { user, secret } = await withApp(world, await world.freshUser());
    clock.advance(60_000);
    const tokens = [];
    for (let i = 0; i < 4; i++) tokens.push((await challenged(api, user)).token);
    const code = (steps: number) => ({ code: appCode(secret, clock, steps) });
    const answers = [];
    for (const [i, steps] of [0, 0, -1, 1].entries())
      answers.push((await prove(api, tokens[i] ?? "", code(steps))).status);
    expect(answers).toEqual([200, 422, 422, 200]);
  });

  test("takes a code once, also when two processes get it four times at once", async () => {
    const { user, secret } = await withApp(world, await world.freshUser());
    const waiting = await Promise.all(Array.from({ length: 4 }, () => challenged(api, user)));
    const code = appCode(secret, clock);
    const answers = await Promise.all(
      waiting.map(({ token }, i) => prove(i % 2 ? api : other, token, { code })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 422, 422, 422]);
  });

  test("ends its challenge with the fifth wrong answer", async () => {
    const { user, secret, recoveryCodes } = await withApp(world, await world.freshUser());
    const [fourth, fifth] = [await challenged(api, user), await challenged(api, user)];
    const wrong = { recovery_code: "0000-0000-0000-0000" };
    for (let i = 0; i < 4; i++) expect((await prove(api, fourth.token, wrong)).status).toBe(422);
    const [recovery_code] = recoveryCodes;
    expect((await prove(api, fourth.token, { recovery_code })).status).toBe(200);
    for (let i = 0; i < 5; i++) expect((await prove(api, fifth.token, wrong)).status).toBe(422);
    const late = await prove(api, fifth.token, { code: appCode(secret, clock) });
    expect([late.status, late.body["code"]]).toEqual([401, "unauthenticated"]);
  });

  test("answers until five minutes after the password, and not later", async () => {
    const { user, secret } = await withApp(world, await world.freshUser());
    const [inTime, late] = [await challenged(api, user), await challenged(api, user)];
    clock.advance(299_999);
    expect((await prove(api, inTime.token, { code: appCode(secret, clock) })).status).toBe(200);
    clock.advance(1);
    expect((await prove(api, late.token, { code: appCode(secret, clock, 1) })).status).toBe(401);
  });

  test("names the field of a proof that is missing, double or malformed", async () => {
    const { user, secret } = await withApp(world, await world.freshUser());
    const { token } = await challenged(api, user);
    const code = appCode(secret, clock);
    const bodies = [{}, { code, recovery_code: "0000" }, { code: "12345" }, { code: 123456 }];
    for (const body of bodies) {
      const answer = await prove(api, token, body);
      expect([answer.status, Object.keys(answer.body["errors"] ?? {})]).toEqual([422, ["code"]]);
    }
    expect((await prove(api, token, { code })).status).toBe(200);
  });
});

describe("the lock of codes", () => {
  test("begins with the fifth wrong code over all challenges, for 60 s, and spares recovery codes", async () => {
    const holder = await withApp(world, await world.freshUser());
    const { user, secret, recoveryCodes } = holder;
    const [one, two, three] = [
      await challenged(api, user),
      await challenged(api, user),
      await challenged(api, user),
    ];
    const wrong = { code: wrongCode(holder, clock) };
    for (let i = 0; i < 3; i++) await prove(api, one.token, wrong);
    for (let i = 0; i < 2; i++) expect((await prove(other, two.token, wrong)).status).toBe(422);
    const right = { code: appCode(secret, clock) };
    const locked = await prove(api, three.token, right);
    expect([locked.status, locked.body["code"], locked.headers.get("retry-after")]).toEqual([
      429,
      "account_locked",
      "60",
    ]);
    expect(Object.keys(locked.body["errors"] ?? {})).toEqual(["code"]);
    const [recovery_code] = recoveryCodes;
    expect((await prove(api, two.token, { recovery_code })).status).toBe(200);
    clock.advance(59_999);
    expect((await prove(api, three.token, { code: appCode(secret, clock) })).status).toBe(429);
    clock.advance(1);
    expect((await prove(api, three.token, { code: appCode(secret, clock) })).status).toBe(200);
    const rows = await database.db.sql`select details from audit_log
      where actor_id = ${user.id} and action = 'SECOND_FACTOR_FAILED' order by id`;
    expect(rows.map(({ details }) => details.locked_until !== undefined)).toEqual([
      false,
      false,
      false,
      false,
      true,
    ]);
  });

  test("counts exactly five of 40 guesses at once in two processes", async () => {
    const holder = await withApp(world, await world.freshUser());
    const waiting = await Promise.all(
      Array.from({ length: 40 }, () => challenged(api, holder.user)),
    );
    const code = wrongCode(holder, clock);
    const answers = await Promise.all(
      waiting.map(({ token }, i) => prove(i % 2 ? api : other, token, { code })),
    );
    expect(answers.filter(({ status }) => status === 422)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(35);
  });

  test("is not reached without the password, and wrong passwords do not lock codes", async () => {
    const { user, secret } = await withApp(world, await world.freshUser());
    for (let i = 0; i < 5; i++)
      await api.call("POST", "/login", { body: { email: user.email, password: "wrong one" } });
    clock.advance(60_000);
    const { token } = await challenged(api, user);
    expect((await prove(api, token, { code: appCode(secret, clock) })).status).toBe(200);
  });
});

describe("a recovery code", () => {
  test("works once, as it was shown or typed, also when 6 requests send it at once", async () => {
    const { user, recoveryCodes } = await withApp(world, await world.freshUser());
    const [first = "", second = ""] = recoveryCodes;
    const waiting = await Promise.all(Array.from({ length: 6 }, () => challenged(api, user)));
    const answers = await Promise.all(
      waiting.map(({ token }, i) => prove(i % 2 ? api : other, token, { recovery_code: first })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 422, 422, 422, 422, 422]);
    const { token } = await challenged(api, user);
    const typed = ` ${second.replaceAll("-", " ").toUpperCase()} `;
    expect((await prove(api, token, { recovery_code: typed })).status).toBe(200);
    const rows = await database.db.sql`select details from audit_log
      where actor_id = ${user.id} and action = 'RECOVERY_CODE_USED' order by id`;
    expect(rows.map(({ details }) => details.left)).toEqual([9, 8]);
  });

  test("of another user is wrong, and the codes are stored hashed", async () => {
    const [one, two] = [
      await withApp(world, await world.freshUser()),
      await withApp(world, await world.freshUser()),
    ];
    const { token } = await challenged(api, one.user);
    const [recovery_code = ""] = two.recoveryCodes;
    expect((await prove(api, token, { recovery_code })).status).toBe(422);
    const rows = await database.db.sql`
      select code_hash from recovery_codes where user_id = ${two.user.id}`;
    const typed = recovery_code.replaceAll("-", "");
    expect(rows.map(({ code_hash }) => code_hash)).toContain(hashSecret(typed));
    expect(JSON.stringify(rows)).not.toContain(typed);
  });

  test("has 24 characters, and one of 16 that an earlier version made works once, too", async () => {
    const { user, recoveryCodes } = await withApp(world, await world.freshUser());
    for (const code of recoveryCodes) expect(code).toMatch(/^(?:[0-9a-hjkmnp-tv-z]{4}-){5}\S{4}$/);
    await database.db.sql`insert into recovery_codes (user_id, code_hash)
      values (${user.id}, ${hashSecret("7k2m9xw4p0qe3rtz")})`;
    const statuses = [];
    for (let i = 0; i < 2; i++) {
      const { token } = await challenged(api, user);
      statuses.push((await prove(api, token, { recovery_code: "7k2m-9xw4-p0qe-3rtz" })).status);
    }
    expect(statuses).toEqual([200, 422]);
  });

  test("is void once new ones are made", async () => {
    const { user, token, recoveryCodes } = await withApp(world, await world.freshUser());
    const renewed = await api.call("POST", "/account/second-factors/recovery-codes", { token });
    expect(renewed.status).toBe(200);
    const fresh = recoveryCodesIn(renewed.body);
    expect(fresh).toHaveLength(10);
    const waiting = await challenged(api, user);
    const [old] = recoveryCodes;
    expect((await prove(api, waiting.token, { recovery_code: old })).status).toBe(422);
    expect((await prove(api, waiting.token, { recovery_code: fresh[0] })).status).toBe(200);
  });
});

describe("a challenge token", () => {
  test("ends with every other token of the user at a password reset", async () => {
    const { user, token: session, secret } = await withApp(world, await world.freshUser());
    const { token } = await challenged(api, user);
    const reset = await api.call("POST", "/reset-password", {
      token: session,
      body: { password: "quite another horse" },
    });
    expect([reset.status, reset.body["code"]]).toEqual([401, "second_factor_required"]);
    expect((await prove(api, token, { code: appCode(secret, clock) })).status).toBe(401);
  });
});

describe("the factors of a user", () => {
  test("change only in a fresh session, and step-up makes it fresh for ten minutes", async () => {
    const { factorId, token, secret } = await withApp(world, await world.freshUser());
    clock.advance(600_000 - 30_000 - 1);
    const codes = () => api.call("POST", "/account/second-factors/recovery-codes", { token });
    expect((await codes()).status).toBe(200);
    clock.advance(1);
    const remove = () => api.call("DELETE", `/account/second-factors/${factorId}`, { token });
    for (const stale of [await codes(), await remove()])
      expect([stale.status, stale.body["code"]]).toEqual([403, "step_up_required"]);
    const body = { code: appCode(secret, clock) };
    const fresh = await api.call("POST", "/account/second-factors/step-up", { token, body });
    expect([fresh.status, fresh.body["fresh_until"]]).toEqual([
      200,
      new Date(clock.now().getTime() + 600_000).toISOString().replace("Z", "+00:00"),
    ]);
    expect((await remove()).status).toBe(204);
    const list = await api.call("GET", "/account/second-factors", { token });
    expect(list.body).toMatchObject({ factors: [], recovery_codes_left: 0 });
  });

  test("are set up within ten minutes after the sign-in, and not by an older session", async () => {
    const token = await api.login((await world.freshUser()).email);
    const begin = () => api.call("POST", "/account/second-factors/totp", { token });
    clock.advance(599_999);
    expect((await begin()).status).toBe(200);
    clock.advance(1);
    expect((await begin()).body["code"]).toBe("step_up_required");
  });

  test("of another user are 403 and audited, and unknown ones 404", async () => {
    const [one, two] = [
      await withApp(world, await world.freshUser()),
      await withApp(world, await world.freshUser()),
    ];
    const remove = (id: string) =>
      api.call("DELETE", `/account/second-factors/${id}`, { token: one.token });
    expect((await remove(two.factorId)).status).toBe(403);
    expect((await remove("01JWNB9PR0ZV8X2D3F4G5H6J7K")).status).toBe(404);
    expect((await remove("nonsense")).status).toBe(404);
    expect(await actionsOf(one.user.id)).toContain("AUTHZ_DENIED");
  });

  test("without one, step-up and recovery codes are 409", async () => {
    const token = await api.login((await world.freshUser()).email);
    const answers = [
      await api.call("POST", "/account/second-factors/step-up", {
        token,
        body: { code: "123456" },
      }),
      await api.call("POST", "/account/second-factors/recovery-codes", { token }),
    ];
    expect(answers.map(({ status, body }) => [status, body["code"]])).toEqual([
      [409, "no_second_factor"],
      [409, "no_second_factor"],
    ]);
  });
});

function confirm(token: string, code: string) {
  return api.call("POST", "/account/second-factors/totp/confirm", { token, body: { code } });
}

const recoveryCodesIn = ({ recovery_codes: codes }: Readonly<Record<string, unknown>>): string[] =>
  Array.isArray(codes) ? codes.map(String) : [];

async function actionsOf(userId: number): Promise<string[]> {
  const rows = await database.db.sql`
    select action from audit_log where actor_id = ${userId} order by id`;
  return rows.map(({ action }) => String(action));
}
