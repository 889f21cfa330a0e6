import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { decodeJwt } from "jose";

import { plans } from "../../db/schema/companies.ts";
import { oauthClients } from "../../db/schema/tokens.ts";
import { everyPage, type Answer } from "../support/api.ts";
import {
  CALLER_KINDS,
  callerOf,
  NARROW,
  type CallerKind,
  type TestCaller,
} from "../support/callers.ts";
import { addProvider } from "../support/factory.ts";
import { addClient } from "../support/oauth.ts";
import { startSignInWorld } from "../support/sign-in.ts";
import { addSsoConnection, addUser, type TestUser } from "../support/tenants.ts";

/*
 * Authority only shrinks (contract 3.9). Every kind of caller tries every route that creates, changes, shows or ends
 * something that can act. A row has one letter per kind of caller, in the order of `CALLER_KINDS`: `y` the request
 * succeeded, `-` it was denied, `.` no such caller exists.
 */

const LEVELS = ["platform", "partner", "account"] as const;

describe.each(LEVELS)("users of the %s level", (level) => {
  const rows: Readonly<Record<string, readonly Row[]>> = {
    CLIENTS: [
      ["make a client like itself", ["yyyyyy.-", "yyyyyy.-"], (as) => madeClient(as, {})],
      [
        "make one with all scopes",
        ["y-y-y-.-", "y-y-y-.-"],
        (as) => madeClient(as, { scopes: ["*"] }),
      ],
      [
        "make one with another scope",
        ["y-y-y-.-", "y-y-y-.-"],
        (as) => madeClient(as, { scopes: ["impersonate"] }),
      ],
      [
        "make a first-party one",
        [PERSON],
        (as) => madeClient(as, { first_party: true, scopes: [NARROW] }),
      ],
      [
        "make one with the password grant",
        NOBODY,
        (as) => madeClient(as, { grant_types: ["password"] }),
      ],
      ["see one with all scopes", [ALL_SCOPES, ALL_SCOPES], toClient(wide, "GET")],
      ["list one with all scopes", [ALL_SCOPES, ALL_SCOPES], listing(wide)],
      ["redirect one with all scopes", [ALL_SCOPES, ALL_SCOPES], toClient(wide, "PATCH", "", URIS)],
      [
        "replace the secret of one with all scopes",
        [ALL_SCOPES, ALL_SCOPES],
        toClient(wide, "POST", "/secret", {}),
      ],
      ["delete one with all scopes", [ALL_SCOPES, ALL_SCOPES], toClient(wide, "DELETE")],
      ["see a narrow one", [BY_SCOPE, BY_SCOPE], toClient(narrow, "GET")],
      ["list a narrow one", [BY_SCOPE, BY_SCOPE], listing(narrow)],
      ["redirect a narrow one", [BY_SCOPE, BY_SCOPE], toClient(narrow, "PATCH", "", URIS)],
      ["widen a narrow one", [ALL_SCOPES, ALL_SCOPES], toClient(narrow, "PATCH", "", WIDER)],
      [
        "replace the secret of a narrow one",
        [BY_SCOPE, BY_SCOPE],
        toClient(narrow, "POST", "/secret", {}),
      ],
      ["delete a narrow one", [BY_SCOPE, BY_SCOPE], toClient(narrow, "DELETE")],
      [
        "make a narrow one first-party",
        [PERSON],
        toClient(narrow, "PATCH", "", { first_party: true }),
      ],
      ["see a first-party one", [ALL_SCOPES, ALL_SCOPES], toClient(trusted, "GET")],
      ["list a first-party one", [ALL_SCOPES, ALL_SCOPES], listing(trusted)],
      ["redirect a first-party one", [PERSON], toClient(trusted, "POST", "", URIS)],
      [
        "replace the secret of a first-party one",
        [PERSON],
        toClient(trusted, "POST", "/secret", {}),
      ],
      ["delete a first-party one", [PERSON], toClient(trusted, "DELETE")],
      [
        "redirect one that the caller's client made",
        ["yyyyyy.-", "yyyyyy.-"],
        toClient(made, "PATCH", "", URIS),
      ],
      ["list one that the caller's client made", ["yyyyyy.-", "yyyyyy.-"], listing(made)],
      [
        "widen one that the caller's client made",
        ["y-y-y-.-", "y-y-y-.-"],
        toClient(made, "PATCH", "", WIDER),
      ],
      [
        "replace the secret of the caller's own client",
        NOBODY,
        async (as) =>
          as.clientId !== null && call(as, "POST", `${clientsOf(as)}/${as.clientId}/secret`, {}),
      ],
      ["redirect one of another tenant", [ALL_SCOPES], toClient(foreign, "PATCH", "", URIS)],
    ],
    PERSONAL_TOKENS: [
      ["make a token like itself", every("yy----"), (as) => call(as, "POST", PATS, { name: "x" })],
      [
        "make one with all scopes",
        every("y-----"),
        (as) => call(as, "POST", PATS, { name: "x", scopes: ["*"] }),
      ],
      ["list one with all scopes", every("y-----"), listingToken("*")],
      ["delete one with all scopes", every("y-----"), deletingToken("*")],
      ["list a narrow one", every("yy----"), listingToken(NARROW)],
      ["delete a narrow one", every("yy----"), deletingToken(NARROW)],
      [
        "make the dashboard's API token",
        every("y-----"),
        (as) => call(as, "POST", "/account/api-token", {}),
      ],
      [
        "see the dashboard's API token",
        NOBODY,
        async (as) => as.kind !== "own" && call(as, "GET", "/account/api-token"),
      ],
      ["list sign-ins", every("y-y---"), (as) => call(as, "GET", "/account/sessions")],
      [
        "set the password",
        ["y-----.y", "y-----.y", "y------y"],
        (as) => call(as, "POST", "/reset-password", { password: "another fine horse" }),
      ],
      [
        "act as the owner of an account",
        ["", "y-y-y-.-"],
        (as) => call(as, "POST", ACT, OWN_ACCOUNT),
      ],
      [
        "act as the owner of another tenant's account",
        NOBODY,
        (as) => call(as, "POST", ACT, FOREIGN_ACCOUNT),
      ],
    ],
    SUBSCRIBING: [
      [
        "subscribe",
        ["", "y-y-y-.-"],
        async (as) => {
          await deleteSubscriptions();
          return call(as, "POST", SUBSCRIPTIONS, subscription);
        },
      ],
      [
        "change the URL of a subscription",
        ["", "y-y-y-.-"],
        toSubscription("PATCH", "", { webhook_url: "http://127.0.0.1:8/" }),
      ],
      ["see its secret", ["", "y-y-y-.-"], toSubscription("POST", "/secret", {})],
      ["rotate its secret", ["", "y-y-y-.-"], toSubscription("POST", "/rotate-secret", {})],
      ["delete it", ["", "y-y-y-.-"], toSubscription("DELETE", "")],
    ],
    ADMINISTRATION: [
      ["make a super-admin", newUser("super_admin", tenants.superAdmin.companyId)],
      ["make an owner of a partner", newUser("partner_owner", p1.id)],
      ["deactivate a user", toUser("deactivate")],
      ["activate a user", toUser("activate")],
      ["unlock a user", toUser("unlock")],
      ["unlink a user from an identity", unlinking("/admin/users")],
      [
        "make a partner",
        (as: TestCaller) => call(as, "POST", "/admin/partners", { name: fresh("x") }),
      ],
      [
        "make an account",
        (as: TestCaller) =>
          call(as, "POST", "/admin/accounts", {
            name: fresh("x"),
            partner_id: p1.id,
            plan_id: planId,
          }),
      ],
      [
        "connect an identity provider",
        (as: TestCaller) => call(as, "POST", "/admin/sso-connections", newConnection()),
      ],
      [
        "change the issuer of a connection",
        toConnection("PATCH", { issuer: "https://evil.example" }),
      ],
      ["delete a connection", toConnection("DELETE")],
      [
        "make a review site",
        (as: TestCaller) =>
          call(as, "POST", "/admin/providers", { slug: fresh("site"), name: "x" }),
      ],
      [
        "replace the secret of a review site",
        async (as: TestCaller) => {
          const { id } = await addProvider(db, api.deps.box, fresh("site"));
          return call(as, "POST", `/admin/providers/${id}/secret`, {});
        },
      ],
    ].map(([title, attempt]) => [title, [PERSON], attempt] as Row),
    PROVISIONING: [
      ["make a plan", [ALL_SCOPES], (as) => call(as, "POST", "/admin/plans", { name: fresh("x") })],
      [
        "make a store",
        [ALL_SCOPES],
        (as) =>
          call(as, "POST", "/admin/stores", { account_id: p1.accounts[0].id, name: fresh("x") }),
      ],
    ],
    TEAM: [
      [
        "invite a teammate",
        ["", PERSON],
        (as) =>
          call(as, "POST", "/partner/users", {
            name: "mate",
            email: `${fresh("mate")}@p1.test`,
            role: "partner_owner",
          }),
      ],
      ["invite again", ["", PERSON], toTeammate("invite", {}, { passwordHash: null })],
      ["make an owner", ["", PERSON], toTeammate("role", { role: "partner_owner" })],
      ["deactivate a teammate", ["", PERSON], toTeammate("deactivate")],
      ["activate a teammate", ["", PERSON], toTeammate("activate")],
      [
        "deactivate a user of another tenant",
        NOBODY,
        toTeammate("deactivate", {}, { companyId: p2.id }),
      ],
      ["deactivate a user of an account", NOBODY, toTeammate("deactivate", {}, OF_ACCOUNT)],
      ["unlink a teammate from an identity", ["", PERSON], unlinking("/partner/users")],
    ],
    LOOKING: [
      [
        "see the identities of a teammate",
        ["", PERSON],
        async (as) => call(as, "GET", `/partner/users/${(await userOf("partner")).id}/identities`),
      ],
      [
        "see the identities of a user",
        ["y-y-y-.-"],
        async (as) => call(as, "GET", `/admin/users/${(await userOf("partner")).id}/identities`),
      ],
      ["see the team", ["", "y-y-y-.-"], (as) => call(as, "GET", "/partner/users")],
      ["see the accounts", ["", "y-y-y-.-"], (as) => call(as, "GET", "/partner/accounts")],
      ["see the stores", ["", "y-y-y-.-"], (as) => call(as, "GET", "/partner/stores")],
      ["see the audit log", ["", "y-y-y-.-"], (as) => call(as, "GET", "/partner/audit-log")],
      ["see the tokens", ["", PERSON], (as) => call(as, "GET", "/partner/tokens")],
      ["see the sign-ins", ["", PERSON], (as) => call(as, "GET", "/partner/sessions")],
      ["revoke a token of the team", ["", PERSON], teamToken("api_pat")],
      ["revoke a token that acts for an account", ["", PERSON], teamToken("impersonation")],
      [
        "see the origins that may frame the portal",
        ["", ALL_SCOPES],
        (as) => call(as, "GET", "/partner/embedding"),
      ],
      [
        "set the origins that may frame the portal",
        ["", PERSON],
        (as) => call(as, "PATCH", "/partner/embedding", ORIGINS),
      ],
      [
        "see the backlogs of all partners",
        ["y-y-y-.-"],
        (as) => call(as, "GET", "/admin/backlogs"),
      ],
      [
        "see a partner's subscriptions",
        ["y-y-y-.-"],
        (as) => call(as, "GET", `/admin/partners/${p1.id}/webhooks`),
      ],
      [
        "make a link into a partner's portal",
        [PERSON],
        (as) => call(as, "POST", `/admin/partners/${p1.id}/portal-links`, { pages: ["webhooks"] }),
      ],
    ],
  };
  for (const [group, attempts] of Object.entries(rows))
    test.each(attempts)(`${group}: %s`, async (_title, expected, attempt) => {
      let row = "";
      for (const kind of CALLER_KINDS) row += await letterOf(level, kind, attempt);
      const refused = level === "account" ? "--------" : "------.-";
      expect(row).toBe(expected[LEVELS.indexOf(level)] || refused);
    });
});

