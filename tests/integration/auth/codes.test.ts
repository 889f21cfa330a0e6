import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { ulid } from "ulid";

import { auditLog } from "../../../db/schema/companies.ts";
import { emailCodeLimits, emailCodes } from "../../../db/schema/sign-in.ts";
import { tokens } from "../../../db/schema/tokens.ts";
import { SIGNUP_CONTEXT } from "../../../src/auth/passwords/verify-code.ts";
import { emailDigest } from "../../../src/auth/email.ts";
import { hasSignedInFrom } from "../../../src/auth/sign-in/session-queries.ts";
import { PASSWORD, startApi, type Answer, type TestApi } from "../../support/api.ts";
import { codeSentTo, mailsTo, otherThan } from "../../support/auth-mails.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addSsoConnection, addUser } from "../../support/tenants.ts";

describe("a mailed code", () => {
  test("gives a token of 15 minutes for the password alone", async () => {
    const { user, code } = await withCode();
    const { status, body, headers } = await verify(user.email, code);
    expect(status).toBe(200);
    expect(body).toEqual({ token: expect.any(String), token_type: "Bearer", expires_in: 900 });
    expect(headers.get("cache-control")).toBe("no-store");
    const rows = await database.db.select().from(tokens).where(eq(tokens.userId, user.id));
    expect(rows).toMatchObject([{ kind: "password_reset", scope: "password:reset" }]);
    const elsewhere = await api.call("GET", "/verify-token", {
      token: String(body["token"]),
    });
    expect(elsewhere.status).toBe(403);
  });

  test("is mailed under the tenant's name and sealed, and the mail is erased in time", async () => {
    const { user, code } = await withCode();
    const [mail] = await mails(user.email);
    expect(mail?.subject).toBe("Your code to choose a new password");
    expect(mail?.sealed).not.toContain(code);
    expect(mail?.expiresAt?.getTime()).toBe(clock.now().getTime() + 600_000);
  });

  test("is stored as an HMAC and without the email", async () => {
    const { user, code } = await withCode();
    const row = await codeRowOf(user.email);
    expect(row?.codeMac).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(row)).not.toContain(code);
  });

  test("wakes the mailer after the commit", async () => {
    wakes.length = 0;
    await withCode();
    expect(wakes).toEqual(["mail"]);
  });

  test("works once, also when 20 try it at once in two processes", async () => {
    for (let round = 0; round < 2; round++) {
      const { user, code } = await withCode();
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => verify(user.email, code, { on: i % 2 ? api : other })),
      );
      expect(statuses(answers).toSorted()).toEqual([200, ...Array.from({ length: 19 }, () => 422)]);
      const rows = await database.db.select().from(tokens).where(eq(tokens.userId, user.id));
      expect(rows).toHaveLength(1);
    }
  });

  test("is compared at most five times when a hundred guesses arrive at once", async () => {
    const { user, code } = await withCode();
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        verify(user.email, otherThan(code), { on: i % 2 ? api : other }),
      ),
    );
    const row = await codeRowOf(user.email);
    expect(row?.tries).toBe(5);
  });

  test("is rejected for another email or another purpose", async () => {
    const { user, code } = await withCode();
    const foreign = await withCode();
    expect((await verify(foreign.user.email, code)).status).toBe(422);
    expect((await verify(user.email, code, { type: "signup" })).status).toBe(422);
    expect((await verify(user.email, code, { type: "change_password" })).status).toBe(422);
    expect((await verify(user.email, code)).status).toBe(200);
  });

  test("replaces the code before it, with new tries", async () => {
    const { user, code } = await withCode();
    for (let i = 0; i < 5; i++) await verify(user.email, otherThan(code));
    clock.advance(60_000);
    await resend(user.email);
    const next = await sentCode(user.email);
    expect((await verify(user.email, next)).status).toBe(200);
    expect((await verify(user.email, code)).status).toBe(422);
  });

  test("that is correct is audited as a token, and no code is in the log or in the audit log", async () => {
    const { user, code } = await withCode();
    const wrong = otherThan(code);
    for (const otp of [wrong, code])
      await api.call("POST", "/email-otp/verify", {
        body: { email: user.email, otp, type: "forgot_password" },
        headers: { "X-Request-Id": "code-token" },
      });
    const rows = await database.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.requestId, "code-token"))
      .orderBy(auditLog.id);
    expect(rows).toMatchObject([
      { action: "OTP_FAILED", details: { type: "forgot_password" } },
      { action: "TOKEN_ISSUED", actorId: user.id, details: { kind: "password_reset" } },
    ]);
    for (const otp of [wrong, code]) {
      expect(JSON.stringify(rows)).not.toContain(`"${otp}"`);
      expect(api.lines.join()).not.toContain(otp);
    }
  });
});

