import { beforeAll, describe, expect, test } from "bun:test";

import { BASE_PATH } from "../../../src/http/access.ts";
import { operationsIn } from "../../hostile/description.ts";
import { PASSWORD, type Answer } from "../../support/api.ts";
import { created, report, reviewIdOf } from "../../support/factory.ts";
import { addClient } from "../../support/oauth.ts";
import { addSsoConnection } from "../../support/tenants.ts";
import { startWebhooks, type Who } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

/** Ids for the paths and bodies of the rows below. */
const world = fixture(startWebhooks);

describe("a 422 names every invalid field, of any rule, and no other", () => {
  test("at each list the cursor and the limit are named at once", async () => {
    const { body } = await world.api.call("GET", "/openapi.json", { root: true });
    const lists = operationsIn(body).flatMap(({ method, path, parameters }) =>
      method === "GET" && !path.includes("{") && parameters.some(({ name }) => name === "cursor")
        ? [path.slice(BASE_PATH.length)]
        : [],
    );
    expect(lists.length).toBeGreaterThan(20);
    for (const path of lists) {
      const token = world.tokens[readerOf(path)];
      const answer = await world.api.call("GET", `${path}?limit=0&cursor=zz`, { token });
      expect([path, ...fieldsOf(answer)]).toEqual([path, 422, ["cursor", "limit"]]);
    }
  });

  test.each<Row>([
    [
      "POST /sso/clients",
      "root",
      () => ({ name: "", redirect_uris: ["foo"] }),
      ["name", "redirect_uris.0"],
    ],
    [
      "POST /partner/oauth-clients",
      "owner",
      () => ({ name: "x", zz: 1, first_party: true, grant_types: ["password", "x"] }),
      ["first_party", "grant_types", "grant_types.1", "zz"],
    ],
    [
      "PATCH /partner/oauth-clients/:client",
      "owner",
      () => ({ name: "", first_party: true, redirect_uris: ["foo"] }),
      ["first_party", "name", "redirect_uris.0"],
    ],
    [
      "POST /admin/users",
      "root",
      () => user({ name: "", role: "account_owner", password: "password" }),
      ["name", "password", "role"],
    ],
    [
      "POST /admin/users",
      "root",
      () => user({ email: world.tenants.partners[0].owner.email, role: "account_owner" }),
      ["email", "role"],
    ],
    [
      "POST /admin/users",
      "root",
      () => user({ company_id: "x", role: "account_owner" }),
      ["company_id"],
    ],
    [
      "POST /admin/users",
      "root",
      () => user({ company_id: known.account, role: "location_user", name: "" }),
      ["name", "store_ids"],
    ],
    [
      "POST /admin/users",
      "root",
      () => user({ company_id: known.account, role: "location_user", store_ids: [0, 999] }),
      ["store_ids", "store_ids.0"],
    ],
    [
      "POST /admin/sso-connections",
      "root",
      () => connection({ company_id: 999, zz: 1, domains: ["", "not a domain", TAKEN_DOMAIN] }),
      ["company_id", "domains", "domains.0", "domains.1", "zz"],
    ],
    [
      "PATCH /admin/sso-connections/:connection",
      "root",
      () => ({ client_id: "", issuer: "nope", domains: ["own.example.com", TAKEN_DOMAIN] }),
      ["client_id", "domains", "issuer"],
    ],
    [
      "POST /admin/accounts",
      "root",
      () => ({ name: "", partner_id: 999, plan_id: 999 }),
      ["name", "partner_id", "plan_id"],
    ],
    [
      "POST /admin/partners",
      "root",
      () => ({
        name: "",
        primary_color: "red",
        logo_url: "http://x.example/",
        white_label: { brand_name: "", domain: "Not A Domain" },
        is_active: true,
      }),
      [
        "is_active",
        "logo_url",
        "name",
        "primary_color",
        "white_label.brand_name",
        "white_label.domain",
      ],
    ],
    ["POST /admin/providers", "root", () => ({ slug: "google", name: "" }), ["name", "slug"]],
    ["POST /reset-password", "owner", () => ({ password: "password", zz: 1 }), ["password", "zz"]],
    [
      "POST /account/reviews/:review/assign",
      "account",
      () => ({ user_id: 999, zz: 1 }),
      ["user_id", "zz"],
    ],
    [
      "POST /partner/webhooks/:subscription/recover",
      "owner",
      () => ({ since: ago(5), until: ago(10), zz: 1 }),
      ["until", "zz"],
    ],
    [
      "POST /partner/webhooks/:subscription/redeliver",
      "owner",
      () => ({ event_ids: ["x"], sequences: [0], zz: 1 }),
      ["event_ids", "event_ids.0", "sequences", "sequences.0", "zz"],
    ],
    [
      "POST /partner/account-owner/token",
      "owner",
      () => ({ account_id: own.ownerless, zz: 1 }),
      ["account_id", "zz"],
    ],
  ])("%s as %s (%#)", async (request, as, body, fields) => {
    const [method = "", path = ""] = request.split(" ");
    const before = await written();
    const answer = await world.api.call(method, fill(path), {
      token: world.tokens[as],
      body: body(),
    });
    expect(fieldsOf(answer)).toEqual([422, [...fields]]);
    expect(await written()).toEqual(before);
  });

  test.each<[path: string, as: Who, fields: string[]]>([
    [
      "/partner/webhooks/:subscription/deliveries?since=x&outcome=7&limit=0&cursor=zz",
      "owner",
      ["cursor", "limit", "outcome", "since"],
    ],
    [
      "/partner/webhooks/:subscription/messages?sequence=25-17&state=x&status=9",
      "owner",
      ["sequence", "state", "status"],
    ],
    ["/admin/users?role=x&cursor=zz", "root", ["cursor", "role"]],
    [
      "/partner/webhooks/:subscription/stats?since=2026-06-02T00:00:00Z&until=2026-06-01T00:00:00Z&step=7",
      "owner",
      ["since", "step"],
    ],
    [
      "/auth/sso/redirect?return_to=https://evil.example/&code_challenge_method=S256",
      "owner",
      ["code_challenge", "connection", "return_to"],
    ],
    [
      "/auth/sso/redirect?email=a@x.test&email=b@x.test&code_challenge=x",
      "owner",
      ["code_challenge", "email"],
    ],
  ])("GET %s as %s", async (path, as, fields) => {
    const answer = await world.api.call("GET", fill(path), { token: world.tokens[as] });
    expect(fieldsOf(answer)).toEqual([422, fields]);
  });
});

