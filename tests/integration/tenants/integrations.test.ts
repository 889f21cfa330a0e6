// Programs of a partner, and the tokens that they have (contract 10.10).
import { beforeAll, describe, expect, test } from "bun:test";

import { decodeJwt } from "jose";

import { isCheckViolation } from "../../../db/errors.ts";
import { SCOPES } from "../../../src/http/principal.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { PASSWORD, type Answer } from "../../support/api.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import { addIntegration } from "../../support/callers.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addService } from "../../support/webhooks.ts";

const world = fixture(startSignInWorld);

describe("an integration", () => {
  test("is made, changed and deleted by an owner, and shown to the admins, too", async () => {
    const made = await ask("owner", "POST", "", { name: "CRM", scopes: ["reviews:read"] });
    expect(made.status).toBe(201);
    const shown = {
      id: expect.any(Number),
      name: "CRM",
      scopes: ["reviews:read"],
      created_at: expect.any(String),
      updated_at: made.body["created_at"],
    };
    expect(made.body).toEqual(shown);
    const path = `/${String(made.body["id"])}`;
    for (const as of ["owner", "admin"] as const) {
      expect((await ask(as, "GET", path)).body).toEqual(made.body);
      expect(listed(await ask(as, "GET", ""))).toContain("CRM");
    }
    const body = { name: "ERP", scopes: ["webhooks:read", "webhooks:write"] };
    expect(said(await ask("admin", "PATCH", path, body))).toEqual([403, "forbidden"]);
    const changed = await ask("owner", "PATCH", path, body);
    expect([changed.status, changed.body]).toEqual([200, { ...made.body, ...body }]);
    expect((await ask("owner", "PATCH", path, {})).body).toEqual(changed.body);
    expect(said(await ask("admin", "DELETE", path))).toEqual([403, "forbidden"]);
    expect((await ask("owner", "DELETE", path)).status).toBe(204);
    for (const method of ["GET", "PATCH", "DELETE"])
      expect(said(await ask("owner", method, path, BODY[method]))).toEqual([404, "not_found"]);
    expect(listed(await ask("owner", "GET", ""))).not.toContain("ERP");
    const id = made.body["id"];
    const changes = {
      name: { from: "CRM", to: "ERP" },
      scopes: { from: shown.scopes, to: body.scopes },
    };
    expect(await audited("INTEGRATION")).toEqual([
      { action: "INTEGRATION_CREATED", actor: owner().id, user_id: id },
      {
        action: "INTEGRATION_UPDATED",
        actor: owner().id,
        user_id: id,
        fields: ["name", "scopes"],
        changes,
      },
      { action: "INTEGRATION_DELETED", actor: owner().id, user_id: id, name: "ERP", revoked: 0 },
    ]);
  });

  test.each<[string, object, string[]]>([
    ["no name and no scopes", {}, ["name", "scopes"]],
    ["a name of 201 characters", { name: "x".repeat(201), scopes: ["*"] }, ["name"]],
    ["a name of two lines", { name: "a\nb", scopes: ["*"] }, ["name"]],
    ["no scope", { name: "x", scopes: [] }, ["scopes"]],
    ["the same scope twice", { name: "x", scopes: ["*", "*"] }, ["scopes"]],
    ["a scope of services", { name: "x", scopes: ["actions:write"] }, ["scopes.0"]],
    ["a role", { name: "x", scopes: ["*"], role: "partner_owner" }, ["role"]],
  ])("is refused with %s", async (_what, body, fields) => {
    const { status, body: answer } = await ask("owner", "POST", "", body);
    expect([status, Object.keys(fieldsOf(answer["errors"])).toSorted()]).toEqual([422, fields]);
  });

  test("has a name of up to 200 characters and all scopes", async () => {
    const body = { name: "x".repeat(200), scopes: [...SCOPES] };
    const made = await ask("owner", "POST", "", body);
    expect([made.status, made.body["scopes"]]).toEqual([201, body.scopes]);
    expect((await ask("owner", "DELETE", `/${String(made.body["id"])}`)).status).toBe(204);
  });

  test("is one of at most 50 of its partner, also if several are made at once", async () => {
    const make = () => ask("other", "POST", "", { name: "One of many", scopes: ["*"] });
    for (let n = 0; n < 48; n++) expect((await make()).status).toBe(201);
    const last = await Promise.all(Array.from({ length: 4 }, make));
    const statuses = last.map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([201, 201, 409, 409]);
    expect(last.find(({ status }) => status === 409)?.body["code"]).toBe("limit_reached");
    const [id] = (await ask("other", "GET", "?limit=1")).body["data"] as { id: number }[];
    expect((await ask("other", "DELETE", `/${id?.id}`)).status).toBe(204);
    expect((await make()).status).toBe(201);
    // Those of another partner do not count.
    expect((await ask("owner", "POST", "", { name: "x", scopes: ["*"] })).status).toBe(201);
  });

  test("of another partner is refused, and the attempt is in the audit log", async () => {
    const { id } = await machine();
    expect(said(await ask("other", "GET", `/${id}`))).toEqual([403, "forbidden"]);
    const [last] = (await audited("AUTHZ_DENIED")).slice(-1);
    expect(last).toMatchObject({ user_id: id, reason: "forbidden" });
    expect(listed(await ask("other", "GET", "?limit=100"))).not.toContain("Machine");
  });

  test("is no user whom the routes of users show or change", async () => {
    const { id } = await machine();
    const root = await world.api.login(world.tenants.superAdmin.email);
    for (const [method, path, body] of [
      ["GET", `/admin/users/${id}`],
      ["PATCH", `/admin/users/${id}`, { role: "partner_owner" }],
      ["DELETE", `/admin/users/${id}`],
      ["POST", `/admin/users/${id}/deactivate`, {}],
      ["POST", `/admin/users/${id}/invite`, {}],
      ["POST", `/admin/users/${id}/unlock`, {}],
      ["DELETE", `/admin/users/${id}/second-factors`],
      ["GET", `/admin/users/${id}/identities`],
    ] as const)
      expect([path, said(await call(root, method, path, body))]).toEqual([
        path,
        [404, "not_found"],
      ]);
    for (const [path, body] of [
      ["role", { role: "partner_owner" }],
      ["invite", {}],
      ["deactivate", {}],
      ["activate", {}],
    ] as const)
      expect(said(await call(tokens.owner, "POST", `/partner/users/${id}/${path}`, body))).toEqual([
        404,
        "not_found",
      ]);
    for (const [token, path] of [
      [root, "/admin/users?limit=100"],
      [tokens.owner, "/partner/users?limit=100"],
    ] as const) {
      const { status, text } = await call(token, "GET", path);
      expect([status, text.includes("Machine")]).toEqual([200, false]);
    }
    expect((await call(root, "GET", "/admin/users?role=partner_integration")).status).toBe(422);
    const role = "partner_integration";
    const user = { company_id: owner().companyId, email: "x@p1.test", name: "X", role };
    const { status, body } = await call(root, "POST", "/admin/users", user);
    expect([status, Object.keys(fieldsOf(body["errors"]))]).toEqual([422, ["role"]]);
  });

  test("cannot sign in, and no code is mailed to it", async () => {
    const { token } = await machine();
    const { body } = await call(token, "GET", "/verify-token");
    const { email, role } = fieldsOf(body["user"]);
    expect([String(email).startsWith("integration:"), role]).toEqual([true, "partner_integration"]);
    const answer = await call(undefined, "POST", "/login", { email, password: PASSWORD });
    expect(said(answer)).toEqual([401, "invalid_credentials"]);
    for (const path of ["/email-otp/resend", "/auth/discover"]) {
      const asked = await call(undefined, "POST", path, { email, type: "forgot_password" });
      expect([path, asked.status, fieldsOf(asked.body["errors"])]).toMatchObject([
        path,
        422,
        { email: expect.any(Array) },
      ]);
    }
    expect(await world.database.db.sql`select from mails`).toHaveLength(0);
  });

  test("gets no password, no address and no other role from a process of an earlier version", async () => {
    const { id } = await machine();
    const { sql } = world.database.db;
    for (const change of [
      sql`update users set role = 'partner_owner' where id = ${id}`,
      sql`update users set password_hash = 'x' where id = ${id}`,
      sql`update users set email = 'machine@p1.test' where id = ${id}`,
      sql`update users set role = 'partner_integration' where id = ${owner().id}`,
    ])
      expect(await change.then(() => false, isCheckViolation)).toBe(true);
    // Version 0.1.0 may erase it as a person, and only in the order of all erasures: this must not fail.
    await sql`update users set email = 'erased-1@erased.invalid', is_active = false where id = ${id}`;
  });
});