const world = await startSignInWorld();
const { database, tenants, api, grant } = world;
const { db } = database;
const [p1, p2] = tenants.partners;
let names = 0;
const fresh = (word: string) => `${word}-${++names}`;

const call = (as: TestCaller, method: string, path: string, body?: unknown) =>
  api.call(method, path, { token: as.token, ...(body !== undefined && { body }) });

const clientsOf = (as: TestCaller) =>
  as.user.role === "super_admin" ? "/sso/clients" : "/partner/oauth-clients";

const tenantOf = (as: TestCaller) => (as.user.role === "super_admin" ? null : p1.id);
const WIDER = { scopes: ["*"] };
const URIS = { redirect_uris: ["https://evil.example/"] };

const toClient =
  (settings: (as: TestCaller) => ClientSettings, method: string, ending = "", body?: object) =>
  async (as: TestCaller): Promise<Answer> => {
    const { clientId } = await addClient(db, {
      companyId: tenantOf(as),
      name: "Others",
      ...settings(as),
    });
    return call(as, method, `${clientsOf(as)}/${clientId}${ending}`, body);
  };

const wide = () => ({ grantTypes: ["authorization_code"] });
const narrow = () => ({ ...wide(), scopes: [NARROW] });
const trusted = () => ({ ...wide(), firstParty: true, scopes: [NARROW] });