describe("an error on the way", () => {
  const failing = () => Promise.reject(new Error("no key"));

  test("in queueing the mail leaves no code and no cooldown behind", async () => {
    const { email } = await freshUser();
    const broken = await startApi({
      db: database.db,
      clock,
      keys: api.deps.keys,
      config: api.deps.config,
      box: {
        ...api.deps.box,
        seal: () => {
          throw new Error("no box");
        },
      },
    });
    expect((await resend(email, "forgot_password", broken)).status).toBe(500);
    expect(await codeRowOf(email)).toBeUndefined();
    await resend(email);
    expect(await mails(email)).toHaveLength(1);
  });

  test("in issuing the token leaves the code usable, and the try counted", async () => {
    const { user, code } = await withCode();
    const { keys, config } = api.deps;
    const broken = await startApi({
      db: database.db,
      clock,
      config,
      keys: { ...keys, sign: failing },
    });
    expect((await verify(user.email, code, { on: broken })).status).toBe(500);
    const row = await codeRowOf(user.email);
    expect(row).toMatchObject({ tries: 1, consumedAt: null });
    expect((await verify(user.email, code)).status).toBe(200);
  });
});

describe("the cooldown", () => {
  test("is shared by all codes of an email, whatever their purpose", async () => {
    const { email } = await freshUser();
    await resend(email, "signup");
    await resend(email, "forgot_password");
    clock.advance(59_999);
    await resend(email, "forgot_password");
    expect(await mails(email)).toHaveLength(1);
    clock.advance(1);
    await resend(email, "forgot_password");
    expect(await mails(email)).toHaveLength(2);
  });

  test("admits one of 20 requests that arrive at once in two processes", async () => {
    const user = await freshUser();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        resend(user.email, "forgot_password", i % 2 ? api : other),
      ),
    );
    expect(new Set(statuses(answers))).toEqual(new Set([200]));
    expect(await mails(user.email)).toHaveLength(1);
  });
});

