import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { decodeJwt } from "jose";

import { purge, PURGE_MARGIN_MS } from "../../../src/auth/purge.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import type { Answer } from "../../support/api.ts";
import { untilSomebodyWaits } from "../../support/auth-races.ts";
import {
  addClient,
  authorizeParams,
  CALLBACK,
  credentialsOf,
  newPkce,
  obtainCode,
  postForm,
  type TestClient,
} from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

// A token ends together with the token that made it (contract 4.23).

describe("a token or link that was made by", () => {
  test.each(MAKERS)("%s ends with it at once, in another process too", async (_what, maker) => {
    const { token, revoke } = await maker();
    const children = [await open(token), await open(token), await impersonate(token)];
    const code = await link(token);
    expect(await both(children)).toEqual([200, 200, 200]);
    expect((await revoke()).status).toBeLessThan(300);
    expect(await both([token, ...children])).toEqual([401, 401, 401, 401]);
    expect((await redeem(code)).body["code"]).toBe("invalid_code");
    const [writing = ""] = children;
    const path = `/partner/webhooks/${subscription}`;
    expect((await post(writing, `${path}/secret`)).status).toBe(401);
    expect((await ask(writing, "PATCH", path, { webhook_url: "http://127.0.0.1:8/" })).status).toBe(
      401,
    );
  });

  test.each(MAKERS)("%s ends with it while last uses are stamped", async (_what, maker) => {
    const { token, revoke } = await maker();
    const used = [token, await open(token), await impersonate(token)];
    expect((await during(stampOf(used), revoke)).status).toBeLessThan(300);
    expect(await both(used)).toEqual([401, 401, 401]);
  });

  test("an operator's impersonation ends when the operator's token ends by logout", async () => {
    const operator = await api.login(tenants.superAdmin.email);
    const session = await open(operator, `/admin/partners/${p1.id}/portal-links`);
    expect(await statusOf(session)).toBe(200);
    await ask(operator, "GET", "/logout");
    expect(await statusOf(session)).toBe(401);
  });

  test("another sign-in of the same user stays valid, and so does a personal access token", async () => {
    const { user, token } = await signedIn();
    const second = await api.login(user.email);
    const { body } = await post(token, "/account/personal-access-tokens", { name: "job" });
    const pat = String(body["access_token"]);
    const kept = [await open(second), await impersonate(second), await open(pat)];
    const ended = await open(token);
    await ask(token, "GET", "/logout");
    expect(await both([ended, ...kept, pat])).toEqual([401, 200, 200, 200, 200]);
  });

  test("a revoked access token of an app that has refreshed since ends the token that followed", async () => {
    const one = await inApp();
    const children = [await open(one.access), await impersonate(one.access)];
    const { body } = await postForm(api, "/oauth/token", {
      ...credentialsOf(one.client),
      grant_type: "refresh_token",
      refresh_token: one.refresh,
    });
    expect(await both(children)).toEqual([200, 200]);
    await revokeInApp(one, String(body["access_token"]));
    expect(await both(children)).toEqual([401, 401]);
  });

  test("a token that another one made ends alone and leaves its maker as it is", async () => {
    const { token } = await signedIn();
    const [session, acting] = [await open(token), await impersonate(token)];
    await ask(session, "GET", "/logout");
    await ask(acting, "GET", "/logout");
    expect(await both([session, acting, token])).toEqual([401, 401, 200]);
  });

  test("the number of revoked tokens includes those that the session's tokens made", async () => {
    const { user, token } = await signedIn();
    await open(token);
    await impersonate(token);
    const { body } = await ask(token, "GET", "/account/sessions");
    const sessions = body["data"] as { id: string; is_current: boolean }[];
    const own = sessions.find(({ is_current }) => is_current);
    await ask(await api.login(user.email), "DELETE", `/account/sessions/${own?.id}`);
    const [row] = await database.db.sql<{ revoked: number }[]>`
      select (details->>'revoked')::int as revoked from audit_log
       where action = 'SESSION_REVOKED' and actor_id = ${user.id}`;
    expect(row?.revoked).toBe(3);
  });
});