const made = ({ clientId }: TestCaller) => ({
  ...narrow(),
  ...(clientId && { createdBy: clientId }),
});

const foreign = () => ({ ...wide(), companyId: p2.id });

const listing = (settings: (as: TestCaller) => ClientSettings) => async (as: TestCaller) => {
  const companyId = tenantOf(as);
  await db.delete(oauthClients).where(eq(oauthClients.name, "Others"));
  const { clientId } = await addClient(db, { companyId, name: "Others", ...settings(as) });
  return isListed(as, clientsOf(as), clientId);
};

const PATS = "/account/personal-access-tokens";

const listingToken = (scope: string) => async (as: TestCaller) => {
  const id = await addPat(as, scope);
  return isListed(as, PATS, id);
};

const deletingToken = (scope: string) => async (as: TestCaller) =>
  call(as, "DELETE", `${PATS}/${await addPat(as, scope)}`);

/**
 * Repeats a row for all levels. Impersonation exists only on the level of accounts; reset tokens are denied
 * everywhere.
 */
const every = (row: string) => [`${row}.-`, `${row}.-`, `${row}--`];

const ACT = "/partner/account-owner/token";
const SUBSCRIPTIONS = "/partner/webhooks";
const subscription = { label: "x", webhook_url: "http://127.0.0.1:9/", delivery_kind: "immediate" };

