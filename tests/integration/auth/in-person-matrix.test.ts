import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createApp } from "../../../src/app.ts";
import { openSession } from "../../../src/auth/sign-in/open-session.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import type { SignInMethod } from "../../../src/http/principal.ts";
import { addClient } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addUser, type TestUser } from "../../support/tenants.ts";

/*
 * Tests every route that does not accept every kind of token, with every kind of token (contract 3.10). The expected
 * answers are the table of the contract; the list below is compared with the routes of the app. The file prints the
 * observed matrix.
 */

describe("every route", () => {
  test("declares the kinds of token that it accepts, and a new route that writes must be added to this list", () => {
    const isListed = ({ method, demand }: Route) => demand !== "any" || method !== "GET";
    for (const demand of DEMANDS) {
      const declared = routes.filter((one) => one.demand === demand && isListed(one)).map(nameOf);
      expect([demand, declared.toSorted()]).toEqual([demand, linesOf(ROUTES[demand]).toSorted()]);
    }
  });

  test("that administers and writes rejects third parties, and requires the user in person except for plans and stores", () => {
    const writing = routes.filter(
      ({ method, path }) => method !== "GET" && path.startsWith("/admin/"),
    );
    expect(writing.length).toBeGreaterThan(20);
    const others = writing.filter(({ demand }) => demand !== "person");
    expect(others.map((one) => [nameOf(one), one.demand]).toSorted()).toEqual([
      ["PATCH /admin/plans/:id", "own"],
      ["PATCH /admin/store-review-sites/:id", "own"],
      ["PATCH /admin/stores/:id", "own"],
      ["POST /admin/plans", "own"],
      ["POST /admin/store-review-sites", "own"],
      ["POST /admin/stores", "own"],
      ["PUT /admin/store-review-sites/external/:externalId", "own"],
      ["PUT /admin/stores/external/:externalId", "own"],
    ]);
  });
});

describe("with a token of the kind", () => {
  test.each(ALL_KINDS)("%s, each route answers as the contract's table says", async (kind) => {
    const answers: string[] = [];
    const asExpected: string[] = [];
    const tokens = new Map<string, string | undefined>();
    for (const route of judged()) {
      // Users of one role share a token, except where the route may end it.
      const role = endsTokens(route) ? nameOf(route) : roleFor(route.path);
      if (!tokens.has(role)) tokens.set(role, await tokenOf(await userOf(route.path), kind));
      const outcome = await outcomeOf(route, tokens.get(role));
      answers.push(`${nameOf(route)}: ${outcome}`);
      asExpected.push(`${nameOf(route)}: ${expected(kind, route)}`);
      observed.push(`${nameOf(route)}\t${kind}\t${LETTER[outcome]}`);
    }
    expect(answers).toEqual(asExpected);
  });
});

