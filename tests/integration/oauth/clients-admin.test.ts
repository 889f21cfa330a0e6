import { beforeAll, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";

import { eq } from "drizzle-orm";

import { auditLog } from "../../../db/schema/companies.ts";
import { oauthClients } from "../../../db/schema/tokens.ts";
import { everyPage, PASSWORD, startApi, type Answer } from "../../support/api.ts";
import {
  addClient,
  authorizeParams,
  Browser,
  type Form,
  newPkce,
  postForm,
  returned,
} from "../../support/oauth.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("a new client", () => {
  test("shows its secret once, is stored with a hash, and has safe defaults", async () => {
    const { status, body } = await create({ name: "Mine" });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      client_secret: expect.stringMatching(/^[0-9a-f]{64}$/),
      name: "Mine",
      confidential: true,
      first_party: false,
      require_pkce: true,
      redirect_uris: [CALLBACK],
      scopes: ["*"],
      grant_types: ["authorization_code", "refresh_token"],
      company_id: tenants.partners[0].id,
    });
    const id = String(body["client_id"]);
    const shown = await api.call("GET", `${PARTNER}/${id}`, { token: partner });
    const { client_secret, ...rest } = body;
    expect(shown.body).toEqual(rest);
    const list = await api.call("GET", PARTNER, { token: partner });
    expect(list.text).not.toContain(String(client_secret));
    const [row] = await database.db
      .select()
      .from(oauthClients)
      .where(eq(oauthClients.clientId, id));
    expect(JSON.stringify(row)).not.toContain(String(client_secret));
  });

  test("of a super-admin may be first-party and handle passwords", async () => {
    const grants = { first_party: true, grant_types: ["password", "refresh_token"] };
    const { status, body } = await create({ name: "Ours", ...grants }, { path: SSO, token: root });
    expect(status).toBe(201);
    expect(body).toMatchObject({ ...grants, company_id: null });
    expect((await passwordGrant(body, tenants.partners[1].owner.email)).status).toBe(200);
  });

  test("that is public has no secret and cannot be given one", async () => {
    const { body } = await create({ name: "App", confidential: false });
    expect(body["client_secret"]).toBeNull();
    const path = `${PARTNER}/${String(body["client_id"])}/secret`;
    expect((await api.call("POST", path, { token: partner })).status).toBe(422);
  });

  test("with the code grant must have a redirect URI", async () => {
    const fieldsOf = ({ body }: Answer) => Object.keys(body["errors"] ?? {});
    const useless = await create({ name: "Useless", redirect_uris: [] });
    expect([useless.status, fieldsOf(useless)]).toEqual([422, ["redirect_uris"]]);
    const grants = { first_party: true, grant_types: ["password"], redirect_uris: [] };
    expect((await create({ name: "Server", ...grants }, { path: SSO, token: root })).status).toBe(
      201,
    );
    const { body } = await create({ name: "Useful" });
    const path = `${PARTNER}/${String(body["client_id"])}`;
    const emptied = await api.call("PATCH", path, { token: partner, body: { redirect_uris: [] } });
    expect([emptied.status, fieldsOf(emptied)]).toEqual([422, ["redirect_uris"]]);
    const renamed = await api.call("PATCH", path, { token: partner, body: { name: "Mine" } });
    expect(renamed.status).toBe(200);
  });

  test.each([
    [{ name: "x", scopes: ["all"] }, ["scopes.0"]],
    [{ name: "x", confidential: false, grant_types: ["password"] }, ["grant_types"]],
    [{ name: "x", confidential: false, require_pkce: false }, ["require_pkce"]],
  ])("as %j is a 422 that names the fields", async (body, fields) => {
    const { status, body: answer } = await create(body);
    expect(status).toBe(422);
    expect(Object.keys(answer["errors"] as object).toSorted()).toEqual(fields);
  });

  test("needs PKCE until its owner turns that off, which is audited", async () => {
    const { body } = await create({ name: "Lacks PKCE" });
    const path = `${PARTNER}/${String(body["client_id"])}`;
    const begin = async (id: unknown, more: Form = {}) => {
      const one = { clientId: String(id), secret: "" };
      const none = { code_challenge: undefined, code_challenge_method: undefined };
      const params = authorizeParams(one, newPkce(), { redirect_uri: CALLBACK, ...none, ...more });
      const answer = await new Browser(api).open(params);
      return answer.status === 302 ? returned(answer).params["error"] : answer.status;
    };
    expect(await begin(body["client_id"])).toBe("invalid_request");
    const { challenge } = newPkce();
    const pkce = { code_challenge: challenge, code_challenge_method: "S256" };
    expect(await begin(body["client_id"], pkce)).toBe(200);
    const off = { token: partner, body: { require_pkce: false } };
    expect((await api.call("PATCH", path, off)).body["require_pkce"]).toBe(false);
    expect(await begin(body["client_id"])).toBe(200);
    const without = (await create({ name: "Never had it", require_pkce: false })).body["client_id"];
    expect(await begin(without)).toBe(200);
    const rows = await database.db.sql`
      select action, details - 'token' as details from audit_log
       where details->>'client_id' in (${String(body["client_id"])}, ${String(without)}) order by id`;
    expect([...rows]).toMatchObject([
      { action: "CLIENT_CREATED", details: { client_id: body["client_id"] } },
      {
        action: "CLIENT_UPDATED",
        details: { changes: { require_pkce: { from: true, to: false } } },
      },
      { action: "CLIENT_CREATED", details: { client_id: without, require_pkce: false } },
    ]);
    const { body: open } = await create({ name: "Public", confidential: false });
    const change = await api.call("PATCH", `${PARTNER}/${String(open["client_id"])}`, off);
    expect(Object.keys(change.body["errors"] as object)).toEqual(["require_pkce"]);
  });
});

