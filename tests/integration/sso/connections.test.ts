import { beforeAll, describe, expect, test } from "bun:test";

import { purge, PURGE_MARGIN_MS } from "../../../src/auth/purge.ts";
import { everyPage, startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { createDatabase } from "../../support/postgres.ts";
import { connect, listenWith } from "../../support/sso.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const clock = fixture(() => createFakeClock());
const api = fixture(() => startApi({ db: database.db, clock }));

describe("a connection", () => {
  test("can be made, shown, changed and deleted, with an audit row each", async () => {
    const actor_id = tenants.superAdmin.id;
    const made = await create({ domains: ["B.Example.COM", "bücher.example.com"] });
    expect(made.status).toBe(201);
    const id = String(made.body["id"]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^[0-9A-Z]{26}$/),
      company_id,
      issuer: ISSUER,
      client_id: "the client",
      domains: ["b.example.com", "xn--bcher-kva.example.com"],
      domain_proofs: ["b.example.com", "xn--bcher-kva.example.com"].map((domain) => ({
        domain,
        record_name: `_reviewrelay.${domain}`,
        record_value: `reviewrelay-connection=${id}`,
        proved_at: null,
      })),
      new_users: null,
      password_login: true,
      trust_email: false,
      is_active: true,
      redirect_uri: `http://localhost:3000/api/v1/auth/sso/callback/${id}`,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const details = { connection_id: id, connection_company_id: company_id, issuer: ISSUER };
    expect(await lastAudit()).toEqual({ action: "SSO_CONNECTION_CREATED", actor_id, details });
    expect((await api.call("GET", `${PATH}/${id}`, { token })).body).toEqual(made.body);

    const domains = ["b.example.com", "c.example.com"];
    const change = { password_login: false, trust_email: true, client_id: "the client" };
    const body = { ...change, domains, client_secret: "another" };
    const changed = await api.call("PATCH", `${PATH}/${id}`, { token, body });
    expect(changed.body).toMatchObject(change);
    const fields = ["password_login", "trust_email", "domains", "client_secret"];
    const changes = {
      password_login: { from: true, to: false },
      trust_email: { from: false, to: true },
      domains: { from: made.body["domains"], to: domains },
    };
    expect(await lastAudit()).toEqual({
      action: "SSO_CONNECTION_UPDATED",
      actor_id,
      details: { ...details, fields, changes },
    });
    const discovered = await api.call("POST", "/auth/discover", {
      body: { email: "a@c.example.com" },
    });
    expect(discovered.body).toMatchObject({ methods: ["sso"] });

    const gone = await api.call("DELETE", `${PATH}/${id}`, { token });
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expect(await lastAudit()).toEqual({ action: "SSO_CONNECTION_DELETED", actor_id, details });
    expect((await api.call("GET", `${PATH}/${id}`, { token })).status).toBe(404);
    expect((await api.call("DELETE", `${PATH}/${id}`, { token })).status).toBe(404);
  });

  test("stores its secret encrypted for its own row, and never shows it", async () => {
    const secret = "the secret of the client";
    const made = await create();
    const id = String(made.body["id"]);
    const stored = async () => {
      const [row] = await database.db.sql<{ sealed: string }[]>`
        select sealed_client_secret as sealed from sso_connections where id = ${id}`;
      return row?.sealed ?? "";
    };
    const context = `sso:${company_id}:${id}`;
    const sealed = await stored();
    expect(sealed).not.toContain(secret);
    expect(api.deps.box.open(sealed, context)).toBe(secret);
    const list = await api.call("GET", PATH, { token });
    const one = await api.call("GET", `${PATH}/${id}`, { token });
    const log = JSON.stringify(await database.db.sql`select details from audit_log`);
    for (const text of [made.text, list.text, one.text, log]) expect(text).not.toContain(secret);
    // An update without a secret keeps the old one; an update with a secret replaces it.
    await api.call("POST", `${PATH}/${id}`, { token, body: { is_active: false } });
    expect(await stored()).toBe(sealed);
    const renewed = { client_secret: "a new one" };
    const answer = await api.call("POST", `${PATH}/${id}`, { token, body: renewed });
    expect(answer.text).not.toContain("a new one");
    expect(api.deps.box.open(await stored(), context)).toBe("a new one");
  });

  test("shares no domain with another one, even if both are made at once", async () => {
    const domains = [domain(), domain()];
    const answers = await Promise.all([
      create({ domains }),
      create({ domains: domains.toReversed() }),
      create({ domains }),
    ]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 422, 422]);
    const refused = answers.find(({ status }) => status === 422);
    expect(Object.keys(refused?.body["errors"] as object)).toEqual(["domains"]);
    const [row] = await database.db.sql<{ count: number }[]>`
      select count(distinct connection_id) from sso_domains where domain = any(${domains})`;
    expect(row?.count).toBe(1);
  });

  test.each([
    [{ issuer: "https://idp.example.com/?tenant=1" }, "issuer"],
    [{ issuer: "https://idp.example.com/#x" }, "issuer"],
    [{ issuer: "https://user@idp.example.com" }, "issuer"],
    [{ issuer: "http://10.0.0.1" }, "issuer"],
    [{ issuer: "https://169.254.169.254/latest" }, "issuer"],
    [{ issuer: "ftp://idp.example.com" }, "issuer"],
    [{ domains: [] }, "domains"],
    [{ domains: ["com"] }, "domains.0"],
    [{ domains: ["ok.example.com", "*.example.com"] }, "domains.1"],
    [{ domains: ["a b.example.com"] }, "domains.0"],
    [{ domains: ["10.0.0.1"] }, "domains.0"],
  ])("with %p is a 422 on the field", async (more, field) => {
    const answer = await create(more);
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body["errors"] as object)).toEqual([field]);
  });

  test("is not for the platform, and never changes its company", async () => {
    const platform = await create({ company_id: tenants.superAdmin.companyId });
    expect(Object.keys(platform.body["errors"] as object)).toEqual(["company_id"]);
    const id = String((await create()).body["id"]);
    const moved = await api.call("PATCH", `${PATH}/${id}`, { token, body: { company_id } });
    expect(Object.keys(moved.body["errors"] as object)).toEqual(["company_id"]);
  });

  test("is listed in pages and by company", async () => {
    const elsewhere = tenants.partners[1].id;
    for (let i = 0; i < 3; i++) {
      clock.advance(1);
      await create({ company_id: elsewhere });
    }
    const pages = await everyPage<{ id: string; company_id: number }>(
      api,
      `${PATH}?limit=2&company_id=${elsewhere}`,
      token,
    );
    expect(pages.map((page) => page.length)).toEqual([2, 1]);
    const ids = pages.flat().map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted().toReversed());
    expect(new Set(pages.flat().map((one) => one.company_id))).toEqual(new Set([elsewhere]));
  });
});