describe("the token of an integration", () => {
  test("is made, viewed, regenerated and ended by an owner, as a user's own", async () => {
    const { id } = (await ask("owner", "POST", "", { name: "CRM", scopes: NARROW })).body;
    const at = `/${String(id)}/api-token`;
    for (const [method, path] of [
      ["GET", at],
      ["POST", `${at}/regenerate`],
      ["DELETE", at],
    ] as const)
      expect(said(await ask("owner", method, path, BODY[method]))).toEqual([404, "not_found"]);
    const made = await ask("owner", "POST", at, {});
    expect([made.status, made.headers.get("cache-control")]).toEqual([201, "no-store"]);
    const token = String(made.body["token"]);
    expect(made.body).toEqual({ token, created_at: expect.any(String), last_used_at: null });
    const claims = decodeJwt(token);
    expect(claims).toMatchObject({ sub: String(id), scope: NARROW.join(" ") });
    expect(claims.exp).toBeUndefined();
    expect(said(await ask("owner", "POST", at, {}))).toEqual([409, "token_exists"]);
    expect((await ask("owner", "GET", at)).body).toEqual(made.body);
    expect(await reads(token)).toBe(200);
    const next = await ask("owner", "POST", `${at}/regenerate`, {});
    expect([next.status, await reads(token)]).toEqual([200, 401]);
    expect(await reads(String(next.body["token"]))).toBe(200);
    expect((await ask("owner", "DELETE", at)).status).toBe(204);
    expect(await reads(String(next.body["token"]))).toBe(401);
    const rows = (await audited("TOKEN_")).filter((row) => row["user_id"] === id);
    const of = { actor: owner().id, kind: "dashboard_pat", user_id: id, jti: expect.any(String) };
    expect(rows).toEqual(
      ["ISSUED", "VIEWED", "REVOKED", "ISSUED", "REVOKED"].map((word) => ({
        action: `TOKEN_${word}`,
        ...of,
      })),
    );
    for (const [method, path] of [
      ["GET", at],
      ["POST", at],
      ["POST", `${at}/regenerate`],
      ["DELETE", at],
    ] as const) {
      expect(said(await ask("admin", method, path, BODY[method]))).toEqual([403, "forbidden"]);
      expect(said(await ask("other", method, path, BODY[method]))).toEqual([403, "forbidden"]);
    }
  });

  test("is made once by requests at the same time, and is the last one that they regenerate", async () => {
    const { id } = (await ask("owner", "POST", "", { name: "CRM", scopes: NARROW })).body;
    const at = `/${String(id)}/api-token`;
    const many = (path: string) =>
      Promise.all(Array.from({ length: 8 }, () => ask("owner", "POST", path, {})));
    const made = (await many(at)).map(({ status }) => status);
    expect(made.toSorted((a, b) => a - b)).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
    const again = await many(`${at}/regenerate`);
    expect(again.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    const alive = await Promise.all(again.map(({ body }) => reads(String(body["token"]))));
    expect(alive.filter((status) => status === 200)).toHaveLength(1);
  });

  test("is not made by a person whose sign-in ends meanwhile", async () => {
    const maker = await world.freshUser("partner_owner");
    const token = await world.api.login(maker.email);
    const { id, token: before } = await machine();
    const { db } = world.database;
    const { answer } = await db.transaction(async ({ sql }) => {
      await sql`update users set updated_at = updated_at where id = ${id}`;
      const asked = call(token, "POST", `/partner/integrations/${id}/api-token/regenerate`, {});
      await untilSomebodyWaits(db);
      await sql`delete from tokens where user_id = ${maker.id}`;
      return { answer: asked };
    });
    expect(said(await answer)).toEqual([401, "unauthenticated"]);
    expect(await reads(before)).toBe(200);
  });

  test("has the scopes at the time of its issue, also if they change while it is asked for", async () => {
    const { id } = await machine();
    const { db } = world.database;
    const { answer } = await db.transaction(async ({ sql }) => {
      await sql`update users set scopes = '{webhooks:read}' where id = ${id}`;
      const asked = ask("owner", "POST", `/${id}/api-token/regenerate`, {});
      await untilSomebodyWaits(db);
      return { answer: asked };
    });
    expect((await answer).status).toBe(200);
    const [issued] = await db.sql`select scope from tokens where user_id = ${id}`;
    expect(issued).toEqual({ scope: "webhooks:read" });
  });

  test("has the reach of an admin by its scopes, and takes no route that requires a person", async () => {
    const all = await machine();
    for (const path of ["/partner/webhooks", "/partner/users", "/partner/audit-log"])
      expect([path, (await call(all.token, "GET", path)).status]).toEqual([path, 200]);
    for (const [method, path, body] of [
      ["GET", "/partner/integrations"],
      ["POST", "/partner/integrations", { name: "x", scopes: ["*"] }],
      ["GET", `/partner/integrations/${all.id}/api-token`],
      ["GET", "/partner/tokens"],
      ["GET", "/account/sessions"],
      ["GET", "/account/api-token"],
      ["POST", "/account/personal-access-tokens", { name: "x" }],
      ["POST", "/change-password", { current_password: PASSWORD }],
      ["POST", "/reset-password", { password: "another fine horse" }],
      ["POST", "/account/second-factors/totp", {}],
      ["POST", "/partner/users", { email: "x@p1.test", name: "X", role: "partner_admin" }],
    ] as const)
      expect([path, said(await call(all.token, method, path, body))]).toEqual([
        path,
        [403, "forbidden"],
      ]);
    const narrow = await machine(["reviews:read"]);
    expect(said(await call(narrow.token, "GET", "/partner/webhooks"))).toEqual([
      403,
      "insufficient_scope",
    ]);
  });

  test("loses at once the scopes that its integration loses, with all that it made, and gets new ones only anew", async () => {
    const { id, token } = await machine(["webhooks:read", "impersonate", "reviews:read"]);
    const account_id = world.tenants.partners[0].accounts[0].id;
    const acting = await call(token, "POST", "/partner/account-owner/token", { account_id });
    const acts = String(acting.body["access_token"]);
    const session = await portalSession(token);
    const readsReviews = async () => (await call(acts, "GET", "/account/reviews")).status;
    expect([await readsReviews(), await reads(session), await reads(token)]).toEqual([
      200, 200, 200,
    ]);
    const narrowed = { scopes: ["impersonate"] };
    expect((await ask("owner", "PATCH", `/${id}`, narrowed)).status).toBe(200);
    expect([await readsReviews(), await reads(session), await reads(token)]).toEqual([
      403, 403, 403,
    ]);
    expect((await ask("owner", "PATCH", `/${id}`, { scopes: ["*"] })).status).toBe(200);
    expect(await reads(token)).toBe(200);
    expect(said(await call(token, "GET", "/partner/users"))).toEqual([403, "insufficient_scope"]);
    const next = await ask("owner", "POST", `/${id}/api-token/regenerate`, {});
    expect((await call(String(next.body["token"]), "GET", "/partner/users")).status).toBe(200);
    expect([await readsReviews(), await reads(session)]).toEqual([401, 401]);
  });

  test("outlives the person who made it, and ends at once with the integration and all that it made", async () => {
    const maker = await world.freshUser("partner_owner");
    const { id, token } = await addIntegration(world.api, await world.api.login(maker.email));
    const off = `/partner/users/${maker.id}/deactivate`;
    expect((await call(tokens.owner, "POST", off, {})).status).toBe(200);
    expect(await reads(token)).toBe(200);
    const account_id = world.tenants.partners[0].accounts[0].id;
    const body = { account_id };
    const acting = await call(token, "POST", "/partner/account-owner/token", body);
    const acts = String(acting.body["access_token"]);
    const session = await portalSession(token);
    expect(await world.statusOf(acts)).toBe(200);
    expect((await ask("owner", "DELETE", `/${id}`)).status).toBe(204);
    for (const one of [token, acts, session])
      for (const on of [world.api, world.other]) expect(await world.statusOf(one, on)).toBe(401);
    const at = `/${id}/api-token`;
    for (const method of ["GET", "POST", "DELETE"])
      expect(said(await ask("owner", method, at, BODY[method]))).toEqual([404, "not_found"]);
  });

  test("ends with a suspension of the partner, and an owner makes another one after it", async () => {
    const [, two] = world.tenants.partners;
    const [first] = (await ask("other", "GET", "?limit=1")).body["data"] as { id: number }[];
    const at = `/${first?.id}/api-token`;
    const token = String((await ask("other", "POST", at, {})).body["token"]);
    expect(await reads(token)).toBe(200);
    const root = await world.api.login(world.tenants.superAdmin.email);
    const turn = (to: string) => call(root, "POST", `/admin/partners/${two.id}/${to}`, {});
    expect((await turn("deactivate")).status).toBe(200);
    expect(await reads(token)).toBe(401);
    expect((await turn("activate")).status).toBe(200);
    expect(await reads(token)).toBe(401);
    tokens.other = await world.api.login(two.owner.email);
    expect((await ask("other", "POST", at, {})).status).toBe(201);
  });

  test("is in the list of tokens with its uses, and an owner ends it there", async () => {
    const { id, token } = await machine();
    expect(await reads(token)).toBe(200);
    const mine = async () => {
      const { body } = await call(tokens.owner, "GET", "/partner/tokens?limit=100");
      return (body["data"] as Record<string, unknown>[]).find((one) => one["user_id"] === id);
    };
    await until("the use is noted", async () => JSON.stringify(await mine()).includes("route"));
    const listedToken = await mine();
    expect(listedToken).toMatchObject({
      kind: "dashboard_pat",
      user_name: "Machine",
      scopes: ["*"],
    });
    const end = () =>
      call(tokens.admin, "DELETE", `/partner/tokens/${String(listedToken?.["id"])}`);
    expect((await end()).status).toBe(403);
    const path = `/partner/tokens/${String(listedToken?.["id"])}`;
    expect((await call(tokens.owner, "DELETE", path)).status).toBe(204);
    expect(await reads(token)).toBe(401);
  });

  test("is introspected by services with its role and present scopes", async () => {
    const { id, token } = await machine(["reviews:read", "webhooks:read"]);
    await ask("owner", "PATCH", `/${id}`, { scopes: ["reviews:read"] });
    const root = await world.api.login(world.tenants.superAdmin.email);
    const service = await addService(
      { api: world.api, clock: world.clock, tokens: { ...NO_TOKENS, root } },
      ["tokens:introspect"],
    );
    const { body } = await call(service.token, "POST", "/platform/introspect", { token });
    expect(body).toMatchObject({
      active: true,
      user_id: id,
      role: "partner_integration",
      partner_id: owner().companyId,
      scope: "reviews:read",
      expires_at: null,
    });
  });
});

test("the last owner of a partner stays, whatever integrations it has", async () => {
  const { id } = owner();
  await machine();
  const { sql } = world.database.db;
  await sql`
    update users set is_active = false
     where company_id = ${owner().companyId} and role = 'partner_owner' and id <> ${id}`;
  const off = await call(tokens.owner, "POST", `/partner/users/${id}/deactivate`, {});
  expect(said(off)).toEqual([409, "last_owner"]);
});

type Who = "owner" | "admin" | "other";

const NARROW = ["webhooks:read", "webhooks:write"];
const NO_TOKENS = { owner: "", admin: "", other: "", account: "", location: "", root: "" };
const tokens = { owner: "", admin: "", other: "" };

/** The body of a request without fields, by its method. */
const BODY: Readonly<Record<string, object | undefined>> = { POST: {}, PATCH: {} };

beforeAll(async () => {
  const [one, two] = world.tenants.partners;
  tokens.owner = await world.api.login(one.owner.email);
  tokens.admin = await world.api.login(one.admin.email);
  tokens.other = await world.api.login(two.owner.email);
});

const owner = () => world.tenants.partners[0].owner;

const machine = (scopes: readonly string[] = ["*"]) =>
  addIntegration(world.api, tokens.owner, { scopes });

const call = (token: string | undefined, method: string, path: string, body?: object) =>
  world.api.call(method, path, { token, body });

const ask = (as: Who, method: string, path: string, body?: object) =>
  call(tokens[as], method, `/partner/integrations${path}`, body);

/** Returns the status of a read of subscriptions with the token. */
const reads = async (token: string) => (await call(token, "GET", "/partner/webhooks")).status;

const said = ({ status, body }: Answer) => [status, body["code"]];

const listed = ({ body }: Answer) => (body["data"] as { name: string }[]).map(({ name }) => name);

async function portalSession(token: string): Promise<string> {
  const link = await call(token, "POST", "/partner/portal-links", { pages: ["webhooks"] });
  const { pathname, hash } = new URL(String(link.body["url"]));
  const body = { code: hash.slice("#code=".length) };
  return String((await call(undefined, "POST", `${pathname}/session`, body)).body["token"]);
}

/** Returns the audit rows of the actions with this prefix, oldest first. */
async function audited(prefix: string): Promise<Record<string, unknown>[]> {
  const rows = await world.database.db.sql<{ action: string; actor: number; details: object }[]>`
    select action, actor_id as actor, details - 'token' as details from audit_log
     where action like ${`${prefix}%`} order by id`;
  return rows.map(({ details, ...row }) => ({ ...row, ...details }));
}