describe("the limits of a day", () => {
  const limitsOf = async (email: string) => {
    const [row] = await database.db
      .select()
      .from(emailCodeLimits)
      .where(eq(emailCodeLimits.emailDigest, emailDigest(email)));
    return row;
  };

  test.each(["known", "unknown"] as const)(
    "are ten codes for an email that is %s, in any 24 h",
    async (known) => {
      const email = known === "known" ? (await freshUser()).email : freshEmail();
      const first = clock.now();
      for (let i = 0; i < 12; i++) {
        await resend(email);
        clock.advance(60_000);
      }
      expect(await mails(email)).toHaveLength(known === "known" ? 10 : 0);
      expect((await limitsOf(email))?.issuedAt).toHaveLength(10);
      clock.set(new Date(first.getTime() + DAY_MS - 1));
      await resend(email);
      expect((await limitsOf(email))?.issuedAt[0]).toEqual(first);
      clock.advance(1);
      await resend(email);
      expect((await limitsOf(email))?.issuedAt.at(-1)).toEqual(clock.now());
      expect(await mails(email)).toHaveLength(known === "known" ? 11 : 0);
    },
  );

  const askOften = async (email: string, type: CodeType, from?: string) => {
    for (let i = 0; i < 11; i++) {
      await resend(email, type, api, from);
      clock.advance(60_000);
    }
  };
  const signInFrom = (email: string, from: string) =>
    api.call("POST", "/login", {
      body: { email, password: PASSWORD },
      headers: { "X-Forwarded-For": from },
    });

  test("are ten codes of each type, so that codes for signups leave the codes for a new password alone", async () => {
    const { email } = await freshUser();
    await askOften(email, "signup");
    expect(await mails(email)).toHaveLength(10);
    // These codes are not mailed, because the user has not begun to change the password.
    await askOften(email, "change_password");
    expect(await mails(email)).toHaveLength(10);
    await askOften(email, "forgot_password");
    expect(await mails(email)).toHaveLength(20);
    expect((await verify(email, await sentCode(email))).status).toBe(200);
  });

  test("leave ten to the /64 of an address that signed the user in before, whatever strangers asked for", async () => {
    const { email } = await freshUser();
    const same = "2001:db8:7:1::2";
    expect((await signInFrom(email, "2001:db8:7:1::1")).status).toBe(200);
    await askOften(email, "forgot_password");
    await askOften(email, "forgot_password", "2001:db8:7:2::1");
    expect(await mails(email)).toHaveLength(10);
    await askOften(email, "forgot_password", same);
    expect(await mails(email)).toHaveLength(20);
    expect((await verify(email, await sentCode(email), { from: same })).status).toBe(200);
  });

  test("leave 20 wrong tries to an address that signed the user in before, and to no other", async () => {
    const { email } = await freshUser();
    const home = "198.51.100.7";
    await signInFrom(email, home);
    await resend(email);
    const code = await sentCode(email);
    await database.db
      .update(emailCodeLimits)
      .set({ wrongAt: Array.from({ length: 50 }, () => clock.now()) })
      .where(eq(emailCodeLimits.emailDigest, emailDigest(email)));
    expect((await verify(email, code, { from: "198.51.100.8" })).status).toBe(422);
    expect((await verify(email, code, { from: home })).status).toBe(200);
    for (let round = 0; round < 4; round++) {
      clock.advance(60_000);
      await resend(email, "forgot_password", api, home);
      const wrong = otherThan(await sentCode(email));
      for (let i = 0; i < 5; i++) await verify(email, wrong, { from: home });
    }
    clock.advance(60_000);
    await resend(email, "forgot_password", api, home);
    expect((await verify(email, await sentCode(email), { from: home })).status).toBe(422);
  });

  test("treat the address of an impersonator, of a portal link, or of a sign-in before the last 50 as unknown", async () => {
    const { id: userId, email } = await freshUser();
    const home = "198.51.100.7";
    const signIns = (count: number, method: string, ip: string) =>
      Promise.all(
        Array.from(
          { length: count },
          () => database.db.sql`
            insert into authentication_events (id, user_id, method, ip, at)
            values (${ulid()}, ${userId}, ${method}, ${ip}, ${clock.now()})`,
        ),
      );
    const isKnown = (ip: string) => hasSignedInFrom(database.db, email, ip);
    await signIns(1, "impersonation", "192.0.2.77");
    await signIns(1, "portal", "192.0.2.78");
    expect([await isKnown("192.0.2.77"), await isKnown("192.0.2.78")]).toEqual([false, false]);
    await signIns(1, "sso", home);
    await Bun.sleep(2);
    await signIns(49, "login", "192.0.2.79");
    expect(await isKnown(home)).toBe(true);
    await signIns(1, "login", "192.0.2.79");
    expect(await isKnown(home)).toBe(false);
  });

  /** Uses up codes one after the other, with five wrong tries each. */
  async function spend(email: string, codes: number, from: (round: number) => string) {
    for (let round = 0; round < codes; round++) {
      await resend(email);
      const wrong = otherThan(await sentCode(email));
      for (let i = 0; i < 5; i++) await verify(email, wrong, { from: from(round) });
      clock.advance(60_000);
    }
  }

  test("are 20 wrong tries from an address, after which even the correct code fails until the first try is a day old", async () => {
    const { email } = await freshUser();
    const first = clock.now();
    await spend(email, 4, () => "192.0.2.1");
    await resend(email);
    expect((await verify(email, await sentCode(email))).status).toBe(422);
    clock.set(new Date(first.getTime() + DAY_MS - 1));
    await resend(email);
    expect((await verify(email, await sentCode(email))).status).toBe(422);
    clock.advance(1);
    expect((await verify(email, await sentCode(email))).status).toBe(200);
  });

  test("leave the owner's tries alone when a stranger has used up those of another address", async () => {
    const { email } = await freshUser();
    await spend(email, 4, (round) => `2001:db8:0:1::${round}`);
    await resend(email);
    const code = await sentCode(email);
    const tried = async (from: string) => (await verify(email, code, { from })).status;
    expect(await tried("2001:db8:0:1:ffff::1")).toBe(422);
    expect(await tried("2001:db8:0:2::1")).toBe(200);
  });

  test("count the wrong tries from every network, and no correct ones", async () => {
    const { email } = await freshUser();
    await resend(email);
    const code = await sentCode(email);
    for (const from of ["192.0.2.1", "198.51.100.1"])
      await verify(email, otherThan(code), { from });
    expect((await verify(email, code)).status).toBe(200);
    expect((await limitsOf(email))?.wrongAt).toHaveLength(2);
  });
});

