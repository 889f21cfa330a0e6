import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";

import { companies } from "../../../db/schema/companies.ts";
import { emailCodes, signInLocks } from "../../../db/schema/sign-in.ts";
import { authenticationEvents, tokens } from "../../../db/schema/tokens.ts";
import { emailDigest } from "../../../src/auth/email.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { PASSWORD, startApi } from "../../support/api.ts";
import { codeSentTo, mailsTo } from "../../support/auth-mails.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

describe("a password reset", () => {
  test("with a mailed code sets the password and returns the login object without location count and refresh token", async () => {
    const user = await freshUser();
    const { status, body, headers } = await reset(await otpToken(user));
    expect(status).toBe(200);
    expect(Object.keys(body).toSorted()).toEqual(
      [
        "token",
        "token_type",
        "expires_in",
        "user",
        "company",
        "theme",
        "white_label",
        "plan",
      ].toSorted(),
    );
    expect(body).toMatchObject({ token_type: "Bearer", expires_in: 86_400, user: { id: user.id } });
    expect(headers.get("cache-control")).toBe("no-store");
    expect(await statusOf(String(body["token"]), other)).toBe(200);
    expect((await login(user.email, PASSWORD)).status).toBe(401);
    expect((await login(user.email, NEW_PASSWORD)).status).toBe(200);
  });

  test("ends all tokens of the user, in every process, and issues one new token", async () => {
    const user = await freshUser();
    const admin = tenants.partners[0].admin;
    const { accounts } = tenants.partners[0];
    const own = await api.login(user.email);
    const [jti] = await tokensOf(user.id).then((rows) => rows.map((row) => row.familyId));
    const acting = { kind: "impersonation", impersonatorId: admin.id } as const;
    const before = [
      await other.login(user.email),
      await grant({ userId: user.id, kind: "dashboard_pat", ttlS: null, box: api.deps.box }),
      await grant({ userId: user.id, kind: "api_pat", name: "ci" }),
      await grant({ userId: user.id, ...acting }),
      await otpToken(user),
    ];
    await grant({ userId: user.id, kind: "refresh", familyId: jti ?? null });
    for (const token of before.slice(0, 4)) expect(await statusOf(token, other)).toBe(200);
    const bystander = await api.login(accounts[0].user.email);
    const { body } = await reset(own);
    for (const token of [own, ...before]) expect(await statusOf(token, other)).toBe(401);
    expect(await statusOf(bystander)).toBe(200);
    expect(await tokensOf(user.id)).toMatchObject([{ kind: "access", scope: "*" }]);
    expect(await statusOf(String(body["token"]))).toBe(200);
  });

  test("of an impersonator ends the tokens that act as others", async () => {
    const admin = await freshUser("partner_admin");
    const { owner } = tenants.partners[0].accounts[0];
    const acting = await grant({
      userId: owner.id,
      kind: "impersonation",
      impersonatorId: admin.id,
    });
    await reset(await api.login(admin.email));
    expect(await statusOf(acting)).toBe(401);
  });

  test("deletes pending codes and the sign-in lock", async () => {
    const user = await freshUser();
    const token = await otpToken(user);
    clock.advance(60_000);
    await api.call("POST", "/email-otp/resend", {
      body: { email: user.email, type: "forgot_password" },
    });
    const otp = await codeSentTo(api.deps, user.email);
    for (let i = 0; i < 6; i++) await login(user.email, "wrong");
    await reset(token);
    const verified = await api.call("POST", "/email-otp/verify", {
      body: { email: user.email, otp, type: "forgot_password" },
    });
    expect(verified.status).toBe(422);
    const locks = await database.db
      .select()
      .from(signInLocks)
      .where(eq(signInLocks.emailDigest, emailDigest(user.email)));
    expect(locks).toEqual([]);
    expect((await login(user.email, NEW_PASSWORD)).status).toBe(200);
  });

  test("is a separate sign-in, and audited as such", async () => {
    const user = await freshUser();
    await reset(await api.login(user.email), NEW_PASSWORD, api, "reset-audit");
    expect(await auditOf("reset-audit")).toMatchObject([
      { action: "PASSWORD_RESET", actorId: user.id, details: { method: "access", revoked: 1 } },
      { action: "AUTH_LOGIN", actorId: user.id, details: { method: "password_reset" } },
    ]);
    const events = await database.db
      .select()
      .from(authenticationEvents)
      .where(eq(authenticationEvents.userId, user.id));
    expect(events.map((event) => event.method).toSorted()).toEqual(["login", "password_reset"]);
  });

  test("succeeds once if 10 requests with one token arrive at once", async () => {
    const user = await freshUser();
    const token = await otpToken(user);
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        reset(token, `${NEW_PASSWORD} ${i}`, i % 2 ? api : other),
      ),
    );
    const statuses = answers.map((answer) => answer.status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 401)]);
    const winner = answers.findIndex((answer) => answer.status === 200);
    expect((await login(user.email, `${NEW_PASSWORD} ${winner}`)).status).toBe(200);
    expect(await mailsTo(api.deps, user.email)).toHaveLength(2);
  });

  test("changes nothing if it fails on the way", async () => {
    const user = await freshUser();
    const token = await api.login(user.email);
    const broken = await startApi({
      db: database.db,
      clock,
      keys: {
        ...api.deps.keys,
        verify: api.deps.keys.verify.bind(api.deps.keys),
        sign: () => Promise.reject(new Error("no key")),
      },
      config: api.deps.config,
    });
    expect((await reset(token, NEW_PASSWORD, broken)).status).toBe(500);
    expect(await statusOf(token)).toBe(200);
    expect((await login(user.email, PASSWORD)).status).toBe(200);
    expect(await mailsTo(api.deps, user.email)).toEqual([]);
  });
});