describe.each(["dashboard's personal", "API's personal"] as const)("a stolen %s token", (kind) => {
  const post = (token: string | undefined, path: string, body: object = {}) =>
    api.call("POST", path, { token, body });
  const countOf = async (email: string) =>
    (await db.sql`select 1 from users where email = ${email}`).length;

  test("of an owner can neither make an owner nor end users, and the attempts are audited", async () => {
    const thief = await userOf("/partner");
    const victim = await userOf("/partner");
    const token = await tokenOf(thief, kind);
    const email = `made-by-${thief.id}@evil.example`;
    const person = { name: "Thief", email, role: "partner_owner" };
    const origins = ["https://evil.example"];
    const answers = [
      await post(token, "/partner/users", person),
      await post(token, `/partner/users/${p1.admin.id}/role`, { role: "partner_owner" }),
      await post(token, `/partner/users/${victim.id}/deactivate`),
      await post(token, `/partner/users/${victim.id}/invite`),
      await api.call("PATCH", "/partner/embedding", { token, body: { origins } }),
      await api.call("GET", "/partner/tokens", { token }),
    ];
    expect(answers.map(({ status, body }) => [status, body["code"]])).toEqual(
      answers.map(() => [403, "forbidden"]),
    );
    expect(await countOf(email)).toBe(0);
    await api.login(victim.email);
    const denied = await db.sql`
      select 1 from audit_log where action = 'AUTHZ_DENIED' and actor_id = ${thief.id}`;
    expect(denied).toHaveLength(answers.length);
  });

  test("of a super-admin can make no super-admin, open no partner's pages and make no first-party client", async () => {
    const token = await tokenOf(await userOf("/admin"), kind);
    const email = `root-${kind.length}@evil.example`;
    const { companyId: company_id } = tenants.superAdmin;
    const person = { name: "Thief", email, role: "super_admin", company_id };
    const firstParty = {
      name: "Thief",
      first_party: true,
      redirect_uris: ["https://evil.example/"],
    };
    const { clientId } = await addClient(db, { firstParty: true });
    const answers = [
      await post(token, "/admin/users", { ...person, password: "another fine horse" }),
      await post(token, `/admin/partners/${p1.id}/portal-links`, { pages: ["webhooks"] }),
      await post(token, "/sso/clients", firstParty),
      await post(token, `/sso/clients/${clientId}/secret`),
      await api.call("DELETE", `/sso/clients/${clientId}`, { token }),
    ];
    expect(answers.map(({ status, body }) => [status, body["code"]])).toEqual(
      answers.map(() => [403, "forbidden"]),
    );
    expect(await countOf(email)).toBe(0);
  });

  test("can do exactly what its scopes allow a partner's server", async () => {
    const token = await tokenOf(await userOf("/partner"), kind);
    const account_id = p1.accounts[0].id;
    const answers = [
      await post(token, "/partner/account-owner/token", { account_id }),
      await post(token, "/partner/portal-links", { pages: ["webhooks"], access: "write" }),
      await post(token, "/partner/oauth-clients", {
        name: "Own",
        redirect_uris: ["https://own.example/"],
      }),
      await api.call("PATCH", "/partner/alerts", {
        token,
        body: { digest_minutes: 10 },
      }),
      await api.call("GET", "/partner/webhooks", { token }),
      await api.call("GET", "/partner/users", { token }),
      await api.call("GET", "/account/sessions", { token }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 200, 200, 200, 200]);
  });
});

/** The kinds of tokens: the row of the contract's table, and whether the token has the scope `*`. */
const KINDS = {
  login: ["sign_in"],
  "login, narrow": ["sign_in", "narrow"],
  "single sign-on": ["sign_in"],
  "after a reset": ["first_party"],
  "first party, password grant": ["first_party"],
  "first party, code": ["first_party"],
  "first party, narrow": ["first_party", "narrow"],
  "dashboard's personal": ["personal"],
  "API's personal": ["personal"],
  "API's personal, narrow": ["personal", "narrow"],
  "third party": ["third_party"],
  "third party, narrow": ["third_party", "narrow"],
  impersonation: ["impersonation"],
  "impersonation by a third party": ["impersonation"],
  "portal link": ["portal"],
  "operator's portal link": ["portal"],
  "mailed code": ["password_reset"],
  "waiting sign-in": ["challenge"],
  service: ["service"],
  "refresh token": ["refresh"],
  "no token": ["none"],
} as const satisfies Record<string, readonly [TokenClass, "narrow"?]>;

const ALL_KINDS = Object.keys(KINDS) as Kind[];
const world = await startSignInWorld();
const { database, tenants, api, clock, grant } = world;
const { db } = database;