const toSubscription =
  (method: string, ending: string, body?: object) =>
  async (as: TestCaller): Promise<Answer> => {
    await deleteSubscriptions();
    const token = await api.login(p1.owner.email);
    const one = await api.call("POST", SUBSCRIPTIONS, { token, body: subscription });
    return call(as, method, `${SUBSCRIPTIONS}/${String(one.body["id"])}${ending}`, body);
  };

const newUser = (role: string, companyId: number) => (as: TestCaller) =>
  call(as, "POST", "/admin/users", {
    company_id: companyId,
    name: "made",
    role,
    email: `${fresh("made")}@p1.test`,
  });

const toUser = (ending: string) => async (as: TestCaller) => {
  const { id } = await userOf("partner");
  return call(as, "POST", `/admin/users/${id}/${ending}`, {});
};

const newConnection = () => ({
  company_id: p1.accounts[0].id,
  issuer: "https://idp.example",
  client_id: "x",
  client_secret: "secret",
  domains: [`${fresh("domain")}.test`],
});

const toConnection = (method: string, body?: object) => async (as: TestCaller) => {
  const domains = [`${fresh("domain")}.test`];
  const id = await addSsoConnection(db, { companyId: p1.accounts[0].id, domains });
  return call(as, method, `/admin/sso-connections/${id}`, body);
};

/** Links a new user of the partner, and unlinks it by the route of operators or of owners. */
const unlinking = (users: string) => async (as: TestCaller) => {
  const { id } = await userOf("partner");
  const domains = [`${fresh("domain")}.test`];
  const connectionId = await addSsoConnection(db, { companyId: p1.id, domains });
  const [row] = await db.sql`
    insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
    values ('https://idp.example', ${connectionId}, ${id}, ${connectionId}, now()) returning id`;
  return call(as, "DELETE", `${users}/${id}/identities/${row?.["id"]}`);
};

