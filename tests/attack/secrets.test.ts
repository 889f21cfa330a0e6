// No secret is in a log, an error or a column, except where the contract has its hash or its sealed form. Both processes log
// at their most detailed level while users go every way that gives out a secret, with mistakes on the way.
import { beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { hashSecret } from "../../src/lib/secrets.ts";
import { PASSWORD } from "../support/api.ts";
import { createTestSchedule } from "../support/dispatch.ts";
import { appCode } from "../support/factors.ts";
import { fixture } from "../support/fixture.ts";
import { MailServer } from "../support/network/mail-server.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { placesOf } from "../support/texts.ts";

test("the logs of both processes have no secret, and do have the requests", () => {
  const logs = attacked.api.said + dispatcher.log;
  for (const event of ["request.answered", "attempt.finished", '"level":"debug"', "mail.attempted"])
    expect(logs).toContain(event);
  expect(namesIn(logs)).toEqual([]);
});

test("the columns have each secret sealed or hashed, and none as it is", async () => {
  expect(secrets.size).toBeGreaterThan(30);
  const { db } = attacked.database;
  const box = createSecretBox({ current: masterKey });
  const names = new Map([...secrets].map(([name, value]) => [value.toLowerCase(), name]));
  const places = (await placesOf(db, box, [...secrets.values()])).map((place) => {
    const [column = "", value = ""] = place.split(/: (.*)/s);
    return `${column}: ${names.get(value)}`;
  });
  expect(places.filter((place) => !place.includes("(sealed)"))).toEqual([]);
  // These show that the search finds what is there.
  expect(places).toEqual(
    expect.arrayContaining([
      "keyed_requests.sealed_response (sealed): client secret",
      "second_factors.sealed_secret (sealed): secret of the app",
      "tokens.sealed_token (sealed): personal access token of the dashboard",
      "webhook_subscriptions.sealed_headers (sealed): value of an own header",
      "webhook_subscriptions.sealed_secret (sealed): rotated webhook secret",
      "webhook_subscriptions.sealed_previous_secret (sealed): webhook secret",

      "sso_connections.sealed_client_secret (sealed): secret at the identity provider",
    ]),
  );
  const hash = hashSecret(secrets.get("rotated client secret") ?? "");
  expect(await placesOf(db, box, [hash])).toEqual([`oauth_clients.secret_hash: ${hash}`]);
});

const masterKey = randomBytes(32);
const settings = { MASTER_KEY: masterKey.toString("base64"), LOG_LEVEL: "debug" };
const schedule = fixture(createTestSchedule);
const mailServer = fixture(() => MailServer.start());
const receiver = fixture(() => Receiver.start((_, count) => (count === 0 ? 500 : 200)));
const stores = () => ({
  REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
  REDIS_PREFIX: schedule.prefix,
});
const attacked = fixture(async () => {
  const port = String(await freePort());
  return startAttackedApi({
    ...settings,
    ...stores(),
    SERVER_ROOT: `http://127.0.0.1:${port}`,
    SECURITY_MAILS: "on",
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  });
});
const dispatcher = fixture(async () => {
  const one = new DispatcherProcess({
    ...settings,
    ...stores(),
    DATABASE_URL: attacked.database.url,
    SMTP_URL: mailServer.url,
  });
  one.start();
  return one;
});

/** The secrets that were given out or sent, by name. */
const secrets = new Map<string, string>();
/** The bodies of all errors. */
const errors: string[] = [];

beforeAll(async () => {
  keep("master key", settings.MASTER_KEY);
  keep("master key in hex", masterKey.toString("hex"));
  keep("password", PASSWORD);
  const { partners, superAdmin } = attacked.tenants;
  const owner = await signIn(partners[0].owner.email);
  await makeTokens(owner);
  await makeWebhook(owner);
  await openPortal(owner);
  await useFactors(partners[0].admin.email);
  await resetPassword(partners[1].owner.email);
  const root = await signIn(superAdmin.email);
  await useClient(root, partners[1].admin.email);
  await makeSecretsOfPlatform(root, partners[0].id);
  await invite(root, partners[0].id);
  await err(owner);
}, 120_000);

test("the bodies of errors have no secret", () => {
  expect(errors.length).toBeGreaterThan(20);
  expect(namesIn(errors.join("\n"))).toEqual([]);
});

/** Keeps a secret. Of a token only the signature is secret, because its payload is stored as a row. */
function keep(name: string, value: unknown): string {
  if (typeof value !== "string" || value === "") throw new Error(`There is no ${name}.`);
  secrets.set(name, value.startsWith("ey") ? (value.split(".")[2] ?? value) : value);
  return value;
}

const namesIn = (text: string): string[] => {
  const lower = text.toLowerCase();
  return [...secrets]
    .filter(([, value]) => lower.includes(value.toLowerCase()))
    .map(([name]) => name);
};

type Json = Readonly<Record<string, unknown>>;

interface Sent {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request below `{base_url}`, or to an `/oauth` path at the root, and keeps the body of an error. */
async function call(method: string, path: string, { token, body, headers }: Sent = {}) {
  const isForm = path.startsWith("/oauth");
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${attacked.api.root}${isForm ? "" : BASE_PATH}${path}`, {
    method,
    headers: {
      "Content-Type": `application/${isForm ? "x-www-form-urlencoded" : "json"}`,
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { body: text }),
  });
  const said = await response.text();
  if (!response.ok) errors.push(said);
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  const json: Json = isJson && said !== "" ? JSON.parse(said) : {};
  return { status: response.status, headers: response.headers, body: json };
}

/** Sends a request that has to succeed. */
async function make(method: string, path: string, sent: Sent = {}): Promise<Json> {
  const { status, body } = await call(method, path, sent);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
  return body;
}

async function signIn(email: string): Promise<string> {
  const headers = { "Sec-Fetch-Site": "same-origin" };
  const answer = await call("POST", "/login", { body: { email, password: PASSWORD }, headers });
  const cookie = /rr_browser=([^;]+)/.exec(answer.headers.get("set-cookie") ?? "")?.[1];
  keep(`cookie of ${email}`, cookie);
  return keep(`session of ${email}`, answer.body["token"]);
}

async function makeTokens(token: string): Promise<void> {
  const ofApi = { token, body: { name: "A token" } };
  const made = await make("POST", "/account/personal-access-tokens", ofApi);
  keep("personal access token of the API", made["access_token"]);
  const { token: first } = await make("POST", "/account/api-token", { token });
  keep("first personal access token of the dashboard", first);
  const { token: second } = await make("POST", "/account/api-token/regenerate", { token });
  await make("GET", "/partner/webhooks", {
    token: keep("personal access token of the dashboard", second),
  });
  expect((await call("GET", "/partner/webhooks", { token: String(first) })).status).toBe(401);
  const machine = { token, body: { name: "Machine", scopes: ["webhooks:read"] } };
  const { id } = await make("POST", "/partner/integrations", machine);
  const ofMachine = await make("POST", `/partner/integrations/${String(id)}/api-token`, { token });
  keep("token of an integration", ofMachine["token"]);
}

async function makeWebhook(token: string): Promise<void> {
  const headers = {
    "X-Api-Key": keep("value of an own header", randomBytes(16).toString("hex")),
    Authorization: keep(
      "value of a second own header",
      `Bearer ${randomBytes(16).toString("hex")}`,
    ),
  };
  const body = { label: "Hook", webhook_url: receiver.url, delivery_kind: "immediate", headers };
  const { id, secret } = await make("POST", "/partner/webhooks", { token, body });
  keep("webhook secret", secret);
  const path = `/partner/webhooks/${String(id)}`;
  const shown = await make("POST", `${path}/secret`, { token });
  for (const [name, value] of Object.entries(shown))
    if (String(value).startsWith("whsec_")) keep(`webhook secret as ${name}`, value);
  await make("POST", `${path}/test`, { token });
  await until("the failed delivery", () => receiver.received.length > 0);
  const rotated = await make("POST", `${path}/rotate-secret`, {
    token,
    body: { grace_period_hours: 1 },
  });
  keep("rotated webhook secret", rotated["secret"]);
}

async function openPortal(token: string): Promise<void> {
  const { url } = await make("POST", "/partner/portal-links", {
    token,
    body: { pages: ["webhooks"] },
  });
  const { pathname, hash } = new URL(String(url));
  const code = keep("code of a portal link", hash.replace(/^#code=/, ""));
  const { token: session } = await make("POST", `${pathname}/session`, { body: { code } });
  await make("GET", "/partner/webhooks", { token: keep("portal session", session) });
  await call("POST", `${pathname}/session`, { body: { code } });
  await call("GET", `${pathname}/session?code=${code}`);
}

async function useFactors(email: string): Promise<void> {
  const token = await signIn(email);
  const { secret, uri } = await make("POST", "/account/second-factors/totp", { token });
  keep("secret of the app", secret);
  keep("URI of the app", uri);
  const first = { code: appCode(String(secret), systemClock) };
  const added = await make("POST", "/account/second-factors/totp/confirm", { token, body: first });
  const codes = added["recovery_codes"];
  if (!Array.isArray(codes)) throw new Error("There are no recovery codes.");
  for (const [nth, code] of codes.map(String).entries()) {
    keep(`recovery code ${nth}`, code);
    keep(`recovery code ${nth} without hyphens`, code.replaceAll("-", ""));
  }
  const { body } = await call("POST", "/login", { body: { email, password: PASSWORD } });
  // A 401 gives out this token, so it is no secret of the error that has it.
  const { challenge_token } = fieldsOf(errors.pop() && body["second_factor"]);
  const challenge = keep("challenge token", challenge_token);
  for (const proof of [
    { recovery_code: codes[0], code: "12" },
    { recovery_code: `${codes[1]}x` },
    { passkey: codes[2] },
  ])
    await call("POST", "/login/second-factor", { token: challenge, body: proof });
  const proof = { token: challenge, body: { recovery_code: codes[0] } };
  keep(
    "session after a recovery code",
    (await make("POST", "/login/second-factor", proof))["token"],
  );
  await call("POST", "/login/second-factor", proof);
}

async function resetPassword(email: string): Promise<void> {
  await make("POST", "/email-otp/resend", { body: { email, type: "forgot_password" } });
  const otp = keep("mailed code", await mailed(email, /^ {4}(\d{6})$/m));
  // Six digits are in many numbers, so only the code as a text is searched for.
  secrets.set("mailed code", `"${otp}"`);
  const type = "forgot_password";
  await call("POST", "/email-otp/verify", { body: { email, otp, type: "signup" } });
  const { token } = await make("POST", "/email-otp/verify", { body: { email, otp, type } });
  keep("reset token", token);
  const password = keep("new password", "quite another fine horse 7");
  await call("POST", "/reset-password", {
    token: String(token),
    body: { password, again: password },
  });
  const done = await make("POST", "/reset-password", { token: String(token), body: { password } });
  keep("session after the reset", done["token"]);
  await call("POST", "/reset-password", { token: String(token), body: { password } });
}

async function useClient(token: string, username: string): Promise<void> {
  const body = {
    name: "A server",
    first_party: true,
    grant_types: ["password", "refresh_token"],
  };
  const headers = { "Idempotency-Key": "one-client" };
  const made = await make("POST", "/sso/clients", { token, body, headers });
  const id = String(made["client_id"]);
  const secret = keep("client secret", made["client_secret"]);
  const basic = keep("client secret by Basic", Buffer.from(`${id}:${secret}`).toString("base64"));
  const ask = (form: Record<string, string>, more: Record<string, string> = {}) =>
    call("POST", "/oauth/token", {
      body: new URLSearchParams({ client_id: id, client_secret: secret, ...form }).toString(),
      headers: more,
    });
  const granted = await ask({ grant_type: "password", username, password: PASSWORD });
  keep("access token", granted.body["access_token"]);
  const refresh = keep("refresh token", granted.body["refresh_token"]);
  const form = { grant_type: "refresh_token", refresh_token: refresh };
  const refreshed = await ask(form);
  keep("second access token", refreshed.body["access_token"]);
  keep("second refresh token", refreshed.body["refresh_token"]);
  await ask(form);
  await ask({ grant_type: "password", username, password: `${PASSWORD}!` });
  await ask({ ...form, client_secret: `${secret}0` });
  await ask({ ...form, scope: secret });
  await ask({ grant_type: secret });
  await ask(form, { Authorization: `Basic ${basic}` });
  const rotated = await make("POST", `/sso/clients/${id}/secret`, { token });
  keep("rotated client secret", rotated["client_secret"]);
}

async function makeSecretsOfPlatform(token: string, partnerId: number): Promise<void> {
  const service = { name: "Bot", scopes: ["actions:write"] };
  const { id } = await make("POST", "/admin/services", { token, body: service });
  const path = `/admin/services/${String(id)}/tokens`;
  const expires_at = new Date(systemClock.now().getTime() + 86_400_000).toISOString();
  const ofService = await make("POST", path, { token, body: { name: "one", expires_at } });
  keep("service token", ofService["access_token"]);
  const connection = {
    company_id: partnerId,
    issuer: "https://idp.example",
    client_id: "us",
    client_secret: keep("secret at the identity provider", randomBytes(16).toString("hex")),
    domains: ["idp.example"],
  };
  await call("POST", "/admin/sso-connections", { token, body: { ...connection, issuer: "idp" } });
  await make("POST", "/admin/sso-connections", { token, body: connection });
  const set = { token, body: { url: receiver.url } };
  keep("secret of the audit webhook", (await make("PUT", "/admin/audit-webhook", set))["secret"]);
}

async function invite(token: string, companyId: number): Promise<void> {
  const email = "invited@p1.test";
  const body = { email, name: "Ida", role: "partner_admin", company_id: companyId };
  await make("POST", "/admin/users", { token, body });
  const code = keep("code of an invitation", await mailed(email, /#invitation=([0-9a-f]{64})/));
  await call("POST", "/auth/invitation", { body: { code, password: "short" } });
  const done = await make("POST", "/auth/invitation", { body: { code, password: PASSWORD } });
  keep("session after the invitation", done["token"]);
  await call("POST", "/auth/invitation", { body: { code, password: PASSWORD } });
}

/** Sends every secret where it does not belong: in addresses, as names of fields, as wrong values and as malformed JSON. */
async function err(token: string): Promise<void> {
  for (const value of new Set(secrets.values())) {
    const written = encodeURIComponent(value);
    await call("GET", `/partner/webhooks/${written}?token=${written}`, { token });
    await call("POST", "/login", { body: { email: value, password: [value], [value]: value } });
    await call("POST", "/login", { body: `{"password":"${value}` });
    await call("GET", `/auth/sso/exchange?code=${written}`);
    await call("GET", `/oauth/authorize?client_id=${written}&state=${written}&scope=${written}`);
    if (/^[\w-]+$/.test(value)) await call("GET", "/verify-token", { token: value });
  }
}

/** Waits for a mail to an address, and returns what its text has. */
async function mailed(to: string, pattern: RegExp): Promise<string> {
  const find = () =>
    mailServer.received
      .filter((mail) => mail.to.includes(to))
      .map(
        ({ raw }) =>
          pattern.exec(
            raw.replaceAll("=\r\n", "").replaceAll("=3D", "=").replaceAll("\r\n", "\n"),
          )?.[1],
      )
      .find((found) => found !== undefined);
  await until(`the mail to ${to}`, () => find() !== undefined);
  return find() ?? "";
}