describe("a code", () => {
  test("is not mailed to an unknown or inactive user, or one who signs in only through the identity provider", async () => {
    const { db } = database;
    const companyId = tenants.partners[1].accounts[0].id;
    await addSsoConnection(db, { companyId, domains: ["only-sso.test"], passwordLogin: false });
    const ssoOnly = { companyId, role: "account_user", email: "a@only-sso.test" } as const;
    const silent = [
      freshEmail(),
      (await freshUser({ isActive: false })).email,
      (await addUser(db, ssoOnly)).email,
    ];
    for (const email of silent) {
      expect((await resend(email)).status).toBe(200);
      expect(await mails(email)).toEqual([]);
    }
  });

  test("is mailed to a user without a password if the domain allows passwords", async () => {
    const { email } = await freshUser({ passwordHash: null });
    await resend(email);
    expect(await mails(email)).toHaveLength(1);
  });

  test("is mailed to anybody for a signup; the proof contains the address and lives 15 minutes", async () => {
    for (const email of [freshEmail(), (await freshUser()).email]) {
      await resend(email, "signup");
      const code = await sentCode(email);
      const { status, body } = await verify(email, code, { type: "signup" });
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual(["verification_token"]);
      const proof = JSON.parse(
        api.deps.box.open(String(body["verification_token"]), SIGNUP_CONTEXT),
      );
      expect(proof).toEqual({
        email,
        expires_at: new Date(clock.now().getTime() + 900_000).toISOString(),
      });
      expect((await verify(email, code, { type: "signup" })).status).toBe(422);
    }
  });

  test("is mailed to nobody for a signup without SIGNUP_CODES, with the same answer", async () => {
    const off = await startApi({
      db: database.db,
      clock,
      config: { ...api.deps.config, signupCodes: false },
    });
    const email = freshEmail();
    const body = { email, type: "signup" };
    const answer = await off.call("POST", "/email-otp/resend", { body });
    clock.advance(60_000);
    expect([answer.status, answer.text]).toEqual([200, (await resend(email, "signup")).text]);
    expect(await mails(email)).toHaveLength(1);
  });
});

