import { createHash, randomBytes, randomUUID } from "node:crypto";

import type { RawDb } from "../../db/client.ts";
import { oauthClients } from "../../db/schema/tokens.ts";
import { hashSecret, newSecret } from "../../src/lib/secrets.ts";
import { PASSWORD, type Answer, type TestApi } from "./api.ts";

export const CALLBACK = "https://app.example/callback";

export interface TestClient {
  readonly clientId: string;
  readonly secret: string;
}

interface ClientSettings {
  readonly companyId?: number | null;
  readonly confidential?: boolean;
  readonly firstParty?: boolean;
  readonly redirectUris?: string[];
  readonly scopes?: string[];
  readonly grantTypes?: string[];
  readonly name?: string;
  readonly createdBy?: string;
}

/**
 * Inserts an OAuth client. By default it is confidential, belongs to the platform, and has all scopes and grant
 * types.
 */
export async function addClient(db: RawDb, settings: ClientSettings = {}): Promise<TestClient> {
  const { confidential = true, firstParty = false } = settings;
  const client = { clientId: randomUUID(), secret: newSecret() };
  const at = new Date("2026-06-01T12:00:00Z");
  await db.insert(oauthClients).values({
    clientId: client.clientId,
    companyId: settings.companyId ?? null,
    name: settings.name ?? "A client",
    secretHash: confidential ? hashSecret(client.secret) : null,
    confidential,
    firstParty,
    requirePkce: false,
    redirectUris: settings.redirectUris ?? [CALLBACK],
    scopes: settings.scopes ?? ["*"],
    grantTypes: settings.grantTypes ?? ["password", "refresh_token", "authorization_code"],
    createdBy: settings.createdBy ?? null,
    createdAt: at,
    updatedAt: at,
  });
  return client;
}

export type Form = Readonly<Record<string, string | undefined>>;

export function formOf(fields: Form): string {
  const given = Object.entries(fields).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
}

const FORM = { "Content-Type": "application/x-www-form-urlencoded" };

/** Posts a form below `{server_root}`. Text is sent unchanged, so that it may be malformed. */
export function postForm(
  api: TestApi,
  path: string,
  form: Form | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const body = typeof form === "string" ? form : formOf(form);
  return api.call("POST", path, { root: true, body, headers: { ...FORM, ...headers } });
}

export const credentialsOf = ({ clientId, secret }: TestClient) => ({
  client_id: clientId,
  client_secret: secret,
});

export function basicOf({ clientId, secret }: TestClient): { Authorization: string } {
  return { Authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString("base64")}` };
}

export interface Pkce {
  readonly verifier: string;
  readonly challenge: string;
}

export function newPkce(): Pkce {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

/**
 * A browser at the authorize page: it keeps the cookie and the ticket of the last page, and submits one form at a
 * time.
 */
export class Browser {
  readonly #api: TestApi;
  readonly #origin: string;
  cookie: string | undefined;
  ticket: string | undefined;

  constructor(api: TestApi) {
    this.#api = api;
    this.#origin = api.deps.config.serverRoot;
  }

  async open(params: Form | string): Promise<Answer> {
    const query = typeof params === "string" ? params : formOf(params);
    const headers = { ...(this.cookie !== undefined && { Cookie: this.cookie }) };
    return this.#keep(
      await this.#api.call("GET", `/oauth/authorize?${query}`, { root: true, headers }),
    );
  }

  async submit(fields: Form, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const cookie = this.cookie === undefined ? {} : { Cookie: this.cookie };
    const all = { Origin: this.#origin, ...cookie, ...headers };
    const form = { ticket: this.ticket, ...fields };
    return this.#keep(await postForm(this.#api, "/oauth/authorize", form, all));
  }

  signIn(email: string, password = PASSWORD): Promise<Answer> {
    return this.submit({ action: "sign_in", email, password });
  }

  #keep(answer: Answer): Answer {
    const cookie = answer.headers.get("set-cookie")?.split(";")[0];
    if (cookie !== undefined) this.cookie = cookie;
    const ticket = /name="ticket" value="([^"]+)"/.exec(answer.text)?.[1];
    if (ticket !== undefined) this.ticket = ticket;
    return answer;
  }
}

/** Splits the redirect of an answer into its address and its parameters; throws if the answer is no redirect. */
export function returned(answer: Answer): { place: string; params: Record<string, string> } {
  const location = answer.headers.get("location");
  if (location === null) throw new Error(`The answer was no redirect: ${answer.status}.`);
  const [place = "", query = ""] = location.split("?");
  return { place, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Builds the parameters of an authorization request with PKCE. */
export function authorizeParams(client: TestClient, pkce: Pkce, more: Form = {}): Form {
  return {
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: CALLBACK,
    state: "state-1",
    code_challenge: pkce.challenge,
    code_challenge_method: "S256",
    ...more,
  };
}

/** Signs a user in at the authorize page, allows the client if asked, and answers the authorization code. */
export async function obtainCode(api: TestApi, params: Form, email: string): Promise<string> {
  const browser = new Browser(api);
  await browser.open(params);
  const signedIn = await browser.signIn(email);
  const answer = signedIn.status === 303 ? signedIn : await browser.submit({ action: "allow" });
  const { code } = returned(answer).params;
  if (code === undefined) throw new Error(`There is no code: ${answer.headers.get("location")}`);
  return code;
}