test("states and codes are purged after they expire", async () => {
  const { sql } = database.db;
  const server = await listenWith((_request, response) => response.end());
  const id = await connect(api, token, { company_id, issuer: server.issuer, domains: [domain()] });
  server.stop();
  const now = clock.now();
  const over = new Date(now.getTime() - PURGE_MARGIN_MS);
  for (const [name, expires] of [
    ["dead", over],
    ["live", now],
  ] as const) {
    await sql`insert into sso_states (state_hash, connection_id, browser_hash, return_to, created_at, expires_at)
      values (${name}, ${id}, 'b', 'r', ${over}, ${expires})`;
    await sql`insert into sso_codes (code_hash, user_id, connection_id, created_at, expires_at)
      values (${name}, ${tenants.superAdmin.id}, ${id}, ${over}, ${expires})`;
  }
  expect(await purge(api.deps, clock.now())).toMatchObject({ ssoStates: 1, ssoCodes: 1 });
  expect(await sql`select state_hash from sso_states`).toMatchObject([{ state_hash: "live" }]);
  expect(await sql`select code_hash from sso_codes`).toMatchObject([{ code_hash: "live" }]);
  expect(await purge(api.deps, clock.now())).toMatchObject({ ssoStates: 0, ssoCodes: 0 });
});

const PATH = "/admin/sso-connections";

const ISSUER = "https://idp.example.com/tenant";

let token: string;

let company_id: number;

let serial = 0;

beforeAll(async () => {
  token = await api.login(tenants.superAdmin.email);
  company_id = tenants.partners[0].accounts[0].id;
});

const domain = () => `d${++serial}.example.com`;

const body = (more: Record<string, unknown> = {}) => ({
  company_id,
  issuer: ISSUER,
  client_id: "the client",
  client_secret: "the secret of the client",
  domains: [domain()],
  ...more,
});

const create = (more: Record<string, unknown> = {}) =>
  api.call("POST", PATH, { token, body: body(more) });

async function lastAudit() {
  const [row] = await database.db.sql<
    { action: string; actor_id: number; details: Record<string, unknown> }[]
  >`select action, actor_id, details - 'token' as details from audit_log order by id desc limit 1`;
  return row;
}