const OWN_ACCOUNT = { account_id: p1.accounts[0].id };
const FOREIGN_ACCOUNT = { account_id: p2.accounts[0].id };
const planId = (await db.select({ id: plans.id }).from(plans))[0]?.id;
const NOBODY: readonly string[] = [];

// The letters stand for own, narrow, dashboard, narrow-pat, third, narrow-third, acting, reset.
const ALL_SCOPES = "y-y---.-";

/** Allowed only to a user that signed in directly (contract 3.10). */
const PERSON = "y-----.-";

const BY_SCOPE = "yyyy--.-";

const toTeammate =
  (ending: string, body: object = {}, user = {}) =>
  async (as: TestCaller) => {
    const email = `${fresh("mate")}@p1.test`;
    const { id } = await addUser(db, { companyId: p1.id, role: "partner_admin", email, ...user });
    return call(as, "POST", `/partner/users/${id}/${ending}`, body);
  };

const OF_ACCOUNT = { companyId: p1.accounts[0].id, role: "account_user" } as const;
const ORIGINS = { origins: ["https://tools.example.com"] };

const teamToken = (kind: "api_pat" | "impersonation") => async (as: TestCaller) => {
  const userId = kind === "api_pat" ? p1.admin.id : p1.accounts[0].owner.id;
  const acting = { kind, userId, impersonatorId: p1.admin.id };
  const pat = { kind, userId, name: "others" };
  const token = await grant(kind === "api_pat" ? pat : acting);
  return call(as, "DELETE", `/partner/tokens/${String(decodeJwt(token).jti)}`);
};

/** Callers by level and kind that have been denied everything so far, so that they are as they were made. */
const unchanged = new Map<string, TestCaller | null>();

async function letterOf(level: Level, kind: CallerKind, attempt: Attempt): Promise<string> {
  const key = `${level} ${kind}`;
  const caller = unchanged.get(key) ?? (await callerOf(world, await userOf(level), kind));
  unchanged.set(key, caller);
  if (caller === null) return ".";
  const result = await attempt(caller);
  if (typeof result !== "boolean") expect(result.status).toBeLessThan(500);
  if (result === false || (result !== true && result.status >= 300)) return "-";
  unchanged.delete(key);
  return "y";
}

afterAll(() => world.stop());

type Level = (typeof LEVELS)[number];

type Attempt = (as: TestCaller) => Promise<Answer | boolean>;

async function userOf(level: Level): Promise<TestUser> {
  const email = `${fresh("caller")}@p1.test`;
  if (level === "platform")
    return addUser(db, { companyId: tenants.superAdmin.companyId, role: "super_admin", email });
  if (level === "partner") return addUser(db, { companyId: p1.id, role: "partner_owner", email });
  return addUser(db, { companyId: p1.accounts[0].id, role: "account_owner", email });
}

async function isListed(as: TestCaller, path: string, id: string): Promise<boolean> {
  const { status } = await call(as, "GET", path);
  if (status === 403) return false;
  return JSON.stringify(await everyPage(api, `${path}?limit=100`, as.token)).includes(id);
}

async function madeClient(as: TestCaller, body: object): Promise<Answer> {
  await db.delete(oauthClients).where(eq(oauthClients.name, "made"));
  const answer = await call(as, "POST", clientsOf(as), { name: "made", ...URIS, ...body });
  if (answer.status === 201 && as.kind.startsWith("narrow"))
    expect(answer.body["scopes"]).toEqual([NARROW]);
  return answer;
}

type ClientSettings = Parameters<typeof addClient>[1];

async function addPat(as: TestCaller, scope: string): Promise<string> {
  const token = await grant({ userId: as.user.id, kind: "api_pat", name: "mine", scope });
  return String(decodeJwt(token).jti);
}

async function deleteSubscriptions(): Promise<void> {
  const token = await api.login(p1.owner.email);
  const list = await api.call("GET", SUBSCRIPTIONS, { token });
  for (const { id } of list.body["data"] as { id: string }[])
    await api.call("DELETE", `${SUBSCRIPTIONS}/${id}`, { token });
}

type Row = readonly [title: string, rows: readonly string[], attempt: Attempt];
