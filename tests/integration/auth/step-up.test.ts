import { describe, expect, test } from "bun:test";

import type { TSchema } from "@sinclair/typebox";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import type { SignInMethod } from "../../../src/http/principal.ts";
import { addMs } from "../../../src/lib/clock.ts";
import { addProvider } from "../../support/factory.ts";
import { until } from "../../support/network/receiver.ts";
import { appCode } from "../../support/factors.ts";
import { fixture } from "../../support/fixture.ts";
import { addClient } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { sessionOf } from "../../support/sessions.ts";
import { addSsoConnection, addUser, type TestUser } from "../../support/tenants.ts";

/*
 * Step-up (contract 4.27) guards each route whose answer holds a secret, a token or a link, and each change of an address
 * that receives data. The routes are found by the marks `secretText` and `receiving` of their schemas; each of them is
 * called with a session that is not fresh, and with a fresh one.
 */
const world = fixture(async () => {
  const started = await startSignInWorld({ config: { operatorsRequireSecondFactor: true } });
  const { sql } = started.database.db;
  await sql`update companies set require_second_factor = true`;
  return started;
});

describe("a route", () => {
  test("that answers a secret, or takes an address that receives data, is listed here as guarded or exempt", () => {
    const found = routes().filter(({ secrets, receivers }) => secrets + receivers > 0);
    expect(found.map(nameOf).toSorted()).toEqual(
      [...Object.keys(GUARDED), ...Object.keys(EXEMPT)].toSorted(),
    );
    const undeclared = found.filter(({ isDeclared }) => !isDeclared).map(nameOf);
    expect(undeclared.toSorted()).toEqual(Object.keys(EXEMPT).toSorted());
  });

  test("names no field like a secret or an address without the mark", () => {
    const found = routes()
      .flatMap((route) => route.unmarked.map((name) => `${nameOf(route)} ${name}`))
      .filter((one) => !HARMLESS.test(one));
    expect(found).toEqual([]);
  });

  test.each(Object.entries(GUARDED))("%s refuses a stale session", async (name, request) => {
    const [method = "", path = ""] = name.split(" ");
    const [before = "", after = ""] = path.split(/\/:\w+/);
    const at = path.includes(":") ? `${before}/${await IDS[before]?.()}${after}` : path;
    const { user, body, status = 2 } = await request();
    const send = (token: string) => world.api.call(method, at, { token, body });
    const stale = await send(await session(user, "login", -660_000));
    expect([stale.status, stale.body["code"]]).toEqual([403, "step_up_required"]);
    const fresh = await send(freshTokens.get(user.id) ?? (await session(user, "sso")));
    expect([fresh.text, Math.floor(fresh.status / 100)]).toEqual([fresh.text, status]);
  });
});

describe("a session that is not fresh", () => {
  const unchanged: Readonly<Record<string, readonly object[]>> = {
    "/partner/webhooks/:id": [
      { label: "Other" },
      { webhook_url: HOOK },
      { webhook_url: HOOK, payload_mode: "minimal" },
    ],
    "/partner/alerts": [
      { digest_minutes: 30 },
      { webhook_url: HOOK },
      { recipients: ["Dev@P1.test", "ops@p1.test"], kinds: ["disabled"] },
    ],
    "/partner/embedding": [{ origins: ["https://b.example", "https://a.example"] }],
  };
  test.each(Object.entries(unchanged))(
    "may PATCH %s where no address changes",
    async (path, bodies) => {
      await setUp();
      const at = path.replace(":id", await subscription());
      const token = await session(owner(), "login", -660_000);
      for (const body of bodies) {
        const { status, text } = await world.api.call("PATCH", at, { token, body });
        expect([text, status]).toEqual([text, 200]);
      }
    },
  );

  test("may neither write nor remove headers", async () => {
    const at = `/partner/webhooks/${await subscription()}`;
    const token = await session(owner(), "login", -660_000);
    const send = (one: string, headers: object | null) =>
      world.api.call("PATCH", at, { token: one, body: { headers } });
    expect((await send(token, null)).status).toBe(200);
    expect((await send(token, { "X-Key": "k" })).body["code"]).toBe("step_up_required");
    const fresh = await session(owner(), "sso");
    expect((await send(fresh, { "X-Key": "k" })).status).toBe(200);
    for (const headers of [{ "X-Key": "k" }, null])
      expect((await send(token, headers)).body["code"]).toBe("step_up_required");
    expect((await send(fresh, null)).body["header_names"]).toEqual([]);
  });

  test("may neither remove an address nor the choice of recipients", async () => {
    await setUp();
    const token = await session(owner(), "login", -660_000);
    for (const body of [
      { webhook_url: null },
      { recipients: null },
      { recipients: ["ops@p1.test"] },
    ])
      expect((await world.api.call("PATCH", "/partner/alerts", { token, body })).status).toBe(403);
  });

  test.each(["/partner/webhooks/:id", "/partner/alerts", "/partner/embedding"])(
    "may not PATCH %s back to addresses that somebody is about to change",
    async (path) => {
      await setUp();
      const at = path.replace(":id", await subscription());
      const present = await world.api.call("GET", at, { token: await session(owner(), "sso") });
      const { webhook_url, origins } = present.body;
      const body = origins === undefined ? { webhook_url } : { origins };
      const token = await session(owner(), "login", -660_000);
      const { sql } = world.database.db;
      const answer = await world.database.db.transaction(async ({ sql: tx }) => {
        const { webhook_url: other } = moved();
        await tx`update webhook_subscriptions set webhook_url = ${other}`;
        await tx`update alert_settings set webhook_url = ${other}`;
        await tx`update portal_settings set origins = '{https://new.example}'`;
        const sent = world.api.call("PATCH", at, { token, body });
        await until("the request waits for the row", async () => {
          const waiting = await sql`
            select from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'`;
          return waiting.length > 0;
        });
        return { sent };
      });
      expect((await answer.sent).body["code"]).toBe("step_up_required");
    },
  );

  test("is unlike a personal access token and an OAuth client, which change addresses", async () => {
    const { id: userId } = owner();
    const at = `/partner/webhooks/${await subscription()}`;
    const { clientId } = await addClient(world.database.db);
    const tokens = [
      await world.grant({ userId, kind: "api_pat", name: "one" }),
      await world.grant({ userId, clientId }),
    ];
    for (const [i, token] of tokens.entries()) {
      const body = { webhook_url: `${HOOK}/${i}` };
      expect((await world.api.call("PATCH", at, { token, body })).status).toBe(200);
    }
  });
});