/** Prints the observed matrix: one line for each route, one column for each kind of token. */
function matrix(): string {
  const cells = new Map(observed.map((one) => [one.slice(0, -2), one.slice(-1)]));
  const shown = judged();
  const width = Math.max(...shown.map((route) => nameOf(route).length));
  const lines = shown.map((route) => {
    const row = ALL_KINDS.map((kind) => cells.get(`${nameOf(route)}\t${kind}`) ?? " ");
    return `${nameOf(route).padEnd(width)}  ${route.demand.padEnd(8)}  ${row.join("  ")}`;
  });
  const legend = ALL_KINDS.map((kind, at) => `${String.fromCodePoint(97 + at)} ${kind}`);
  const columns = ALL_KINDS.map((_, at) => String.fromCodePoint(97 + at)).join("  ");
  return [
    "y taken, - forbidden, s insufficient_scope, 0 unauthenticated",
    ...legend,
    `${"".padEnd(width)}  ${"asks for".padEnd(8)}  ${columns}`,
    ...lines,
  ].join("\n");
}

/** The kinds of token that each route accepts, and every route that writes and accepts all of them. */
const ROUTES = {
  own: `
    POST /admin/plans
    PATCH /admin/plans/:id
    POST /admin/store-review-sites
    PATCH /admin/store-review-sites/:id
    PUT /admin/store-review-sites/external/:externalId
    POST /admin/stores
    PATCH /admin/stores/:id
    PUT /admin/stores/external/:externalId
    GET /account/sessions
    DELETE /account/sessions/:id
    GET /partner/embedding`,
  person: `
    POST /change-password
    GET /account/personal-access-tokens
    POST /account/personal-access-tokens
    DELETE /account/personal-access-tokens/:id
    DELETE /account/second-factors/:id
    POST /account/second-factors/recovery-codes
    POST /account/second-factors/step-up
    GET /account/security
    PATCH /account/security
    GET /partner/security
    PATCH /partner/security
    PATCH /partner/embedding
    GET /partner/sessions
    DELETE /partner/sessions/:id
    GET /account/team-sessions
    DELETE /account/team-sessions/:id
    GET /account/team-tokens
    DELETE /account/team-tokens/:id
    GET /partner/tokens
    DELETE /partner/tokens/:id
    POST /partner/users
    POST /partner/users/:id/activate
    POST /partner/users/:id/deactivate
    POST /partner/users/:id/invite
    POST /partner/users/:id/role
    GET /partner/users/:id/identities
    DELETE /partner/users/:id/identities/:identityId
    POST /admin/accounts
    PATCH /admin/accounts/:id
    DELETE /admin/accounts/:id
    PUT /admin/accounts/external/:externalId
    POST /admin/accounts/:id/activate
    POST /admin/accounts/:id/deactivate
    POST /admin/accounts/:id/deletion
    DELETE /admin/accounts/:id/deletion
    POST /admin/erasures
    DELETE /admin/plans/:id
    DELETE /admin/store-review-sites/:id
    DELETE /admin/stores/:id
    POST /admin/partners
    PATCH /admin/partners/:id
    DELETE /admin/partners/:id
    PUT /admin/partners/external/:externalId
    POST /admin/partners/:id/activate
    POST /admin/partners/:id/deactivate
    POST /admin/partners/:id/deletion
    DELETE /admin/partners/:id/deletion
    POST /admin/partners/:id/portal-links
    DELETE /admin/partners/:id/webhooks/:subscriptionId
    POST /admin/partners/:id/webhooks/:subscriptionId/disable
    POST /admin/partners/:id/webhooks/:subscriptionId/enable
    POST /admin/providers
    PATCH /admin/providers/:id
    DELETE /admin/providers/:id
    POST /admin/providers/:id/secret
    POST /admin/inbox/:id/retry
    DELETE /admin/inbox/:id
    PUT /admin/audit-webhook
    DELETE /admin/audit-webhook
    POST /admin/services
    PATCH /admin/services/:id
    DELETE /admin/services/:id
    POST /admin/services/:id/tokens
    DELETE /admin/services/:id/tokens/:tokenId
    POST /admin/sso-connections
    DELETE /admin/sso-connections/:id
    PATCH /admin/sso-connections/:id
    POST /admin/sso-connections/:id
    POST /admin/sso-connections/:id/prove-domain
    POST /admin/users
    PATCH /admin/users/:id
    DELETE /admin/users/:id
    DELETE /admin/users/:id/second-factors
    DELETE /admin/users/:id/identities/:identityId
    PUT /admin/users/external/:externalId
    POST /admin/users/:id/activate
    POST /admin/users/:id/deactivate
    POST /admin/users/:id/invite
    POST /admin/users/:id/unlock`,
  sign_in: `
    GET /account/api-token
    POST /account/api-token
    DELETE /account/api-token
    POST /account/api-token/regenerate`,
  password: `
    POST /reset-password`,
  factor: `
    GET /account/second-factors
    POST /account/second-factors/totp
    POST /account/second-factors/totp/confirm
    POST /account/second-factors/passkeys
    POST /account/second-factors/passkeys/creation-options
    POST /account/second-factors/passkeys/request-options`,
  challenge: `
    POST /login/second-factor`,
  service: `
    POST /platform/actions
    POST /platform/introspect`,
  /**
   * Routes that write and check only the scope, so that a server of the partner can call them with a personal access
   * token.
   */
  any: `
    POST /account/reviews/:id/assign
    POST /account/reviews/:id/flag
    POST /account/reviews/:id/flag-status
    POST /account/reviews/:id/notes
    POST /account/reviews/:id/response
    DELETE /account/reviews/:id/response
    POST /partner/account-owner/token
    PATCH /partner/alerts
    POST /partner/alerts/rotate-secret
    POST /partner/alerts/secret
    POST /partner/oauth-clients
    DELETE /partner/oauth-clients/:id
    PATCH /partner/oauth-clients/:id
    POST /partner/oauth-clients/:id
    POST /partner/oauth-clients/:id/secret
    POST /partner/portal-links
    POST /partner/webhooks
    DELETE /partner/webhooks/:id
    PATCH /partner/webhooks/:id
    POST /partner/webhooks/:id
    POST /partner/webhooks/:id/deliveries/:eventId/redeliver
    POST /partner/webhooks/:id/disable
    POST /partner/webhooks/:id/enable
    DELETE /partner/webhooks/:id/previous-secret
    POST /partner/webhooks/:id/recover
    POST /partner/webhooks/:id/redeliver
    POST /partner/webhooks/:id/rotate-secret
    POST /partner/webhooks/:id/secret
    POST /partner/webhooks/:id/test
    POST /sso/clients
    DELETE /sso/clients/:id
    PATCH /sso/clients/:id
    POST /sso/clients/:id
    POST /sso/clients/:id/secret`,
};

