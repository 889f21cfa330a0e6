import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

import { Events, OAuth2Server } from "oauth2-mock-server";
import { Provider } from "oidc-provider";
import type { Page } from "playwright-core";

import { BASE_PATH } from "../../src/http/access.ts";
import { answerOf, type Answer, type TestApi } from "./api.ts";

export const CLIENT = { id: "reviewrelay at the provider", secret: "a secret: with % and + signs" };

/** A user's browser: it keeps cookies per host and follows redirects until a given address. */
export class Browser {
  readonly #api: TestApi;
  readonly #cookies = new Map<string, Map<string, string>>();

  constructor(api: TestApi) {
    this.#api = api;
  }

  /** Sends one request with the cookies of its host, to the API in this process or to any other server. */
  async get(url: string, form?: Record<string, string>): Promise<Answer> {
    const { serverRoot } = this.#api.deps.config;
    const target = new URL(url);
    const jar = this.#jarOf(target.host);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = cookie === "" ? {} : { Cookie: cookie };
    const answer = url.startsWith(`${serverRoot}/`)
      ? await this.#api.call("GET", url.slice(serverRoot.length), { root: true, headers })
      : await answerOf(
          await fetch(url, {
            redirect: "manual",
            headers,
            ...(form && { method: "POST", body: new URLSearchParams(form) }),
          }),
        );
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return answer;
  }

  /** Follows redirects to the first address that `stop` accepts, and answers it without visiting it. */
  async follow(url: string, stop: (url: string) => boolean): Promise<string> {
    let place = url;
    for (let hops = 0; !stop(place); hops++) {
      if (hops > 20) throw new Error(`Too many redirects; the last was to ${place}`);
      const answer = await this.get(place);
      place = nextStep(answer, place);
    }
    return place;
  }

  setCookie(host: string, name: string, value: string): void {
    this.#jarOf(host).set(name, value);
  }

  #jarOf(host: string): Map<string, string> {
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    return jar;
  }
}

export function nextStep(answer: Answer, from: string): string {
  const location = answer.headers.get("location");
  if (location === null) throw new Error(`${from} was answered ${answer.status}: ${answer.text}`);
  return new URL(location, from).href;
}