describe("a password in NFC and in NFD", () => {
  // 128 characters in NFC, and 384 in NFD: Hangul, which takes three each.
  const NFC = Array.from({ length: 128 }, (_, i) => String.fromCodePoint(0xac01 + 3 * i)).join("");
  const NFD = NFC.normalize("NFD");
  const login = async (email: string, password: string) =>
    (await api.call("POST", "/login", { body: { email, password } })).status;

  test.each([
    [NFC, NFD],
    [NFD, NFC],
  ])("is one password on each path that sets or compares it, case %#", async (typed, again) => {
    const user = await freshUser();
    expect((await reset(await otpToken(user), typed)).status).toBe(200);
    for (const one of [typed, again]) {
      expect(await login(user.email, one)).toBe(200);
      const token = await api.login(user.email, one);
      expect((await change(token, one)).status).toBe(200);
      expect((await change(token, `${one.slice(3)}!`)).body["errors"]).toEqual({
        current_password: ["is wrong"],
      });
      const long = (await change(token, `${one}!`)).body["errors"];
      expect(long).toEqual({ current_password: ["must be a password of at most 128 characters"] });
      expect((await reset(token, `${one}!`)).status).toBe(422);
      // Seven characters in NFC are too few, however many are typed.
      expect((await reset(token, one.slice(0, (one.length / 128) * 7))).status).toBe(422);
    }
  });

  test("locks after five wrong ones in any form", async () => {
    const user = await freshUser();
    const wrong = "\u00e9t\u00e9 \u00e9t\u00e9 77";
    const statuses = [];
    for (const one of [wrong, wrong.normalize("NFD"), wrong, wrong.normalize("NFD"), wrong])
      statuses.push(await login(user.email, one));
    expect(statuses).toEqual([401, 401, 401, 401, 401]);
    expect(await login(user.email, PASSWORD)).toBe(429);
  });
});

describe("a new password", () => {
  test.each([
    ["with a NUL", "violet\0anchor"],
    ["with half a character", "violet anchor \uD800"],
    ["that everybody uses, in capitals", "PASSWORD123"],
  ])("%s is 422 on password and changes nothing", async (_, password) => {
    const user = await freshUser();
    const token = await api.login(user.email);
    const answer = await api.call("POST", "/reset-password", {
      token,
      body: { password },
    });
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual(["password"]);
    expect(await statusOf(token)).toBe(200);
  });

  test.each([
    ["of 8 characters without a digit", "violet-a"],
    ["of blanks and signs beyond ASCII", "мой пароль 🦊🦊"],
  ])("%s is accepted unchanged", async (_, password) => {
    const user = await freshUser();
    expect((await reset(await api.login(user.email), password)).status).toBe(200);
    expect((await login(user.email, password)).status).toBe(200);
  });

  test("that hardly differs from the email or a name of user, partner or service is 422 on password", async () => {
    const user = await freshUser();
    const [partner] = tenants.partners;
    await database.db
      .update(companies)
      .set({ name: "Northwind Agency" })
      .where(eq(companies.id, partner.id));
    const token = await api.login(user.email);
    const local = user.email.split("@")[0] ?? "";
    for (const password of ["Northwind-2026", "brand-p1-99", `${local}1234`, "ReviewRelay1"]) {
      const answer = await reset(token, password);
      expect([password, answer.status]).toEqual([password, 422]);
      expect(Object.keys(answer.body["errors"] as object)).toEqual(["password"]);
    }
    expect((await reset(token, "northwind in 2026 is fine")).status).toBe(200);
  });
});