describe("a token that made others and expires", () => {
  test("leaves them valid, stays in the table as long as they do, and still ends them when it is revoked", async () => {
    const one = await inApp();
    clock.advance(86_400_000 - 1_000);
    const children = [await open(one.access), await impersonate(one.access)];
    clock.advance(1_000 + PURGE_MARGIN_MS);
    await purge(api.deps, clock.now());
    expect(await both([one.access, ...children])).toEqual([401, 200, 200]);
    await revokeInApp(one, one.refresh);
    expect(await both(children)).toEqual([401, 401]);
  });

  test("is purged after the tokens that it made have ended", async () => {
    const { token } = await signedIn();
    clock.advance(86_400_000 - 1_000);
    await open(token);
    const left = async () => {
      await purge(api.deps, clock.now());
      const rows = await database.db.sql`
        select 1 from tokens where expires_at < ${clock.now()} - interval '2 minutes'`;
      return rows.length;
    };
    clock.advance(600_000);
    expect(await left()).toBe(1);
    clock.advance(3_600_000);
    await left();
    expect(await left()).toBe(0);
  });
});

describe("a token that is made while its maker is revoked", () => {
  const duringTheEnd = (token: string, work: () => Promise<Answer>) =>
    during((sql) => sql`delete from tokens where jti = ${jtiOf(token)}`, work);

  test("is rejected: an impersonation and a link with 401, a redeemed link with 400", async () => {
    const acting = await signedIn();
    const body = { account_id: account.id };
    const path = "/partner/account-owner/token";
    expect((await duringTheEnd(acting.token, () => post(acting.token, path, body))).status).toBe(
      401,
    );
    const linking = await signedIn();
    const pages = { pages: ["webhooks"] };
    const making = () => post(linking.token, "/partner/portal-links", pages);
    expect((await duringTheEnd(linking.token, making)).status).toBe(401);
    const opening = await signedIn();
    const code = await link(opening.token);
    const redeemed = await duringTheEnd(opening.token, () => redeem(code));
    expect([redeemed.status, redeemed.body["code"]]).toEqual([400, "invalid_code"]);
  });
});

interface Listed {
  readonly id: string;
  readonly kind: string;
  readonly user_id: number;
}

describe("DELETE /partner/tokens/{id}", () => {
  const listed = async (token: string, userId: number): Promise<Listed[]> => {
    const { body } = await ask(token, "GET", "/partner/tokens?limit=100");
    return (body["data"] as Listed[]).filter((one) => one.user_id === userId);
  };
  const end = (token: string, id: string) => ask(token, "DELETE", `/partner/tokens/${id}`);

  test("lets an admin end only the admin's own tokens", async () => {
    const [one, two] = [await signedIn(), await signedIn()];
    await impersonate(one.token);
    const [row] = await listed(one.token, one.user.id);
    const id = row?.id ?? "";
    expect((await end(two.token, id)).status).toBe(403);
    expect((await end(one.token, id)).status).toBe(204);
  });

  test("is 404 for a kind that is not listed", async () => {
    const { token } = await signedIn();
    const owner = await api.login(p1.owner.email);
    for (const id of [jtiOf(token), "none", "%00"]) expect((await end(owner, id)).status).toBe(404);
    expect(await statusOf(token)).toBe(200);
  });
});

const world = await startSignInWorld();
const { database, tenants, clock, api, other, freshUser } = world;
const [p1] = tenants.partners;

const ask = (token: string, method: string, path: string, body?: unknown) =>
  api.call(method, path, { token, body });

const post = (token: string, path: string, body: unknown = {}) => ask(token, "POST", path, body);
const jtiOf = (token: string) => decodeJwt(token).jti ?? "";

const revokeInApp = ({ client }: App, token: string) =>
  postForm(api, "/oauth/revoke", { ...credentialsOf(client), token });

const MAKERS: readonly [string, () => Promise<Maker>][] = [
  ["a login that logs out", () => login("/logout")],
  ["a login that revokes its token", () => login("/sso/revoking-token")],
  ["a personal access token of the API that is deleted", apiPat],
  ["the dashboard's personal access token that is deleted", () => dashboardPat("delete")],
  ["the dashboard's personal access token that is made anew", () => dashboardPat("regenerate")],
  ["an app whose access token is revoked", () => app("access")],
  ["an app whose refresh token is revoked", () => app("refresh")],
  ["an app whose session its user ends", () => app("session")],
  ["an app whose client is deleted", () => app("client")],
];

type Sql = typeof world.database.db.sql;

const account = p1.accounts[0];

let subscription = "";

beforeAll(async () => {
  const made = await post(await api.login(p1.owner.email), "/partner/webhooks", {
    label: "One",
    delivery_kind: "immediate",
    webhook_url: "http://127.0.0.1:9/x",
  });
  subscription = String(made.body["id"]);
});

afterAll(() => world.stop());

