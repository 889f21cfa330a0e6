import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import { Strategy } from "passport-oauth2";
import { AuthorizationCode } from "simple-oauth2";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { addClient, Browser, CALLBACK, type TestClient } from "../../support/oauth.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser, type TestUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

// Tests popular client libraries against a server that listens on a port.

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

describe("openid-client", () => {
  const discover = (as: TestClient, method?: openid.ClientAuth) =>
    openid.discovery(new URL(root), as.clientId, undefined, method, {
      algorithm: "oauth2",
      execute: [openid.allowInsecureRequests],
    });

  test.each(["client_secret_post", "client_secret_basic", "none"])(
    "signs in, refreshes, revokes, and fails at a second use, with %s",
    async (method) => {
      const isPublic = method === "none";
      const as = isPublic ? await addClient(database.db, { confidential: false }) : client;
      const auth = {
        client_secret_post: openid.ClientSecretPost(as.secret),
        client_secret_basic: openid.ClientSecretBasic(as.secret),
        none: openid.None(),
      }[method];
      const config = await discover(as, auth);
      const verifier = openid.randomPKCECodeVerifier();
      const state = openid.randomState();
      const url = openid.buildAuthorizationUrl(config, {
        redirect_uri: CALLBACK,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
      });
      const back = await walk(url.href);
      const checks = { pkceCodeVerifier: verifier, expectedState: state };
      const tokens = await openid.authorizationCodeGrant(config, back, checks);
      expect(await whoHas(tokens.access_token)).toBe(user.email);
      const next = await openid.refreshTokenGrant(config, tokens.refresh_token ?? "");
      expect(await whoHas(next.access_token)).toBe(user.email);
      if (!isPublic) {
        const told = await openid.tokenIntrospection(config, next.access_token);
        expect(told).toMatchObject({ active: true, sub: String(user.id) });
      }
      await openid.tokenRevocation(config, next.refresh_token ?? "");
      expect(await whoHas(next.access_token)).toBe(401);
      const second = openid.authorizationCodeGrant(config, back, checks);
      await expect(second).rejects.toMatchObject({ error: "invalid_grant", status: 400 });
    },
  );

  test("gets tokens with the password grant, and an error for a wrong password", async () => {
    const config = await discover(trusted, openid.ClientSecretPost(trusted.secret));
    const form = { username: user.email, password: PASSWORD, scope: "reviews:read" };
    const tokens = await openid.genericGrantRequest(config, "password", form);
    expect(tokens.scope).toBe("reviews:read");
    const wrong = { ...form, password: "wrong" };
    await expect(openid.genericGrantRequest(config, "password", wrong)).rejects.toMatchObject({
      error: "invalid_grant",
    });
  });
});

describe("oauth4webapi", () => {
  const insecure = { [oauth.allowInsecureRequests]: true };
  const discover = async () => {
    const issuer = new URL(root);
    const response = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
    return oauth.processDiscoveryResponse(issuer, response);
  };

  test("reads the metadata, signs in, and accepts the JWT access token", async () => {
    const server = await discover();
    expect(server.code_challenge_methods_supported).toEqual(["S256"]);
    expect(server.authorization_response_iss_parameter_supported).toBe(true);
    const self: oauth.Client = { client_id: client.clientId };
    const auth = oauth.ClientSecretBasic(client.secret);
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(server.authorization_endpoint ?? "");
    url.search = new URLSearchParams({
      client_id: client.clientId,
      response_type: "code",
      redirect_uri: CALLBACK,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      state,
    }).toString();
    const params = oauth.validateAuthResponse(server, self, await walk(url.href), state);
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      self,
      auth,
      params,
      CALLBACK,
      verifier,
      insecure,
    );
    const tokens = await oauth.processAuthorizationCodeResponse(server, self, response);
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    const claims = await oauth.validateJwtAccessToken(
      server,
      new Request(`${root}/api/v1/verify-token`, { headers }),
      `${root}/api`,
      insecure,
    );
    expect(claims).toMatchObject({ sub: String(user.id), client_id: client.clientId, scope: "*" });

    const told = await oauth.processIntrospectionResponse(
      server,
      self,
      await oauth.introspectionRequest(server, self, auth, tokens.access_token, insecure),
    );
    expect(told.active).toBe(true);
    const next = await oauth.processRefreshTokenResponse(
      server,
      self,
      await oauth.refreshTokenGrantRequest(
        server,
        self,
        auth,
        tokens.refresh_token ?? "",
        insecure,
      ),
    );
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, self, auth, next.access_token, insecure),
    );
    expect(await whoHas(next.access_token)).toBe(401);
  });
});