describe("a client", () => {
  test("is changed field by field, by POST and by PATCH, and the change is audited", async () => {
    const { body } = await create({ name: "Old" });
    const path = `${PARTNER}/${String(body["client_id"])}`;
    const uris = ["https://app.example/cb"];
    const posted = await api.call("POST", path, { token: partner, body: { name: "New" } });
    const patched = await api.call("PATCH", path, {
      token: partner,
      body: { redirect_uris: uris, scopes: ["reviews:read"] },
    });
    expect([posted.status, patched.status]).toEqual([200, 200]);
    expect(patched.body).toMatchObject({
      name: "New",
      redirect_uris: uris,
      scopes: ["reviews:read"],
    });
    for (const change of [
      { confidential: false },
      { first_party: true },
      { grant_types: ["password"] },
    ])
      expect((await api.call("PATCH", path, { token: partner, body: change })).status).toBe(422);
    const rows = await database.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.action, "CLIENT_UPDATED"));
    expect(rows.map(({ details }) => details)).toContainEqual({
      client_id: body["client_id"],
      fields: ["scopes"],
      changes: { scopes: { from: ["*"], to: ["reviews:read"] } },
      token: { jti: expect.any(String), kind: "access", client_id: null },
    });
  });

  test("has the password grant only while it is first-party", async () => {
    const path = async (first_party: boolean) => {
      const { body } = await create({ name: "x", first_party }, { path: SSO, token: root });
      return `${SSO}/${String(body["client_id"])}`;
    };
    const change = async (to: string, body: object) => {
      const { status, body: answer } = await api.call("PATCH", to, { token: root, body });
      return status === 422 ? Object.keys(answer["errors"] as object) : status;
    };
    const [third, first] = [await path(false), await path(true)];
    const password = { grant_types: ["password"] };
    expect(await change(third, password)).toEqual(["grant_types"]);
    expect(await change(first, password)).toBe(200);
    expect(await change(first, { first_party: false })).toEqual(["grant_types"]);
    expect(await change(first, { first_party: false, grant_types: ["refresh_token"] })).toBe(200);
    expect(await change(third, { ...password, first_party: true })).toBe(200);
    const grants = { name: "x", ...password };
    expect((await create(grants, { path: SSO, token: root })).status).toBe(422);
  });

  test("is limited to 50 for each partner, even if 10 are made at once", async () => {
    const path = "/admin/partners";
    const company = await api.call("POST", path, { token: root, body: { name: "Many" } });
    const companyId = Number(company.body["id"]);
    const email = "many@many.test";
    await addUser(database.db, { companyId, role: "partner_admin", email });
    const token = await api.login(email);
    for (let i = 0; i < 45; i++) await addClient(database.db, { companyId });
    const made = await Promise.all(
      Array.from({ length: 10 }, () => create({ name: "one more" }, { token })),
    );
    const refused = made.filter(({ status }) => status !== 201);
    expect(refused.map(({ status, body }) => [status, body["code"]])).toEqual(
      Array.from({ length: 5 }, () => [409, "limit_reached"]),
    );
    const [one] = made.filter(({ status }) => status === 201);
    const last = `${PARTNER}/${String(one?.body["client_id"])}`;
    expect((await api.call("DELETE", last, { token })).status).toBe(204);
    expect((await create({ name: "again" }, { token })).status).toBe(201);
  });

  test("gets a new secret, and the old one stops at once", async () => {
    const grants = { first_party: true, grant_types: ["password"] };
    const { body: old } = await create({ name: "x", ...grants }, { path: SSO, token: root });
    const path = `${SSO}/${String(old["client_id"])}/secret`;
    const { status, body } = await api.call("POST", path, { token: root });
    expect(status).toBe(200);
    const { email } = tenants.partners[0].owner;
    expect((await passwordGrant(old, email)).body["error"]).toBe("invalid_client");
    expect((await passwordGrant(body, email)).status).toBe(200);
  });

  test("is deleted together with its tokens", async () => {
    const grants = { first_party: true, grant_types: ["password", "refresh_token"] };
    const { body } = await create({ name: "x", ...grants }, { path: SSO, token: root });
    const issued = await passwordGrant(body, tenants.partners[0].owner.email);
    const token = String(issued.body["access_token"]);
    const path = `${SSO}/${String(body["client_id"])}`;
    expect((await api.call("DELETE", path, { token: root })).status).toBe(204);
    expect((await api.call("GET", "/verify-token", { token })).status).toBe(401);
    for (const method of ["GET", "DELETE"])
      expect((await api.call(method, path, { token: root })).status).toBe(404);
    expect((await passwordGrant(body, tenants.partners[0].owner.email)).status).toBe(401);
  });

  test("is listed newest first, in pages, to its own tenant and to the platform", async () => {
    for (let i = 0; i < 3; i++) await create({ name: `foreign ${i}` }, { token: foreign });
    const idsOf = async (path: string, token: string) =>
      (await everyPage<{ client_id: string; company_id: number | null }>(api, path, token)).flat();
    const own = await idsOf(`${PARTNER}?limit=2`, foreign);
    expect(new Set(own.map((one) => one.company_id))).toEqual(new Set([tenants.partners[1].id]));
    expect(own).toHaveLength(3);
    const all = await idsOf(`${SSO}?limit=2`, root);
    const [count] = await database.db.sql<{ n: number }[]>`select count(*) as n from oauth_clients`;
    expect(new Set(all.map((one) => one.client_id)).size).toBe(count?.n ?? -1);
    const bad = await api.call("GET", `${SSO}?cursor=eA`, { token: root });
    expect(bad.status).toBe(422);
  });

  test("of another tenant is 403 with an AUTHZ_DENIED row, a missing or malformed one 404", async () => {
    const { body } = await create({ name: "theirs" }, { token: foreign });
    const id = String(body["client_id"]);
    const headers = { "X-Request-Id": "foreign-client" };
    const answer = await api.call("DELETE", `${PARTNER}/${id}`, { token: partner, headers });
    expect(answer.status).toBe(403);
    const denied = await database.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.requestId, "foreign-client"));
    expect(denied).toMatchObject([
      { action: "AUTHZ_DENIED", details: { client_id: id, reason: "foreign_record" } },
    ]);
    const platform = await addClient(database.db);
    expect(
      (await api.call("GET", `${PARTNER}/${platform.clientId}`, { token: partner })).status,
    ).toBe(403);
    for (const missing of [randomUUID(), "x", "1", "%00"])
      expect((await api.call("GET", `${PARTNER}/${missing}`, { token: partner })).status).toBe(404);
  });
});