describe("known and unknown emails", () => {
  test("get the same bytes from resend and verify, in every state", async () => {
    const known = (await freshUser()).email;
    const unknown = freshEmail();
    const types = ["forgot_password", "change_password"] as const;
    for (const type of types) {
      for (let round = 0; round < 2; round++) {
        const [one, two] = [await resend(known, type), await resend(unknown, type)];
        expect(one.text).toBe(two.text);
        expect([one.status, ...one.headers.keys()]).toEqual([two.status, ...two.headers.keys()]);
      }
      for (let round = 0; round < 7; round++) {
        const [one, two] = [
          await verify(known, "999999x", { type }),
          await verify(unknown, "999999x", { type }),
        ];
        expect(one.text).toBe(
          '{"message":"The request has invalid fields.","code":"validation_failed","request_id":"r","errors":{"otp":["is wrong, expired or already used"]}}',
        );
        expect(one.text).toBe(two.text);
        expect([one.status, ...one.headers.keys()]).toEqual([two.status, ...two.headers.keys()]);
      }
    }
  });

  test("leave the same rows behind, except for the user id", async () => {
    const known = (await freshUser()).email;
    const unknown = freshEmail();
    for (const email of [known, unknown]) {
      await resend(email);
      await verify(email, "wrong");
    }
    const rowOf = async (email: string) => ({
      ...(await codeRowOf(email)),
      emailDigest: "",
      codeMac: "",
      userId: null,
    });
    expect(await rowOf(known)).toEqual(await rowOf(unknown));
  });
});

describe("a body", () => {
  test.each([
    ["", 422],
    ["1".repeat(65), 422],
  ])("of verify with the otp %p is a %d on otp", async (otp, status) => {
    const body = { email: "a@b.test", type: "forgot_password", otp };
    const answer = await api.call("POST", "/email-otp/verify", { body });
    expect([answer.status, Object.keys(answer.body["errors"] ?? {})]).toEqual([status, ["otp"]]);
  });

  test("with an address that cannot receive mail is answered like any other", async () => {
    for (const email of ["<a>@b.test", "a,b@c.test", `"q q"@b.test`])
      expect((await resend(email, "signup")).status).toBe(email.includes(" ") ? 422 : 200);
  });
});

const wakes: unknown[] = [];
const schedule = { wake: () => {}, wakeMailer: () => void wakes.push("mail") };

const world = await startSignInWorld({
  schedule,
  config: { trustedProxies: ["127.0.0.1"] },
});

const { database, tenants, clock, api, other } = world;
const sentCode = (email: string) => codeSentTo(api.deps, email);

const DAY_MS = 24 * 60 * 60 * 1000;

type CodeType = "forgot_password" | "change_password" | "signup";

afterAll(() => world.stop());

const freshUser = (over?: { isActive?: boolean; passwordHash?: null }) =>
  world.freshUser("account_user", over);

let names = 0;

const freshEmail = () => `code-${++names}@unknown.test`;

function resend(
  email: string,
  type: CodeType = "forgot_password",
  on = api,
  from = "192.0.2.1",
): Promise<Answer> {
  return on.call("POST", "/email-otp/resend", {
    body: { email, type },
    headers: { "X-Request-Id": "r", "X-Forwarded-For": from },
  });
}

function verify(
  email: string,
  otp: string,
  {
    type = "forgot_password",
    on = api,
    from = "192.0.2.1",
  }: { type?: CodeType; on?: TestApi; from?: string } = {},
) {
  return on.call("POST", "/email-otp/verify", {
    body: { email, otp, type },
    headers: { "X-Request-Id": "r", "X-Forwarded-For": from },
  });
}

const mails = (email: string) => mailsTo(api.deps, email);

async function codeRowOf(email: string) {
  const [row] = await database.db
    .select()
    .from(emailCodes)
    .where(eq(emailCodes.emailDigest, emailDigest(email)));
  return row;
}

/** Creates a user and mails a code to the user. */
async function withCode() {
  const user = await freshUser();
  await resend(user.email);
  return { user, code: await sentCode(user.email) };
}

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);