type Demand = keyof typeof ROUTES;

const DEMANDS = [
  "any",
  "own",
  "person",
  "sign_in",
  "password",
  "factor",
  "challenge",
  "service",
] as const satisfies Demand[];

/** The rows of the contract's table, in its order. */
const TOKEN_CLASSES = [
  "sign_in",
  "first_party",
  "personal",
  "third_party",
  "impersonation",
  "portal",
  "password_reset",
  "challenge",
  "service",
] as const;

type TokenClass = (typeof TOKEN_CLASSES)[number] | "refresh" | "none";

type Kind = keyof typeof KINDS;

interface Route {
  readonly method: string;
  /** Path below `{base_url}`. */
  readonly path: string;
  readonly demand: Demand;
  /** Whether the route accepts a token of any scope. */
  readonly takesNarrow: boolean;
}

/** Demands whose tokens have either all scopes or one that is for them alone. */
const OF_ONE_SCOPE: ReadonlySet<Demand> = new Set<Demand>(["password", "factor"]);

const [p1] = tenants.partners;

let routes: readonly Route[];

const observed: string[] = [];

beforeAll(() => {
  routes = createApp(api.deps).routes.flatMap(({ method, path, hooks }) => {
    const { detail } = hooks;
    if (detail?.security === undefined || !path.startsWith(BASE_PATH)) return [];
    const scopes: unknown = detail.security[0]?.bearer;
    if (!Array.isArray(scopes) || /HEAD|ALL/.test(method)) return [];
    const demand: Demand = detail["x-token"] ?? "any";
    const takesNarrow = scopes.length === 0 && !OF_ONE_SCOPE.has(demand);
    return [{ method, path: path.slice(BASE_PATH.length), demand, takesNarrow }];
  });
});