/** Sets the addresses of the owner's partner. */
async function setUp(): Promise<void> {
  const recipients = ["ops@p1.test", "dev@p1.test"];
  await freshly(owner(), "PATCH", "/partner/alerts", { webhook_url: HOOK, recipients });
  const origins = ["https://a.example", "https://b.example"];
  await freshly(owner(), "PATCH", "/partner/embedding", { origins });
}

interface Call {
  readonly user: TestUser;
  readonly body?: object | undefined;
  /** The class of the answer's status for a fresh session; 2 if absent. */
  readonly status?: number;
}

const HOOK = "http://127.0.0.1:3699/hook";
const owner = () => world.tenants.partners[0].owner;
const root = () => world.tenants.superAdmin;

/** Fresh sessions that a call has prepared something in. */
const freshTokens = new Map<number, string>();

const partnerId = () => world.tenants.partners[0].id;
const of = (user: () => TestUser, body?: () => object) => async () => ({
  user: user(),
  body: body?.(),
});

const client = async () => {
  const companyId = partnerId();
  const grantTypes = ["authorization_code"];
  return (await addClient(world.database.db, { companyId, grantTypes })).clientId;
};
const domains = () => [`c${++made}.example.com`];
const email = () => `step-up-${++made}@p1.test`;
let made = 0;

/** The integration whose token one test makes, and others show and replace. */
let integrationId: number | undefined;

/** The id in the path of a route, by what comes before it. */
const IDS: Readonly<Record<string, () => Promise<string | number>>> = {
  "/sso/clients": client,
  "/partner/oauth-clients": client,
  "/admin/sso-connections": () =>
    addSsoConnection(world.database.db, { companyId: partnerId(), domains: domains() }),
  "/admin/users": async () => (await newUser()).id,
  "/admin/users/external": async () => "new",
  "/admin/providers": async () => {
    const { slug } = await addProvider(world.database.db, world.api.deps.box);
    const [row] = await world.database.db.sql`select id from review_sites where slug = ${slug}`;
    return Number(row?.["id"]);
  },
  "/admin/services": async () => {
    const body = { name: "S", scopes: ["actions:write"] };
    return Number((await freshly(root(), "POST", "/admin/services", body))["id"]);
  },
  "/admin/partners": async () => partnerId(),
  "/partner/integrations": async () => {
    const body = { name: "Machine", scopes: ["webhooks:read"] };
    const make = async () => (await freshly(owner(), "POST", "/partner/integrations", body))["id"];
    return (integrationId ??= Number(await make()));
  },
  "/partner/webhooks": subscription,
};

