import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { eq, isNull } from "drizzle-orm";

import { auditLog, users } from "../../../db/schema/companies.ts";
import { authenticationEvents, tokens } from "../../../db/schema/tokens.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addPartner, addTenants, addUser, type TestUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

describe("the login object", () => {
  test("of a super-admin shows the platform, every store's count and no plan", async () => {
    const { superAdmin } = tenants;
    const { status, body } = await login({ email: superAdmin.email, password: PASSWORD });
    expect(status).toBe(200);
    expect(body).toEqual({
      token: expect.any(String),
      token_type: "Bearer",
      expires_in: 86_400,
      user: userOf(superAdmin, []),
      company: { id: superAdmin.companyId, type: "platform", name: "Platform", partner_id: null },
      location_count: 8,
      theme: { primary_color: "#1f6feb", logo_url: null },
      white_label: { enabled: false, brand_name: null, domain: null },
    });
  });

  test.each(["owner", "admin"] as const)(
    "of a partner's %s counts the partner's stores and has no plan",
    async (who) => {
      const partner = tenants.partners[0];
      const { body } = await login({ email: partner[who].email, password: PASSWORD });
      expect(body).toMatchObject({
        user: userOf(partner[who], []),
        company: { id: partner.id, type: "partner", name: "p1", partner_id: null },
        location_count: 4,
        theme: { primary_color: "#112233", logo_url: null },
        white_label: { enabled: true, brand_name: "Brand p1", domain: "p1.test" },
      });
      expect(body).not.toHaveProperty("plan");
    },
  );

  test.each(["owner", "user"] as const)(
    "of an account's %s has all its stores, its plan and its partner's white label",
    async (who) => {
      const account = tenants.partners[1].accounts[0];
      const { body } = await login({ email: account[who].email, password: PASSWORD });
      expect(body).toMatchObject({
        user: userOf(account[who], account.storeIds),
        company: { id: account.id, type: "account", name: "p2-a1", partner_id: account.partnerId },
        location_count: 2,
        white_label: { enabled: true, brand_name: "Brand p2", domain: "p2.test" },
        plan: { id: expect.any(Number), name: "Growth", features: ["reviews", "flags"] },
      });
    },
  );

  test("of a location user has only its own store", async () => {
    const { locationUser, storeIds } = tenants.partners[0].accounts[1];
    const { body } = await login({ email: locationUser.email, password: PASSWORD });
    expect(body).toMatchObject({
      user: userOf(locationUser, storeIds.slice(0, 1)),
      location_count: 1,
      plan: { name: "Growth" },
    });
  });

  test("has no refresh token, is not cached, and lasts a day with or without rememberMe", async () => {
    const { email } = tenants.superAdmin;
    for (const extra of [{}, { rememberMe: true }, { rememberMe: false }]) {
      const answer = await login({ email, password: PASSWORD, ...extra });
      expect(answer.body).toMatchObject({ expires_in: 86_400 });
      expect(answer.body).not.toHaveProperty("refresh_token");
      expect(answer.headers.get("cache-control")).toBe("no-store");
    }
    expect(await database.db.select().from(tokens).where(eq(tokens.kind, "refresh"))).toEqual([]);
  });

  test("does not depend on case and spaces of the email, nor on unknown fields", async () => {
    const email = `  ${tenants.superAdmin.email.toUpperCase()} `;
    expect((await login({ email, password: PASSWORD, device: { id: 1 } })).status).toBe(200);
  });
});

test("a sign-in leaves an authentication event, a token row and an AUTH_LOGIN row that belong together", async () => {
  const user = tenants.partners[0].owner;
  const headers = { "X-Request-Id": "sign-in-1", "User-Agent": "tests" };
  await login({ email: user.email, password: PASSWORD }, headers);
  const [entry] = await auditOf("sign-in-1");
  const { jti = "" } = (entry?.details ?? {}) as { jti?: string };
  expect(entry).toMatchObject({
    action: "AUTH_LOGIN",
    actorId: user.id,
    impersonatorId: null,
    companyId: user.companyId,
    ip: "127.0.0.1",
    userAgent: "tests",
    details: { method: "login", jti },
  });
  const [token] = await database.db.select().from(tokens).where(eq(tokens.jti, jti));
  expect(token).toMatchObject({ kind: "access", userId: user.id, scope: "*", clientId: null });
  expect(Buffer.from(jti, "base64url")).toHaveLength(16);
  const [event] = await database.db
    .select()
    .from(authenticationEvents)
    .where(eq(authenticationEvents.id, token?.familyId ?? ""));
  expect(event).toMatchObject({
    userId: user.id,
    method: "login",
    logoutTime: null,
    userAgent: "tests",
  });
});

/** Each case: the reason for the failure, and the typed email and password. */
const wrongLogins = async () => {
  const { db } = database;
  const account = tenants.partners[0].accounts[0];
  const add = (email: string, over: { isActive?: boolean; passwordHash?: null } = {}) =>
    addUser(db, { companyId: account.id, role: "account_user", email, ...over });
  const [plan] = await db.sql<{ id: number }[]>`select id from plans`;
  const [shut, gone] = [
    await addPartner(db, "shut", plan?.id ?? 0),
    await addPartner(db, "gone", plan?.id ?? 0),
  ];
  const off = [shut.accounts[0].id, gone.id];
  await db.sql`update companies set is_active = false where id = any(${off})`;
  return [
    ["wrong password", (await add("present@wrong.test")).email, "wrong"],
    ["unknown user", "nobody@wrong.test", PASSWORD],
    ["inactive user", (await add("inactive@wrong.test", { isActive: false })).email, PASSWORD],
    ["inactive company", shut.accounts[0].owner.email, PASSWORD],
    ["inactive partner", gone.accounts[0].owner.email, PASSWORD],
    ["single sign-on only", (await add("sso@wrong.test", { passwordHash: null })).email, PASSWORD],
    ["a NUL in the email", "nob\0dy@wrong.test", PASSWORD],
    ["a lone surrogate in the email", "nob\uD800dy@wrong.test", PASSWORD],
  ] as const;
};