afterAll(async () => {
  console.log(matrix());
  await world.stop();
});

/** The table of contract 3.10: the standings that satisfy each demand. */
function contractTable(): Record<string, Record<string, boolean>> {
  const page = readFileSync(join(import.meta.dir, "../../../docs/contract/3-access.md"), "utf8");
  const section = page.slice(page.indexOf("## 3.10"));
  const rows = [...section.matchAll(/^\|(.+)\|$/gm)].map(([, row = ""]) =>
    row.split("|").map((cell) => cell.trim().replaceAll("`", "")),
  );
  const [heading = [], , ...body] = rows.slice(0, TOKEN_CLASSES.length + 2);
  expect(heading).toEqual(["Token", ...DEMANDS]);
  return Object.fromEntries(
    TOKEN_CLASSES.map((tokenClass, at) => [
      tokenClass,
      Object.fromEntries(
        DEMANDS.map((demand, column) => {
          const cell = body[at]?.[column + 1];
          expect(["yes", "no"]).toContain(cell ?? "");
          return [demand, cell === "yes"];
        }),
      ),
    ]),
  );
}

const requestContext = { requestId: "r", ip: "127.0.0.1", userAgent: null, headers: new Headers() };

const NARROW = "webhooks:read";

async function signIn(
  user: TestUser,
  method: SignInMethod,
  { clientId = null, scope = "*" }: { clientId?: string | null; scope?: string } = {},
): Promise<string> {
  const one = { user, method, clientId, scope, requestContext, now: clock.now() };
  return (await db.transaction((tx) => openSession(tx, api.deps, one))).token;
}

/** Issues a token of this kind to the user, or to a user of the partner if this user can have none of the kind. */
async function tokenOf(user: TestUser, kind: Kind): Promise<string | undefined> {
  const userId = user.id;
  const firstParty = async () => (await addClient(db, { firstParty: true })).clientId;
  const thirdParty = async () => (await addClient(db)).clientId;
  const box = api.deps.box;
  switch (kind) {
    case "login":
      return signIn(user, "login");
    case "login, narrow":
      return signIn(user, "login", { scope: NARROW });
    case "single sign-on":
      return signIn(user, "sso");
    case "after a reset":
      return signIn(user, "password_reset");
    case "first party, password grant":
      return signIn(user, "password_grant", { clientId: await firstParty() });
    case "first party, code":
      return signIn(user, "authorization_code", { clientId: await firstParty() });
    case "first party, narrow":
      return signIn(user, "password_grant", { clientId: await firstParty(), scope: NARROW });
    case "dashboard's personal":
      return grant({ userId, kind: "dashboard_pat", ttlS: null, box });
    case "API's personal":
      return grant({ userId, kind: "api_pat", name: "one" });
    case "API's personal, narrow":
      return grant({ userId, kind: "api_pat", name: "one", scope: NARROW });
    case "third party":
      return signIn(user, "authorization_code", { clientId: await thirdParty() });
    case "third party, narrow":
      return signIn(user, "authorization_code", { clientId: await thirdParty(), scope: NARROW });
    case "service":
      return tokenOfService();
    case "impersonation":
      return acting(await signIn(p1.owner, "login"));
    case "impersonation by a third party":
      return acting(await signIn(p1.owner, "login", { clientId: await thirdParty() }));
    case "portal link":
      return opened(await signIn(p1.owner, "login"), "/partner/portal-links");
    case "operator's portal link":
      return opened(
        await signIn(tenants.superAdmin, "login"),
        `/admin/partners/${p1.id}/portal-links`,
      );
    case "mailed code":
      return grant({ userId, kind: "password_reset", scope: "password:reset" });
    case "waiting sign-in":
      return grant({ userId, kind: "challenge", scope: "second-factor" });
    case "refresh token":
      return grant({ userId, kind: "refresh" });
    case "no token":
      return undefined;
  }
}

