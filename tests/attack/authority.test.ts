import { afterAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { decodeJwt } from "jose";

import { oauthClients } from "../../db/schema/tokens.ts";
import { everyPage, type Answer } from "../support/api.ts";
import {
  CALLER_KINDS,
  callerOf,
  NARROW,
  type CallerKind,
  type TestCaller,
} from "../support/callers.ts";
import { addClient } from "../support/oauth.ts";
import { startSignInWorld } from "../support/sign-in.ts";
import { addUser, type TestUser } from "../support/tenants.ts";

/*
 * Authority only shrinks (contract 3.9). Every kind of caller tries the routes on which the answer depends on the object:
 * clients and personal access tokens. The other routes are in tests/integration/auth/in-person-matrix.test.ts. A row has
 * one letter per kind of caller, in the order of `CALLER_KINDS`: `y` the request succeeded, `-` it was denied, `.` no such
 * caller exists. The last letter, that of an integration, follows from the others.
 */

const LEVELS = ["platform", "partner", "account"] as const;

describe.each(LEVELS)("users of the %s level", (level) => {
  for (const [group, attempts] of Object.entries(ATTEMPTS))
    test.each(attempts)(`${group}: %s`, async (title, expected, attempt) => {
      let row = "";
      for (const kind of CALLER_KINDS) row += await letterOf(level, kind, attempt);
      const refused = level === "account" ? "--------" : "------.-";
      const ofPeople = expected[LEVELS.indexOf(level)] || refused;
      expect(row).toBe(ofPeople + ofIntegration(level, title, ofPeople));
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
const OWN_ACCOUNT = { account_id: p1.accounts[0].id };
const FOREIGN_ACCOUNT = { account_id: p2.accounts[0].id };
const NOBODY: readonly string[] = [];

// The letters stand for own, narrow, dashboard, narrow-pat, third, narrow-third, acting, reset.
const ALL_SCOPES = "y-y---.-";

/**
 * An integration, which only a partner has, may do what the dashboard's token of the owner may, except what a person
 * holds personally (contract 3.10).
 */
function ofIntegration(level: Level, title: string, ofPeople: string): string {
  if (level !== "partner") return ".";
  return title === "list sign-ins" ? "-" : ofPeople.charAt(CALLER_KINDS.indexOf("dashboard"));
}

/** Allowed only to a user that signed in directly (contract 3.10). */
const PERSON = "y-----.-";

const BY_SCOPE = "yyyy--.-";

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

type Row = readonly [title: string, rows: readonly string[], attempt: Attempt];

const ATTEMPTS: Readonly<Record<string, readonly Row[]>> = {
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
    ["replace the secret of a first-party one", [PERSON], toClient(trusted, "POST", "/secret", {})],
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
};