/** Returns whose token may read the list. */
function readerOf(path: string): "root" | "account" | "owner" {
  if (/^\/(?:admin|sso)/.test(path)) return "root";
  return path.startsWith("/account/") ? "account" : "owner";
}

describe("a value that was free during validation", () => {
  const post = (path: string, body: Body) =>
    world.api.call("POST", path, { token: world.tokens.root, body });
  const race = async (path: string, bodyOf: () => Body) =>
    Promise.all(Array.from({ length: 4 }, () => post(path, bodyOf())));

  test.each<[string, () => Body, string]>([
    ["/admin/users", () => user({ email: "race@p1.test", password: PASSWORD }), "email"],
    ["/admin/providers", () => ({ slug: "race", name: "Race" }), "slug"],
    [
      "/admin/partners",
      () => ({ name: "Race", white_label: { brand_name: "R", domain: "race.test" } }),
      "white_label.domain",
    ],
    ["/admin/plans", () => ({ name: "Race" }), "name"],
    ["/admin/sso-connections", () => connection({ domains: ["race.example.com"] }), "domains"],
  ])("at %s goes to one of several concurrent requests", async (path, body, field) => {
    const answers = await race(path, body);
    const refused = answers.filter(({ status }) => status === 422).map(fieldsOf);
    expect(refused).toEqual(Array.from({ length: 3 }, () => [422, [field]]));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  });
});

const known = { partner: 0, account: 0, review: 0, colleague: 0, plan: 0, subscription: "" };
const own = { client: "", connection: "", ownerless: 0 };
const TAKEN_DOMAIN = "taken.example.com";

const user = (fields: Body): Body => ({
  company_id: known.partner,
  email: "new@p1.test",
  name: "New",
  role: "partner_admin",
  ...fields,
});

const connection = (fields: Body): Body => ({
  company_id: known.account,
  issuer: "https://idp.example.com",
  client_id: "c",
  client_secret: "s",
  domains: ["new.example.com"],
  ...fields,
});

const ago = (ms: number) => new Date(world.clock.now().getTime() - ms).toISOString();

type Body = Readonly<Record<string, unknown>>;

beforeAll(async () => {
  const { db } = world.database;
  const [{ id: partner, accounts }] = world.tenants.partners;
  await report(world.api, world.provider, [created(world.siteId, "known")]);
  known.partner = partner;
  known.account = accounts[0].id;
  known.colleague = accounts[0].owner.id;
  known.review = await reviewIdOf(db, "known");
  known.subscription = (await world.subscribe()).id;
  const [plan] = await db.sql<{ id: number }[]>`select min(id) as id from plans`;
  known.plan = plan?.id ?? 0;
  own.client = (await addClient(db, { companyId: partner })).clientId;
  own.connection = await addSsoConnection(db, { companyId: partner, domains: ["own.example.com"] });
  own.ownerless = accounts[1].id;
  await db.sql`update users set is_active = false where id = ${accounts[1].owner.id}`;
  await addSsoConnection(db, { companyId: known.account, domains: [TAKEN_DOMAIN] });
});

const fieldsOf = ({ status, body }: Answer) => [
  status,
  Object.keys(body["errors"] ?? {}).toSorted(),
];

/** Counts the rows of every table to which a request here could write. */
async function written() {
  const { sql } = world.database.db;
  const [row] = await sql`
    select (select count(*)::int from users) as users, (select count(*)::int from companies) as companies,
           (select count(*)::int from review_sites) as providers, (select count(*)::int from oauth_clients) as clients,
           (select count(*)::int from sso_connections) as connections, (select count(*)::int from sso_domains) as domains,
           (select count(*)::int from provider_events) as events, (select count(*)::int from reviews) as reviews,
           (select count(*)::int from review_history) as history, (select count(*)::int from queued_entries) as entries,
           (select count(*)::int from audit_log
             where action not in ('AUTHZ_DENIED', 'TENANT_READ')) as audit`;
  return { ...row };
}

type Row = readonly [request: string, as: Who, body: () => Body, fields: readonly string[]];

const fill = (path: string) =>
  path.replaceAll(/:([a-z]+)/g, (_, name: string) =>
    String(Reflect.get({ ...known, ...own }, name)),
  );