/** Starts a loopback server with a given listener, for providers that fail below the OIDC protocol. */
export async function listenWith(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    issuer: `http://localhost:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Person {
  readonly email: string;
  readonly name?: string;
  readonly verified?: boolean;
}

/**
 * Starts a complete OIDC provider with its own sign-in pages. Users are identified by the login that they type.
 * `connectTo` makes the SSO connection first, because the provider must know its callback address.
 */
export async function startProvider(
  connectTo: (issuer: string) => Promise<string>,
  people: Readonly<Record<string, Person>>,
  { serverRoot = "http://localhost:3000" }: { serverRoot?: string } = {},
) {
  let listener: RequestListener = () => {};
  const server = await listenWith((request, response) => listener(request, response));
  const connection = await connectTo(server.issuer);
  const callback = `${serverRoot}${BASE_PATH}/auth/sso/callback/${connection}`;
  const provider = new Provider(server.issuer, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [callback] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    pkce: { required: () => true },
    cookies: { keys: ["a key of the test"] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        name: people[id]?.name,
        email: people[id]?.email,
        email_verified: people[id]?.verified ?? true,
      }),
    }),
  });
  const answerRequest = provider.callback();
  listener = (request, response) => void answerRequest(request, response);
  return { ...server, connection };
}

/** Signs in and consents at the provider's pages, and answers the address of our callback without visiting it. */
export async function signInAtProvider(browser: Browser, start: string, login: string) {
  const isEnd = (url: string) => url.includes(`${BASE_PATH}/auth/sso/callback/`);
  let place = await browser.follow(start, (url) => isEnd(url) || url.includes("/interaction/"));
  for (const prompt of ["login", "consent"]) {
    if (isEnd(place)) break;
    const form = { prompt, login, password: "any" };
    const answer = await browser.get(place, form);
    place = await browser.follow(
      nextStep(answer, place),
      (url) => isEnd(url) || url.includes("/interaction/"),
    );
  }
  return place;
}

/**
 * Signs in at a connection. Returns the one-time code, or the reason of the refusal from the audit log. `login` names the
 * person at a provider with sign-in pages; any other provider names the person itself.
 */
export async function codeOrReason(
  api: TestApi,
  connection: string,
  login?: string,
): Promise<string> {
  const { config, db } = api.deps;
  const browser = new Browser(api);
  const start = `${config.serverRoot}${BASE_PATH}/auth/sso/redirect?connection=${connection}`;
  const callback =
    login === undefined
      ? await browser.follow(start, (url) => url.includes("/sso/callback/"))
      : await signInAtProvider(browser, start, login);
  const { searchParams } = new URL(nextStep(await browser.get(callback), callback));
  const code = searchParams.get("code");
  if (code !== null) return code;
  const [row] = await db.sql<{ reason: string }[]>`
    select details ->> 'reason' as reason from audit_log
     where action = 'SSO_REFUSED' order by id desc limit 1`;
  return row?.reason ?? "";
}

/**
 * Completes an SSO flow with the cookies of a real browser page that is already at the provider. Answers the address at
 * which the flow ends, without visiting it.
 */
export async function endOfTrip(page: Page, login: string, isEnd: (url: string) => boolean) {
  let place = page.url();
  for (const prompt of ["login", "consent"]) {
    let answer = await page.request.post(place, {
      form: { prompt, login, password: "any" },
      maxRedirects: 0,
    });
    for (;;) {
      place = new URL(answer.headers()["location"] ?? "", place).href;
      if (isEnd(place)) return new URL(place);
      if (place.includes("/interaction/")) break;
      answer = await page.request.get(place, { maxRedirects: 0 });
    }
  }
  throw new Error(`The SSO flow did not end; its last address was ${place}`);
}

export type Claims = Record<string, unknown>;

/**
 * A provider that misbehaves as a test demands: each hook changes one of its answers, and may be replaced between
 * sign-ins.
 */
export class HostileProvider {
  /** Changes the id_token before it is signed. */
  onIdToken: (payload: Claims, header: Claims) => void = () => {};
  /** Changes the response of the token endpoint, after the `id_token` was signed. */
  onTokenAnswer: (body: Claims) => void = () => {};
  onDiscovery: (document: Claims) => void = () => {};
  onCallback: (url: URL) => void = () => {};
  /** Changes the body or the status of userinfo. */
  onUserinfo: (body: Claims, answer: { statusCode: number }) => void = () => {};
  readonly #server: OAuth2Server;

  private constructor(server: OAuth2Server) {
    this.#server = server;
    server.service.on(Events.BeforeTokenSigning, (token: { payload: Claims; header: Claims }) => {
      // Only ID tokens have an audience in this library; access tokens are left unchanged.
      if (token.payload["aud"] !== undefined) this.onIdToken(token.payload, token.header);
    });
    server.service.on(Events.BeforeResponse, (answer: { body: Claims }) =>
      this.onTokenAnswer(answer.body),
    );
    server.service.on(Events.BeforeUserinfo, (answer: { body: Claims; statusCode: number }) =>
      this.onUserinfo(answer.body, answer),
    );
    server.service.on(Events.BeforeAuthorizeRedirect, ({ url }: { url: URL }) =>
      this.onCallback(url),
    );
    server.service.on(Events.BeforeWellKnownOpenIdConfiguration, ({ body }: { body: Claims }) => {
      body["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
      this.onDiscovery(body);
    });
  }

  static async start(): Promise<HostileProvider> {
    const server = new OAuth2Server();
    await server.issuer.keys.generate("RS256");
    await server.start(0, "localhost");
    return new HostileProvider(server);
  }

  get issuer(): string {
    return this.#server.issuer.url ?? "";
  }

  get keys() {
    return this.#server.issuer.keys;
  }

  reset(): void {
    this.onIdToken = () => {};
    this.onTokenAnswer = () => {};
    this.onDiscovery = () => {};
    this.onCallback = () => {};
    this.onUserinfo = () => {};
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }
}

/** Creates the SSO connection of a company through the API; answers its id. */
export async function connect(
  api: TestApi,
  token: string,
  connection: { company_id: number; issuer: string; domains: string[] } & Record<string, unknown>,
): Promise<string> {
  const body = { client_id: CLIENT.id, client_secret: CLIENT.secret, ...connection };
  const answer = await api.call("POST", "/admin/sso-connections", { token, body });
  if (answer.status !== 201) throw new Error(answer.text);
  return String(answer.body["id"]);
}