describe("a change of password", () => {
  test("mails a code for the correct password and changes nothing; the code allows the new password", async () => {
    const user = await freshUser();
    const token = await api.login(user.email);
    const answer = await change(token, PASSWORD);
    expect(answer).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect(await statusOf(token)).toBe(200);
    expect((await login(user.email, PASSWORD)).status).toBe(200);
    const [mail] = await mailsTo(api.deps, user.email);
    expect(mail).toMatchObject({
      kind: "otp",
      subject: "Your code to change your password",
    });
    const { body } = await api.call("POST", "/email-otp/verify", {
      body: {
        email: user.email,
        otp: await codeSentTo(api.deps, user.email),
        type: "change_password",
      },
    });
    expect((await reset(String(body["token"]))).status).toBe(200);
    expect((await login(user.email, NEW_PASSWORD)).status).toBe(200);
  });

  test("can be mailed again by resend while its code lives, to the millisecond", async () => {
    const [inTime, late] = [await freshUser(), await freshUser()];
    for (const user of [inTime, late]) await change(await api.login(user.email), PASSWORD);
    const resend = ({ email }: TestUser) =>
      api.call("POST", "/email-otp/resend", { body: { email, type: "change_password" } });
    await resend(inTime);
    expect(await mailsTo(api.deps, inTime.email)).toHaveLength(1);
    clock.advance(599_999);
    await resend(inTime);
    expect(await mailsTo(api.deps, inTime.email)).toHaveLength(2);
    clock.advance(1);
    await resend(late);
    expect(await mailsTo(api.deps, late.email)).toHaveLength(1);
  });

  test("with the correct password has no cooldown, and ten codes a day", async () => {
    const user = await freshUser();
    const token = await api.login(user.email);
    for (let i = 0; i < 11; i++) expect((await change(token, PASSWORD)).status).toBe(200);
    expect(await mailsTo(api.deps, user.email)).toHaveLength(10);
  });

  test("with a wrong password is 422, counts towards the sign-in lock, and costs one verification", async () => {
    const user = await freshUser();
    const token = await api.login(user.email);
    for (let i = 0; i < 4; i++) await login(user.email, "wrong");
    const before = verifications;
    const wrong = await change(token, "wrong", "wrong-change");
    expect(verifications - before).toBe(1);
    expect(wrong.status).toBe(422);
    expect(wrong.body["errors"]).toEqual({ current_password: ["is wrong"] });
    expect((await auditOf("wrong-change")).map((row) => row.action)).toEqual([
      "AUTH_LOGIN_FAILED",
      "AUTH_LOCKED",
    ]);
    const locked = await change(token, PASSWORD);
    expect(locked.status).toBe(429);
    expect(locked.body["code"]).toBe("account_locked");
    expect(locked.headers.get("retry-after")).toBe("60");
    expect((await login(user.email, PASSWORD)).status).toBe(429);
    expect(await statusOf(token)).toBe(200);
    expect(await mailsTo(api.deps, user.email)).toEqual([]);
  });

  test("with the correct password resets the lock", async () => {
    const user = await freshUser();
    const token = await api.login(user.email);
    for (let i = 0; i < 4; i++) await change(token, "wrong");
    await change(token, PASSWORD);
    expect((await login(user.email, "wrong")).status).toBe(401);
    expect((await login(user.email, PASSWORD)).status).toBe(200);
  });
});

test("a used code's row stays after a reset, so that the cooldown still applies", async () => {
  const user = await freshUser();
  await reset(await otpToken(user));
  const [row] = await database.db
    .select()
    .from(emailCodes)
    .where(eq(emailCodes.emailDigest, emailDigest(user.email)));
  expect(row?.consumedAt).toEqual(clock.now());
  await api.call("POST", "/email-otp/resend", {
    body: { email: user.email, type: "forgot_password" },
  });
  const mails = await mailsTo(api.deps, user.email);
  // Mails that were queued in the same millisecond have no order.
  expect(mails.map((mail) => mail.kind).toSorted()).toEqual(["otp", "password_changed"]);
});

let verifications = 0;
const passwords = createPasswords();

const verify: typeof passwords.verify = (...given) => {
  verifications++;
  return passwords.verify(...given);
};

const world = await startSignInWorld({ passwords: { ...passwords, verify } });
const { database, tenants, clock, api, other, grant, statusOf, auditOf } = world;

const freshUser = (role: "account_owner" | "partner_admin" = "account_owner") =>
  world.freshUser(role);

const NEW_PASSWORD = "violet anchor museum 71";

afterAll(() => world.stop());

const reset = (token: string, password: unknown = NEW_PASSWORD, on = api, requestId = "r") =>
  on.call("POST", "/reset-password", {
    token,
    body: { password },
    headers: { "X-Request-Id": requestId },
  });

const change = (token: string, current_password: unknown, requestId = "r") =>
  api.call("POST", "/change-password", {
    token,
    body: { current_password },
    headers: { "X-Request-Id": requestId },
  });

const login = (email: string, password: string) =>
  api.call("POST", "/login", { body: { email, password } });

const tokensOf = (userId: number) =>
  database.db.select().from(tokens).where(eq(tokens.userId, userId));

/** Returns the token that a mailed code gives to this user. */
async function otpToken({ email }: TestUser): Promise<string> {
  await api.call("POST", "/email-otp/resend", {
    body: { email, type: "forgot_password" },
  });
  const otp = await codeSentTo(api.deps, email);
  const { body } = await api.call("POST", "/email-otp/verify", {
    body: { email, otp, type: "forgot_password" },
  });
  return String(body["token"]);
}