async function impersonate(token: string): Promise<string> {
  const made = await post(token, "/partner/account-owner/token", { account_id: account.id });
  expect(made.status).toBe(201);
  return String(made.body["access_token"]);
}

async function link(token: string, path = "/partner/portal-links"): Promise<string> {
  const made = await post(token, path, { pages: ["webhooks"], access: "write" });
  expect(made.status).toBe(201);
  return String(made.body["url"]);
}

function redeem(url: string): Promise<Answer> {
  const { pathname, hash } = new URL(url);
  const code = hash.slice("#code=".length);
  return api.call("POST", `${pathname}/session`, { body: { code } });
}

async function open(token: string, path?: string): Promise<string> {
  const session = await redeem(await link(token, path));
  expect(session.status).toBe(200);
  return String(session.body["token"]);
}

/** Asks the second process. */
const statusOf = async (token: string) =>
  (await other.call("GET", "/verify-token", { token })).status;

const both = (tokens: readonly string[]) => Promise.all(tokens.map(statusOf));

/** Runs `work` while a transaction has made `change` and not committed yet. Returns after both have ended. */
async function during<T>(
  change: (sql: Sql) => Promise<unknown>,
  work: () => Promise<T>,
): Promise<T> {
  const { db } = database;
  let working: Promise<T> | undefined;
  await db.transaction(async ({ sql }) => {
    await change(sql);
    working = work();
    await untilSomebodyWaits(db);
  });
  if (working === undefined) throw new Error("The work was not begun.");
  return working;
}

/** A token that may make others, and the ways to revoke it. */
interface Maker {
  readonly token: string;
  readonly revoke: () => Promise<Answer>;
}

async function signedIn(role: "partner_owner" | "partner_admin" = "partner_admin") {
  const user = await freshUser(role);
  return { user, token: await api.login(user.email) };
}

async function apiPat(): Promise<Maker> {
  const { token: own } = await signedIn();
  const { body } = await post(own, "/account/personal-access-tokens", { name: "one" });
  const { id } = fieldsOf(body["token"]);
  return {
    token: String(body["access_token"]),
    revoke: () => ask(own, "DELETE", `/account/personal-access-tokens/${String(id)}`),
  };
}

async function dashboardPat(ending: "delete" | "regenerate"): Promise<Maker> {
  const { token: own } = await signedIn();
  const { body } = await post(own, "/account/api-token");
  const revoke = () =>
    ending === "delete"
      ? ask(own, "DELETE", "/account/api-token")
      : post(own, "/account/api-token/regenerate");
  return { token: String(body["token"]), revoke };
}

interface App {
  readonly client: TestClient;
  readonly user: TestUser;
  readonly access: string;
  readonly refresh: string;
}

/** Signs a user in to a third-party app. */
async function inApp(): Promise<App> {
  const client = await addClient(database.db, { companyId: p1.id });
  const user = await freshUser();
  const pkce = newPkce();
  const code = await obtainCode(api, authorizeParams(client, pkce), user.email);
  const { body } = await postForm(api, "/oauth/token", {
    ...credentialsOf(client),
    grant_type: "authorization_code",
    code,
    redirect_uri: CALLBACK,
    code_verifier: pkce.verifier,
  });
  return {
    client,
    user,
    access: String(body["access_token"]),
    refresh: String(body["refresh_token"]),
  };
}

async function app(ending: "access" | "refresh" | "session" | "client"): Promise<Maker> {
  const one = await inApp();
  const revoke = async () => {
    if (ending === "access" || ending === "refresh") return revokeInApp(one, one[ending]);
    const own = await api.login(one.user.email);
    if (ending === "client") {
      const owner = await api.login(p1.owner.email);
      return ask(owner, "DELETE", `/partner/oauth-clients/${one.client.clientId}`);
    }
    const { body } = await ask(own, "GET", "/account/sessions");
    const session = (body["data"] as { id: string; client_id: string; method: string }[]).find(
      ({ client_id, method }) =>
        client_id === one.client.clientId && method === "authorization_code",
    );
    return ask(own, "DELETE", `/account/sessions/${session?.id}`);
  };
  return { token: one.access, revoke };
}

async function login(path: "/logout" | "/sso/revoking-token"): Promise<Maker> {
  const { token } = await signedIn();
  return { token, revoke: () => ask(token, "GET", path) };
}

const stampOf = (used: readonly string[]) => (sql: Sql) =>
  sql`update tokens set last_used_at = ${clock.now()} where jti = any(${used.map(jtiOf)})`;
