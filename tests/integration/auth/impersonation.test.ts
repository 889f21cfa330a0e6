import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { decodeJwt } from "jose";

import { tokens } from "../../../db/schema/tokens.ts";
import { insertCompany } from "../../../scripts/demo/seed/rows.ts";
import { behindReset } from "../../support/auth-races.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addUser, type TestUser } from "../../support/tenants.ts";

describe("an impersonation token", () => {
  test.each(["partner_owner", "partner_admin"] as const)(
    "is issued to a %s and acts as the account's owner for a day",
    async (role) => {
      const admin = await freshAdmin(role);
      const answer = await ask(await api.login(admin.email), { account_id: account.id });
      expect(answer.status).toBe(201);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.body).toEqual({
        access_token: expect.any(String),
        token_type: "Bearer",
        expires_in: 86_400,
        user: {
          id: account.owner.id,
          email: account.owner.email,
          name: `Name of ${account.owner.email}`,
          role: "account_owner",
          company_id: account.id,
          store_ids: account.storeIds,
        },
        company: { id: account.id, type: "account", name: "p1-a1", partner_id: account.partnerId },
        acting_as: {
          user_id: account.owner.id,
          account_id: account.id,
          impersonator_id: admin.id,
        },
      });
      const token = String(answer.body["access_token"]);
      expect(decodeJwt(token)).toMatchObject({
        sub: String(account.owner.id),
        act: { sub: String(admin.id) },
      });
      const { body } = await other.call("GET", "/verify-token", { token });
      expect(body).toMatchObject({
        user: { id: account.owner.id },
        impersonation: { impersonator: { id: admin.id, company_id: admin.companyId } },
      });
    },
  );

  test("works on the account's routes, and a refusal elsewhere is audited with both ids", async () => {
    const admin = await freshAdmin();
    const token = await impersonate(admin);
    expect((await api.call("GET", "/account/reviews", { token })).status).toBe(200);
    const headers = { "X-Request-Id": "acting-barred" };
    expect((await api.call("GET", "/partner/webhooks", { token, headers })).status).toBe(403);
    const rows = await auditOf("acting-barred");
    expect(rows.filter((row) => row.action === "AUTHZ_DENIED")).toMatchObject([
      { actorId: account.owner.id, impersonatorId: admin.id },
    ]);
  });

  test("is audited with both ids and the reason, when it is issued and when it is used", async () => {
    const admin = await freshAdmin();
    const { body } = await ask(
      await api.login(admin.email),
      { account_id: account.id, reason: "ticket 4711" },
      "imp-issue",
    );
    const both = { actorId: account.owner.id, impersonatorId: admin.id, companyId: account.id };
    expect(await auditOf("imp-issue")).toMatchObject([
      { action: "IMPERSONATION_STARTED", ...both, details: { reason: "ticket 4711" } },
    ]);
    const token = String(body["access_token"]);
    await api.call("GET", "/logout", { token, headers: { "X-Request-Id": "imp-use" } });
    const rows = await auditOf("imp-use");
    expect(rows.find((row) => row.action === "AUTH_LOGOUT")).toMatchObject(both);
  });

  test("is shown to the owner as a session, which the owner may end", async () => {
    const fresh = await freshAccount();
    const token = await impersonate(await freshAdmin(), fresh.id);
    const own = await api.login(fresh.owner.email);
    const { body } = await api.call("GET", "/account/sessions", { token: own });
    const acting = (body["data"] as { id: string; method: string }[]).find(
      (one) => one.method === "impersonation",
    );
    const path = `/account/sessions/${acting?.id}`;
    expect((await api.call("DELETE", path, { token: own })).status).toBe(204);
    expect(await statusOf(token, other)).toBe(401);
    expect(await statusOf(own)).toBe(200);
  });

  test("is not issued after a password reset of the impersonator", async () => {
    const admin = await freshAdmin();
    const { id } = await freshAccount();
    const token = await api.login(admin.email);
    const answer = await behindReset(database.db, admin.id, () => ask(token, { account_id: id }));
    expect(answer.status).toBe(401);
    const rows = await database.db.select().from(tokens).where(eq(tokens.impersonatorId, admin.id));
    expect(rows).toEqual([]);
  });

  test("that is requested during a password reset of the owner is issued after it", async () => {
    const admin = await freshAdmin();
    const { id, owner } = await freshAccount();
    const token = await api.login(admin.email);
    const answer = await behindReset(database.db, owner.id, () => ask(token, { account_id: id }));
    expect(answer.status).toBe(201);
    expect(await statusOf(String(answer.body["access_token"]))).toBe(200);
  });

  test("has at most the caller's scopes", async () => {
    const admin = await freshAdmin();
    const token = await narrowed(admin, "impersonate reviews:read");
    const { status, body } = await ask(token, { account_id: account.id });
    expect(status).toBe(201);
    const acting = String(body["access_token"]);
    expect(decodeJwt(acting)["scope"]).toBe("impersonate reviews:read");
    expect((await api.call("GET", "/account/reviews", { token: acting })).status).toBe(200);
    const without = await narrowed(admin, "reviews:read");
    expect((await ask(without, { account_id: account.id })).body).toMatchObject({
      code: "insufficient_scope",
    });
  });
});

let names = 0;
async function freshAccount(): Promise<{ id: number; owner: TestUser }> {
  const { db } = database;
  const { partnerId } = account;
  const made = { type: "account", name: `fresh-${++names}`, partnerId, planId: 1 } as const;
  const id = await insertCompany(db, { ...made, createdAt: clock.now() });
  const owner = { companyId: id, role: "account_owner", email: `own-${names}@fresh.test` } as const;
  return { id, owner: await addUser(db, owner) };
}

describe("a request for an impersonation token", () => {
  test("of another partner's account is 403 and audited, of a missing account 404", async () => {
    const token = await api.login((await freshAdmin()).email);
    const foreign = tenants.partners[1].accounts[0].id;
    expect((await ask(token, { account_id: foreign }, "imp-foreign")).status).toBe(403);
    expect(await auditOf("imp-foreign")).toMatchObject([
      { action: "AUTHZ_DENIED", details: { account_id: foreign, reason: "foreign_record" } },
    ]);
    const partnerId = tenants.partners[0].id;
    for (const id of [999_999, 2_147_483_647, partnerId, tenants.superAdmin.companyId])
      expect((await ask(token, { account_id: id })).status).toBe(404);
  });

  test.each([
    ["with an empty reason", { account_id: 1, reason: "" }, ["reason"]],
    ["with a reason of 501 characters", { account_id: 1, reason: "r".repeat(501) }, ["reason"]],
  ])("%s is 422", async (_, body, fields) => {
    const answer = await ask(await api.login(tenants.partners[0].owner.email), body);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual(fields);
  });
});

const world = await startSignInWorld();

const PATH = "/partner/account-owner/token";

const { database, tenants, clock, api, other, freshUser, statusOf, auditOf } = world;

afterAll(() => world.stop());

const account = tenants.partners[0].accounts[0];

const freshAdmin = freshUser;

/** Issues a token with fewer scopes than a sign-in has. */
const narrowed = async (user: TestUser, scope: string) =>
  (await sessionOf(world, user, "password_grant", { scope })).token;

const ask = (token: string, body: unknown, requestId = "r") =>
  api.call("POST", PATH, { token, body, headers: { "X-Request-Id": requestId } });

async function impersonate(admin: TestUser, accountId = account.id): Promise<string> {
  const { status, body, text } = await ask(await api.login(admin.email), { account_id: accountId });
  if (status !== 201) throw new Error(text);
  return String(body["access_token"]);
}