async function acting(token: string): Promise<string> {
  const body = { account_id: p1.accounts[0].id };
  const made = await api.call("POST", "/partner/account-owner/token", { token, body });
  return String(made.body["access_token"]);
}

async function opened(token: string, path: string): Promise<string> {
  const body = { pages: ["webhooks"], access: "write" };
  const link = await api.call("POST", path, { token, body });
  const { pathname, hash } = new URL(String(link.body["url"]));
  const code = hash.slice("#code=".length);
  const redeemed = await api.call("POST", `${pathname}/session`, { body: { code } });
  expect(redeemed.status).toBe(200);
  return String(redeemed.body["token"]);
}

type Outcome = "taken" | "forbidden" | "scope" | "unauthenticated";

const LETTER: Record<Outcome, string> = {
  taken: "y",
  forbidden: "-",
  scope: "s",
  unauthenticated: "0",
};

function expected(kind: Kind, { demand, takesNarrow }: Route): Outcome {
  const [tokenClass, narrow]: readonly [TokenClass, "narrow"?] = KINDS[kind];
  if (tokenClass === "none" || tokenClass === "refresh") return "unauthenticated";
  if (contract[tokenClass]?.[demand] !== true) return "forbidden";
  return narrow === undefined || takesNarrow ? "taken" : "scope";
}

/** Issues a token with all scopes to a new service. */
async function tokenOfService(): Promise<string> {
  const scopes = ["actions:write", "tokens:introspect"];
  const body = { name: "Service", scopes };
  const root = await api.login(tenants.superAdmin.email);
  const { body: made } = await api.call("POST", "/admin/services", { token: root, body });
  const userId = Number(made["id"]);
  return grant({ userId, kind: "service", name: "one", scope: scopes.join(" ") });
}

const contract = contractTable();

/**
 * Calls a route in a way that changes nothing. The record does not exist, or the body has an unknown field; both are
 * detected only after the check of the token.
 */
async function outcomeOf({ method, path }: Route, token: string | undefined): Promise<Outcome> {
  const body = method === "POST" || method === "PATCH" ? { surplus: 1 } : undefined;
  const at = path.replaceAll(/:\w+/g, "999999");
  const { status, body: answer } = await api.call(method, at, { token, body });
  expect(status).toBeLessThan(500);
  if (status === 401) return "unauthenticated";
  if (status !== 403) return "taken";
  return answer["code"] === "insufficient_scope" ? "scope" : "forbidden";
}

/** Returns the role of the users for whom a route is made. */
function roleFor(path: string) {
  if (path.startsWith("/admin") || path.startsWith("/sso")) return "super_admin";
  if (path.startsWith("/account/team-") || path === "/account/security") return "account_owner";
  return "partner_owner";
}

/** Adds a user for whom the route at this path is made. */
function userOf(path: string): Promise<TestUser> {
  const role = roleFor(path);
  const email = `matrix-${++people}@p1.test`;
  const companies = {
    super_admin: tenants.superAdmin.companyId,
    account_owner: p1.accounts[0].id,
    partner_owner: p1.id,
  };
  return addUser(db, { companyId: companies[role], role, email });
}

/** Whether a route may end or replace the token that calls it, which no id of its path names. */
const endsTokens = ({ method, path }: Route) => method !== "GET" && path.includes("/api-token");

let people = 0;

const linesOf = (text: string) => text.trim().split(/\s*\n\s*/);

const nameOf = ({ method, path }: Route) => `${method} ${path}`;

/** The routes of the list that do not accept every kind of token, in the form of the list. */
function judged(): Route[] {
  const declared = new Map(routes.map((route) => [nameOf(route), route]));
  return DEMANDS.filter((demand) => demand !== "any").flatMap((demand) =>
    linesOf(ROUTES[demand]).map((name) => {
      const [method = "", path = ""] = name.split(" ");
      return { method, path, demand, takesNarrow: declared.get(name)?.takesNarrow ?? false };
    }),
  );
}