describe("a failed login", () => {
  test("has the same bytes and costs exactly one argon2id verification, whatever is wrong", async () => {
    const answers: { what: string; text: string; names: string[]; status: number; work: number }[] =
      [];
    for (const [what, email, password] of await wrongLogins()) {
      const before = verifications;
      const { status, text, headers } = await login(
        { email, password },
        { "X-Request-Id": "same" },
      );
      answers.push({
        what,
        status,
        text,
        names: [...headers.keys()],
        work: verifications - before,
      });
    }
    const [first] = answers;
    expect(first?.text).toBe(
      '{"message":"These credentials do not match our records.","code":"invalid_credentials","request_id":"same"}',
    );
    for (const answer of answers) {
      expect(answer).toEqual({
        what: answer.what,
        status: 401,
        text: first?.text ?? "",
        names: first?.names ?? [],
        work: 1,
      });
      expect(answer.names).toContain("www-authenticate");
    }
  });

  test("is audited under the user if there is one, and never with the typed text", async () => {
    await login({ email: "secret-typed-here", password: "pw-typed" }, { "X-Request-Id": "typed" });
    // Repeats within a minute are counted, so that the row may be of an earlier request.
    const entries = await database.db.select().from(auditLog).where(isNull(auditLog.actorId));
    expect(entries).toContainEqual(expect.objectContaining({ action: "AUTH_LOGIN_FAILED" }));
    expect(JSON.stringify(entries)).not.toContain("typed-here");
    const { email, id } = tenants.partners[1].admin;
    await login({ email, password: "wrong" }, { "X-Request-Id": "known" });
    expect((await auditOf("known")).map((one) => [one.action, one.actorId])).toEqual([
      ["AUTH_LOGIN_FAILED", id],
    ]);
    expect(api.lines.join()).not.toContain("typed");
  });
});

describe("a login body", () => {
  const good = { email: "nobody@fields.test", password: "wrong" };

  test.each([
    ["with empty texts", { email: "", password: "" }, ["email", "password"]],
    ["with a blank email", { ...good, email: " \t" }, ["email"]],
    ["with an email of 255 characters", { ...good, email: "e".repeat(255) }, ["email"]],
    ["with a password of 129 characters", { ...good, password: "p".repeat(129) }, ["password"]],
  ])("%s is 422 and names each bad field", async (_, body, fields) => {
    const before = verifications;
    const answer = await login(body);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object).toSorted()).toEqual(fields);
    expect(verifications).toBe(before);
  });

  test("of the maximum lengths is answered like any other", async () => {
    const longest = { email: "e".repeat(254), password: "p".repeat(128) };
    expect((await login(longest)).status).toBe(401);
  });
});

test("a hash with outdated parameters is replaced at login, and parallel logins all succeed meanwhile", async () => {
  const old = await Bun.password.hash(PASSWORD, {
    algorithm: "argon2id",
    memoryCost: 4096,
    timeCost: 1,
  });
  const companyId = tenants.partners[0].id;
  const { id, email } = await addUser(database.db, {
    companyId,
    role: "partner_admin",
    email: "old-hash@p1.test",
    passwordHash: old,
  });
  const answers = await Promise.all(
    [1, 2, 3, 4, 5, 6].map(() => login({ email, password: PASSWORD })),
  );
  expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200, 200]);
  const [row] = await database.db.select().from(users).where(eq(users.id, id));
  expect(row?.passwordHash).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  expect((await login({ email, password: PASSWORD })).status).toBe(200);
});

test("a sign-in is rejected if the password was changed while it was being verified", async () => {
  const { db } = database;
  const { id, email } = await addUser(db, {
    companyId: tenants.partners[0].id,
    role: "partner_admin",
    email: "raced@p1.test",
  });
  const passwords = createPasswords();
  const other = await startApi({
    db,
    config: api.deps.config,
    passwords: {
      ...passwords,
      async verify(password, hash) {
        const right = await passwords.verify(password, hash);
        await db
          .update(users)
          .set({ passwordHash: await passwords.hash("new") })
          .where(eq(users.id, id));
        return right;
      },
    },
  });
  const answer = await other.call("POST", "/login", {
    body: { email, password: PASSWORD },
  });
  expect(answer.status).toBe(401);
  expect(await db.select().from(tokens).where(eq(tokens.userId, id))).toEqual([]);
});

let api: TestApi;

let verifications = 0;

beforeAll(async () => {
  const passwords = createPasswords();
  api = await startApi({
    db: database.db,
    passwords: {
      ...passwords,
      verify(password, hash) {
        verifications++;
        return passwords.verify(password, hash);
      },
    },
  });
});

afterAll(async () => {
  await api.stop();
});

const login = (body: unknown, headers: Record<string, string> = {}) =>
  api.call("POST", "/login", { body, headers });

const auditOf = (requestId: string) =>
  database.db.select().from(auditLog).where(eq(auditLog.requestId, requestId)).orderBy(auditLog.id);

function userOf({ id, email, role, companyId }: TestUser, storeIds: readonly number[]) {
  return {
    id,
    email,
    role,
    company_id: companyId,
    name: `Name of ${email}`,
    store_ids: storeIds,
  };
}