describe("revocation and introspection", () => {
  const form = (client: { clientId: string; secret: string }, token: unknown) => ({
    token: String(token),
    client_id: client.clientId,
    client_secret: client.secret,
  });
  const signIn = async (client: { clientId: string; secret: string }) =>
    (
      await passwordGrant(
        { client_id: client.clientId, client_secret: client.secret },
        tenants.partners[0].owner.email,
      )
    ).body;
  const introspect = async (client: { clientId: string; secret: string }, token: unknown) =>
    (await postForm(api, "/oauth/introspect", form(client, token))).body;

  test("show a client its own live tokens", async () => {
    const client = await addClient(database.db, { firstParty: true });
    const body = await signIn(client);
    const told = await introspect(client, body["access_token"]);
    expect(told).toMatchObject({
      active: true,
      client_id: client.clientId,
      scope: "*",
      sub: String(tenants.partners[0].owner.id),
      token_type: "Bearer",
      iss: api.deps.config.serverRoot,
      aud: `${api.deps.config.serverRoot}/api`,
      exp: expect.any(Number),
      iat: expect.any(Number),
      jti: expect.any(String),
    });
    expect(await introspect(client, body["refresh_token"])).toMatchObject({ active: true });
  });

  test("give the same answer for another client's, a page's, a spent and an invented token", async () => {
    const [client, stranger] = [
      await addClient(database.db, { firstParty: true }),
      await addClient(database.db, { firstParty: true }),
    ];
    const body = await signIn(client);
    const refreshed = await postForm(api, "/oauth/token", {
      ...form(client, ""),
      token: undefined,
      grant_type: "refresh_token",
      refresh_token: String(body["refresh_token"]),
    });
    expect(refreshed.status).toBe(200);
    for (const [as, token] of [
      [stranger, body["access_token"]],
      [stranger, refreshed.body["refresh_token"]],
      [client, partner],
      [client, body["refresh_token"]],
      [client, "a.b.c"],
    ] as const)
      expect(await introspect(as, token)).toEqual({ active: false });
    await postForm(api, "/oauth/revoke", form(stranger, body["access_token"]));
    expect(await introspect(client, body["access_token"])).toMatchObject({ active: true });
  });

  test("with a refresh token end the sign-in, with an access token also its refresh token", async () => {
    const client = await addClient(database.db, { firstParty: true });
    const [one, two] = [await signIn(client), await signIn(client)];
    const ended = await postForm(api, "/oauth/revoke", {
      ...form(client, one["refresh_token"]),
      token_type_hint: "access_token",
    });
    expect([ended.status, ended.text]).toEqual([200, "{}"]);
    await postForm(api, "/oauth/revoke", form(client, two["access_token"]));
    for (const token of [one, two].flatMap((each) => [each["access_token"], each["refresh_token"]]))
      expect(await introspect(client, token)).toEqual({ active: false });
    const again = await postForm(api, "/oauth/revoke", form(client, one["refresh_token"]));
    expect(again.status).toBe(200);
  });

  test.each(["/oauth/revoke", "/oauth/introspect"])(
    "at %s need a client and a token",
    async (path) => {
      const client = await addClient(database.db, { firstParty: true });
      const error = async (fields: Record<string, string>) => {
        const { status, body } = await postForm(api, path, fields);
        return [status, body["error"]];
      };
      expect(await error({ token: "x" })).toEqual([401, "invalid_client"]);
      expect(await error(form({ ...client, secret: "wrong" }, "x"))).toEqual([
        401,
        "invalid_client",
      ]);
      const { token: _, ...rest } = form(client, "x");
      expect(await error(rest)).toEqual([400, "invalid_request"]);
    },
  );

  test("let a public client revoke with its id, but not introspect", async () => {
    const open = await addClient(database.db, { confidential: false });
    const fields = { token: "x", client_id: open.clientId };
    expect((await postForm(api, "/oauth/revoke", fields)).status).toBe(200);
    expect((await postForm(api, "/oauth/introspect", fields)).status).toBe(401);
  });
});

const passwordGrant = (client: Answer["body"], email: string) =>
  postForm(api, "/oauth/token", {
    grant_type: "password",
    username: email,
    password: PASSWORD,
    client_id: String(client["client_id"]),
    client_secret: String(client["client_secret"]),
  });

let root: string;

let partner: string;

let foreign: string;

beforeAll(async () => {
  const [p1, p2] = tenants.partners;
  root = await api.login(tenants.superAdmin.email);
  partner = await api.login(p1.owner.email);
  foreign = await api.login(p2.admin.email);
});

const SSO = "/sso/clients";

const PARTNER = "/partner/oauth-clients";

const CALLBACK = "https://app.example/cb";

const create = (body: object, { path = PARTNER, token = partner } = {}) =>
  api.call("POST", path, { token, body: { redirect_uris: [CALLBACK], ...body } });