const redirection = () => ({ redirect_uris: ["https://own.example/back"] });
const newClient = () => ({ name: "Own", ...redirection() });
const issuer = () => ({ issuer: "http://127.0.0.1:3699" });
const teammate = () => ({ name: "New", email: email(), role: "partner_admin" });
const person = () => ({ company_id: partnerId(), ...teammate() });
const moved = () => ({ webhook_url: `${HOOK}/${++made}` });
const pages = () => ({ pages: ["webhooks"] });
const nothing = () => ({});

/** Each guarded route, with a request that succeeds in a fresh session. */
const GUARDED: Readonly<Record<string, () => Promise<Call>>> = {
  "POST /account/second-factors/totp": async () => ({ user: await newUser() }),
  "POST /account/second-factors/totp/confirm": beginApp,
  // A passkey needs an authenticator, which passkeys.test.ts has; here the credential itself is refused.
  "POST /account/second-factors/passkeys": async () => {
    const response = { clientDataJSON: "AAAA", attestationObject: "AAAA" };
    return { user: await newUser(), body: { credential: { id: "AAAA", response } }, status: 4 };
  },
  "POST /account/second-factors/recovery-codes": async () => {
    const { user, token, body } = await beginApp();
    await world.api.call("POST", "/account/second-factors/totp/confirm", { token, body });
    return { user };
  },
  "POST /account/api-token": of(owner),
  "GET /account/api-token": of(owner),
  "POST /account/api-token/regenerate": of(owner),
  "POST /account/personal-access-tokens": of(owner, () => ({ name: "one" })),
  "POST /partner/integrations/:id/api-token": of(owner),
  "GET /partner/integrations/:id/api-token": of(owner),
  "POST /partner/integrations/:id/api-token/regenerate": of(owner),
  "POST /partner/account-owner/token": of(owner, () => ({
    account_id: world.tenants.partners[0].accounts[0].id,
  })),
  "POST /sso/clients": of(root, newClient),
  "POST /sso/clients/:id": of(root, redirection),
  "PATCH /sso/clients/:id": of(root, redirection),
  "POST /sso/clients/:id/secret": of(root, nothing),
  "POST /partner/oauth-clients": of(owner, newClient),
  "POST /partner/oauth-clients/:id": of(owner, redirection),
  "PATCH /partner/oauth-clients/:id": of(owner, redirection),
  "POST /partner/oauth-clients/:id/secret": of(owner, nothing),
  "POST /admin/sso-connections": of(root, () => ({
    ...issuer(),
    company_id: partnerId(),
    client_id: "reviewrelay",
    domains: domains(),
  })),
  "POST /admin/sso-connections/:id": of(root, issuer),
  "PATCH /admin/sso-connections/:id": of(root, issuer),
  "POST /admin/users": of(root, person),
  "PATCH /admin/users/:id": of(root, () => ({ email: email() })),
  "PUT /admin/users/external/:externalId": of(root, person),
  "POST /partner/users": of(owner, teammate),
  "POST /admin/providers": of(root, () => ({ slug: "own", name: "Own" })),
  "POST /admin/providers/:id/secret": of(root, nothing),
  "PUT /admin/audit-webhook": of(root, () => ({ url: HOOK })),
  "POST /admin/services/:id/tokens": of(root, () => ({
    name: "T",
    expires_at: addMs(world.clock.now(), 86_400_000).toISOString(),
  })),
  "POST /partner/webhooks": of(owner, () => ({
    label: "One",
    ...moved(),
    delivery_kind: "immediate",
  })),
  "POST /partner/webhooks/:id": of(owner, moved),
  "PATCH /partner/webhooks/:id": of(owner, moved),
  "POST /partner/webhooks/:id/rotate-secret": of(owner, nothing),
  "POST /partner/webhooks/:id/secret": of(owner, nothing),
  "PATCH /partner/alerts": of(owner, moved),
  "POST /partner/alerts/rotate-secret": of(owner),
  "POST /partner/alerts/secret": of(owner),
  "POST /partner/portal-links": of(owner, pages),
  "POST /admin/partners/:id/portal-links": of(root, pages),
  "PATCH /partner/embedding": of(owner, () => ({ origins: ["https://tools.example"] })),
};

/** Routes that answer a token without a step-up, with the reason. */
const EXEMPT: Readonly<Record<string, string>> = {
  "POST /login": "signs in",
  "POST /login/second-factor": "signs in, by the proof itself",
  "POST /email-otp/verify": "signs in to set a password, by a mailed code",
  "POST /auth/invitation": "signs in, by a mailed link; a required factor is asked for first",
  "POST /reset-password": "signs in with the new password; a required factor is asked for first",
  "GET /auth/sso/exchange": "signs in",
  "POST /embed/:key/session": "signs in, by a link that was made with a step-up",
};

/** Names of fields that look like a secret in an answer, and like an address that receives data in a body. */
const SECRET_NAME = /secret|token|password|recovery|code$|^\.url$|link|otp|^\.key$/;
const ADDRESS_NAME = /url|uri|email|recipient|issuer|origin|host/;