describe("simple-oauth2", () => {
  const settings = (as = client) => ({ client: { id: as.clientId, secret: as.secret } });
  const places = () => ({
    tokenHost: root,
    tokenPath: "/oauth/token",
    revokePath: "/oauth/revoke",
  });

  test.each(["header", "body"] as const)(
    "signs in, refreshes and revokes with its credentials in the %s",
    async (authorizationMethod) => {
      const flow = new AuthorizationCode({
        ...settings(),
        auth: { ...places(), authorizePath: "/oauth/authorize" },
        options: { authorizationMethod },
      });
      const url = flow.authorizeURL({ redirect_uri: CALLBACK, scope: "reviews:read", state: "s" });
      const code = (await walk(url)).searchParams.get("code") ?? "";
      const tokens = await flow.getToken({ code, redirect_uri: CALLBACK });
      expect(await whoHas(tokens.token["access_token"])).toBe(user.email);
      const next = await tokens.refresh();
      expect(await whoHas(next.token["access_token"])).toBe(user.email);
      await next.revokeAll();
      expect(await whoHas(next.token["access_token"])).toBe(401);
    },
  );
});

describe("passport-oauth2", () => {
  type Outcome = { redirect?: string; user?: unknown; failure?: unknown };

  /** Sends one request through the strategy, as passport's middleware does. */
  function pass(strategy: Strategy, request: object): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const one = Object.assign(Object.create(strategy) as Strategy, {
        redirect: (redirect: string) => resolve({ redirect }),
        success: (signedIn: unknown) => resolve({ user: signedIn }),
        fail: (failure: unknown) => resolve({ failure }),
        error: reject,
      });
      one.authenticate(request as Parameters<Strategy["authenticate"]>[0]);
    });
  }

  test("signs in with state and PKCE", async () => {
    const strategy = new Strategy(
      {
        authorizationURL: `${root}/oauth/authorize`,
        tokenURL: `${root}/oauth/token`,
        clientID: client.clientId,
        clientSecret: client.secret,
        callbackURL: CALLBACK,
        state: true,
        pkce: true,
      },
      (
        accessToken: string,
        refreshToken: string,
        _profile: unknown,
        done: (error: unknown, user?: Express.User) => void,
      ) => done(null, { accessToken, refreshToken }),
    );
    strategy.userProfile = (_token, done) => done(null, {});
    const session = {};
    const { redirect } = await pass(strategy, { session, query: {} });
    const back = await walk(redirect ?? "");
    const query = Object.fromEntries(back.searchParams);
    const { user: signedIn } = await pass(strategy, { session, query });
    expect(await whoHas((signedIn as { accessToken: string }).accessToken)).toBe(user.email);
  });
});

let root: string;
let client: TestClient;

let api: TestApi;

/** A first-party client, which may handle passwords. */
let trusted: TestClient;

let user: TestUser;

beforeAll(async () => {
  const port = await freePort();
  api = await startApi({
    db: database.db,
    config: { serverRoot: `http://127.0.0.1:${port}` },
  });
  root = api.listen(port);
  client = await addClient(database.db);
  trusted = await addClient(database.db, { firstParty: true });
  user = await addUser(database.db, {
    companyId: tenants.partners[0].id,
    role: "partner_owner",
    email: "third-party@p1.test",
  });
});

afterAll(async () => {
  await api.stop();
});

/** Acts as the user between the client's two URLs: signs in and consents. */
async function walk(authorizationUrl: string): Promise<URL> {
  const url = new URL(authorizationUrl);
  expect(`${url.origin}${url.pathname}`).toBe(`${root}/oauth/authorize`);
  const browser = new Browser(api);
  await browser.open(url.search.slice(1));
  await browser.signIn(user.email);
  const { headers } = await browser.submit({ action: "allow" });
  return new URL(headers.get("location") ?? "");
}

async function whoHas(token: unknown): Promise<unknown> {
  const headers = { Authorization: `Bearer ${String(token)}` };
  const response = await fetch(`${root}/api/v1/verify-token`, { headers });
  const body = (await response.json()) as { user?: { email?: string } };
  return response.status === 200 ? body.user?.email : response.status;
}
