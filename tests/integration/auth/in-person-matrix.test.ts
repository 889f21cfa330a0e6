import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import type { SignInMethod } from "../../../src/http/principal.ts";
import { addIntegration } from "../../support/callers.ts";
import { addClient } from "../../support/oauth.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addUser, type TestUser } from "../../support/tenants.ts";

/*
 * Tests every route that does not accept every kind of token, with every kind of token (contract 3.10). The expected
 * answers are the table of the contract; the list below is compared with the routes of the app.
 */

describe("every route", () => {
  test("that writes requires the user in person, and one that reads takes any token, except for those of this list", () => {
    const isUsual = ({ method, demand }: Route) => demand === (method === "GET" ? "any" : "person");
    for (const demand of DEMANDS) {
      const declared = routes.filter((one) => one.demand === demand && !isUsual(one)).map(nameOf);
      expect([demand, declared.toSorted()]).toEqual([demand, linesOf(ROUTES[demand]).toSorted()]);
    }
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
    }
    expect(answers).toEqual(asExpected);
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
  "integration's": ["integration"],
  "integration's, narrow": ["integration", "narrow"],
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
const { database, tenants, api, grant } = world;
const { db } = database;

/**
 * The kinds of token that routes accept, without the usual ones: a route that writes demands the user in person, and one
 * that reads accepts every kind.
 */
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
    GET /account/personal-access-tokens
    GET /account/security
    GET /partner/integrations
    GET /partner/integrations/:id
    GET /partner/integrations/:id/api-token
    GET /partner/security
    GET /partner/sessions
    GET /account/team-sessions
    GET /account/team-tokens
    GET /partner/tokens
    GET /partner/users/:id/identities`,
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
    POST /partner/webhooks/:id/batch
    POST /partner/webhooks/:id/check
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
  "integration",
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

afterAll(() => world.stop());

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

const NARROW = "webhooks:read";

async function signIn(
  user: TestUser,
  method: SignInMethod,
  options: { clientId?: string; scope?: string } = {},
): Promise<string> {
  return (await sessionOf(world, user, method, options)).token;
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
    case "integration's":
      return (await addIntegration(api, await signIn(p1.owner, "login"))).token;
    case "integration's, narrow": {
      const scopes = [NARROW];
      return (await addIntegration(api, await signIn(p1.owner, "login"), { scopes })).token;
    }
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

/** The routes that do not accept every kind of token. */
const judged = () => routes.filter(({ demand }) => demand !== "any");