/** Fields that look so and are neither: they tell of a secret, or are shown to others than the reader. */
const HARMLESS =
  /secret_(fingerprint|expires_at)$|token_type$|dashboard_token\.|\.token\.(id|name|expires_at)$|services\S* \S*tokens\.\w+$|error_code$|findings\.code$|logo_url$|linked_at$|reviewer_email$|audit-webhook \.url$/;

interface Route {
  readonly method: string;
  /** The path below `{base_url}`. */
  readonly path: string;
  /** Numbers of the marked fields in the answers of success, and in the body. */
  readonly secrets: number;
  readonly receivers: number;
  /** Names of fields without a mark that look as if they needed one. */
  readonly unmarked: readonly string[];
  /** Whether the API description names the refusal. */
  readonly isDeclared: boolean;
}

function routes(): Route[] {
  return createApp(world.api.deps).routes.flatMap(({ method, path, hooks }) => {
    if (!path.startsWith(BASE_PATH)) return [];
    const { detail, body } = hooks;
    const response: Readonly<Record<string, TSchema>> = hooks.response ?? {};
    const answers = Object.entries(response);
    const shown = answers.flatMap(([status, one]) => (status.startsWith("2") ? fieldsOf(one) : []));
    // Only an address in a request with a token can be changed by a session.
    const taken = detail?.security === undefined ? [] : fieldsOf(body);
    const isSecret = ({ schema }: Field) => schema["isSecret"] === true;
    const isReceiver = ({ schema }: Field) => schema["isReceiver"] === true;
    const unmarked = [
      ...shown.filter((one) => !isSecret(one) && SECRET_NAME.test(one.name)),
      ...taken.filter((one) => !isReceiver(one) && ADDRESS_NAME.test(one.name)),
    ];
    const refusal = response["403"];
    return [
      {
        method,
        path: path.slice(BASE_PATH.length),
        secrets: shown.filter(isSecret).length,
        receivers: taken.filter(isReceiver).length,
        unmarked: unmarked.map(({ name }) => name),
        isDeclared: detail?.["x-step-up"] === true || refusal !== undefined,
      },
    ];
  });
}

interface Field {
  readonly name: string;
  readonly schema: TSchema;
}

/** Returns every field of a schema at any depth. A field that is marked counts as one. */
function fieldsOf(schema: TSchema | undefined, name = ""): Field[] {
  if (schema === undefined) return [];
  const own = { name, schema };
  if (schema["isSecret"] === true || schema["isReceiver"] === true) return [own];
  const members: TSchema[] = [schema["anyOf"] ?? [], schema["items"] ?? []].flat();
  const inner = [
    ...Object.entries<TSchema>(schema["properties"] ?? {}).flatMap(([key, one]) =>
      fieldsOf(one, `${name}.${key}`),
    ),
    ...members.flatMap((one) => fieldsOf(one, name)),
  ];
  return inner.length === 0 && schema["type"] === "string" ? [own] : inner;
}

/** Begins to set up the app of a new user, in a fresh session. */
async function beginApp() {
  const user = await newUser();
  const token = await session(user, "sso");
  freshTokens.set(user.id, token);
  const begun = await world.api.call("POST", "/account/second-factors/totp", { token });
  return { user, token, body: { code: appCode(String(begun.body["secret"]), world.clock) } };
}

const nameOf = ({ method, path }: Route) => `${method} ${path}`;

const newUser = () => {
  const companyId = world.tenants.partners[0].id;
  return addUser(world.database.db, { companyId, role: "partner_admin", email: email() });
};

/** Opens a session of a user, by default now. A single sign-on counts as a proof of a second factor, a login does not. */
async function session(user: TestUser, method: SignInMethod, ms = 0): Promise<string> {
  const at = addMs(world.clock.now(), ms);
  return (await sessionOf(world, user, method, { at })).token;
}

/** Calls a route with a fresh session. */
async function freshly(user: TestUser, method: string, path: string, body?: object) {
  const token = await session(user, "sso");
  return (await world.api.call(method, path, { token, body })).body;
}

/** Returns the id of the owner's subscription, at `HOOK`. */
async function subscription(): Promise<string> {
  const body = { label: "One", webhook_url: HOOK, delivery_kind: "immediate" };
  await freshly(owner(), "POST", "/partner/webhooks", body);
  const held = await freshly(owner(), "GET", "/partner/webhooks");
  const [first] = held["data"] as { id: string }[];
  const id = String(first?.id);
  await freshly(owner(), "PATCH", `/partner/webhooks/${id}`, { webhook_url: HOOK });
  return id;
}
