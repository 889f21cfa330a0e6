import { afterAll, describe, expect, test } from "bun:test";

import { decodeJwt } from "jose";

import { tokens } from "../../../db/schema/tokens.ts";
import { createAuthenticate } from "../../../src/auth/access/authenticate.ts";
import { addMs, isoInstant } from "../../../src/lib/clock.ts";
import { until } from "../../support/network/receiver.ts";
import { addClient, credentialsOf, postForm, type TestClient } from "../../support/oauth.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addPartner, addUser, type TestPartner, type TestUser } from "../../support/tenants.ts";

/*
 * Runs tokens of every kind through states that change what they may do. The expected answers are written out from the
 * contract (4.3, 4.24, 5.5 and 10.7), because introspection and the check of requests share their code.
 */

describe("a service is told the user and the authority of a token", () => {
  test.each(BEARERS)("of the kind %s", async (kind) => {
    const subject = await make(kind);
    const at = clock.now();
    const { user, partner } = subject;
    const ofService = kind === "service";
    const { scope, lifeMs } = TOLD[kind];
    expect((await introspect(subject.token)).body).toEqual(
      kind === "challenge"
        ? INACTIVE
        : {
            active: true,
            kind: kind === "access of a client" ? "access" : kind,
            user_id: user.id,
            role: ofService ? "service" : "account_owner",
            company_id: user.companyId,
            partner_id: ofService ? null : partner.id,
            account_id: ofService ? null : partner.accounts[0].id,
            store_ids: null,
            impersonator_id: kind === "impersonation" ? partner.admin.id : null,
            client_id: subject.client?.clientId ?? null,
            scope,
            expires_at: lifeMs === null ? null : isoInstant(addMs(at, lifeMs)),
          },
    );
  });
});

test("a refresh token is no bearer token, and a service is told that it is inactive", async () => {
  const { token } = await make("refresh");
  expect(await check(token)).toBeUndefined();
  expect((await introspect(token)).body).toEqual(INACTIVE);
});

describe("a token ends, for requests and for introspection,", () => {
  test.each(ENDS)("when %s: the kind %s", async (state, kind) => {
    const subject = await make(kind);
    expect(await check(subject.token)).toBeDefined();
    await STATES[state](subject);
    expect(await check(subject.token)).toBeUndefined();
    expect((await introspect(subject.token)).body).toEqual(INACTIVE);
    const isClientGone = /client is deleted|partner is suspended/.test(state);
    if (subject.client === undefined || isClientGone) return;
    expect((await introspectAs(subject.client, subject.token)).body).toEqual(INACTIVE);
  });

  test.each(ENDED_AFTER)("after %d minutes: %p", async (minutes, ended) => {
    const subjects = await Promise.all(
      BEARERS.map(async (kind) => ({ kind, ...(await make(kind)) })),
    );
    clock.advance(minutes * MINUTE_MS);
    const found: string[] = [];
    for (const { kind, token } of subjects)
      if ((await check(token)) === undefined) found.push(kind);
    expect(found.toSorted()).toEqual([...ended].toSorted());
  });

  test.each([
    ["access", 30 * MINUTE_MS],
    ["access of a client", 24 * HOUR_MS],
  ] as const)("at the instant that introspection named: %s", async (kind, lifeMs) => {
    const [last, over] = [await make(kind), await make(kind)];
    clock.advance(lifeMs - 1);
    expect(await check(last.token)).toBeDefined();
    clock.advance(1);
    expect(await check(over.token)).toBeUndefined();
    expect((await introspect(over.token)).body).toEqual(INACTIVE);
  });
});

describe("a token lives on", () => {
  test.each(CHANGES)("when %s, and the kind %s then has %p", async (state, kind, now) => {
    const subject = await make(kind);
    await STATES[state](subject);
    const { scope = TOLD[kind].scope, role } = { role: subject.user.role, ...now };
    const found = await check(subject.token);
    expect([found?.role, [...(found?.scopes ?? ["none"])].join(" ")]).toEqual([role, scope]);
    expect((await introspect(subject.token)).body).toMatchObject({ active: true, role, scope });
    if (subject.client === undefined) return;
    const { body } = await introspectAs(subject.client, subject.token);
    expect(body).toMatchObject({ active: true, scope });
  });
});

test("an OAuth client that loses a scope loses it with every live token", async () => {
  const { token, client } = await make("access of a client");
  const read = () => api.call("GET", "/account/reviews", { token });
  expect((await read()).status).toBe(200);
  await setScopes(client, ["reviews:write"]);
  expect((await read()).body["code"]).toBe("insufficient_scope");
  await setScopes(client, ["*"]);
  expect((await read()).status).toBe(200);
});

test("a session that a service introspects is in use", async () => {
  const { token } = await make("access");
  for (const _ of [1, 2]) {
    clock.advance(29 * MINUTE_MS);
    expect((await introspect(token)).body["active"]).toBe(true);
    await until("the stamp", async () => isStampedNow(token));
  }
  const { body } = await introspect(token);
  expect(body["expires_at"]).toBe(isoInstant(addMs(clock.now(), 30 * MINUTE_MS)));
});

test("introspections within a minute write one use", async () => {
  const { token, user } = await make("api_pat");
  const rows = () =>
    sql`select from audit_log where action = 'TOKEN_USED' and actor_id = ${user.id}`;
  await introspect(token);
  await until("the stamp", async () => isStampedNow(token));
  const at = clock.now();
  clock.advance(MINUTE_MS - 1);
  await Promise.all(Array.from({ length: 5 }, () => introspect(token)));
  const [row] = await sql<{ at: Date }[]>`
    select last_used_at as at from tokens where jti = ${jtiOf(token)}`;
  expect([row?.at, (await rows()).length]).toEqual([at, 1]);
});

describe("a refresh token", () => {
  test.each([
    ["is told with the scopes that it gives now", ["reviews:read"], true],
    ["is inactive if it gives none", ["clients:write"], false],
  ] as const)("%s", async (_, scopes, active) => {
    const { token, client } = await make("refresh");
    await setScopes(client, scopes);
    const { body } = await introspectAs(client, token);
    expect([body["active"], body["scope"]]).toEqual([active, active ? "reviews:read" : undefined]);
  });

  test("ends on the last day of its sign-in", async () => {
    const { token, client } = await make("refresh");
    const signedInS = Math.floor(clock.now().getTime() / 1000);
    expect((await introspectAs(client, token)).body["exp"]).toBe(signedInS + 20 * 86_400);
    clock.advance(20 * 24 * HOUR_MS);
    expect((await introspectAs(client, token)).body).toEqual(INACTIVE);
  });

  test("is inactive while its client may not refresh", async () => {
    const { token, client } = await make("refresh");
    await sql`update oauth_clients set grant_types = '{password}'
      where client_id = ${client?.clientId ?? ""}`;
    expect((await introspectAs(client, token)).body).toEqual(INACTIVE);
  });
});

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const world = await startSignInWorld({
  config: { sessionLimits: { maxHours: 8, idleMinutes: 30 }, refreshMaxDays: 20 },
});
const { api, clock, database, grant, tenants } = world;
const { sql } = database.db;
let made = 0;
afterAll(() => world.stop());

/** A token with everything on which its validity depends; nothing of it belongs to another token. */
interface Subject {
  readonly token: string;
  readonly user: TestUser;
  readonly partner: TestPartner;
  readonly client: TestClient | undefined;
}

/** The kinds of the schema, and the two holders of access tokens. */
const KINDS = tokens.kind.enumValues.flatMap((kind) =>
  kind === "access" ? ([kind, "access of a client"] as const) : [kind],
);

type Kind = (typeof KINDS)[number];
type Bearer = Exclude<Kind, "refresh">;

/** The scopes that a client is granted. */
const OF_CLIENT = "reviews:read reviews:write";

/** The scopes and the lifetimes of the tokens that `make` makes. */
const TOLD: Readonly<Record<Bearer, { readonly scope: string; readonly lifeMs: number | null }>> = {
  access: { scope: "*", lifeMs: 30 * MINUTE_MS },
  "access of a client": { scope: OF_CLIENT, lifeMs: 24 * HOUR_MS },
  dashboard_pat: { scope: "*", lifeMs: null },
  api_pat: { scope: "reviews:read webhooks:read", lifeMs: 24 * HOUR_MS },
  impersonation: { scope: "impersonate reviews:read", lifeMs: 24 * HOUR_MS },
  portal: { scope: "webhooks:read", lifeMs: HOUR_MS },
  password_reset: { scope: "password:reset", lifeMs: 15 * MINUTE_MS },
  challenge: { scope: "second-factor", lifeMs: 5 * MINUTE_MS },
  service: { scope: "actions:write tokens:introspect", lifeMs: 24 * HOUR_MS },
};

/** Every kind but refresh tokens, which no route accepts as a bearer token. */
const BEARERS = KINDS.filter((kind) => kind !== "refresh");

/** The kinds whose user belongs to a partner; a service belongs to the platform. */
const OF_TENANTS = BEARERS.filter((kind) => kind !== "service");

const STATES = {
  "its service has fewer scopes": ({ user }) =>
    sql`update services set scopes = '{tokens:introspect}' where id = ${user.id}`,
  "its client has fewer scopes": ({ client }) => setScopes(client, ["reviews:read"]),
  "its client has other scopes": ({ client }) => setScopes(client, ["clients:write"]),
  "its client has no grants": ({ client }) =>
    sql`update oauth_clients set grant_types = '{}' where client_id = ${client?.clientId ?? null}`,
  "its client is deleted": ({ client }) =>
    sql`delete from oauth_clients where client_id = ${client?.clientId ?? null}`,
  "its user has a lower role": ({ user }) =>
    sql`update users set role = 'account_user' where id = ${user.id}`,
  "its user is deactivated": ({ user }) =>
    sql`update users set is_active = false where id = ${user.id}`,
  "its company is suspended": ({ user }) =>
    sql`update companies set is_active = false where id = ${user.companyId}`,
  "its partner is suspended": ({ partner }) =>
    sql`update companies set is_active = false where id = ${partner.id}`,
  "its company requires a second factor": ({ user }) =>
    sql`update companies set require_second_factor = true where id = ${user.companyId}`,
  "its impersonator is deactivated": ({ partner }) =>
    sql`update users set is_active = false where id = ${partner.admin.id}`,
  "its impersonator has a lower role": ({ partner }) =>
    sql`update users set role = 'account_user' where id = ${partner.admin.id}`,
  "its impersonator has moved": ({ partner }) =>
    sql`update users set company_id = ${tenants.partners[1].id} where id = ${partner.admin.id}`,
  "it is revoked": ({ token }) => sql`delete from tokens where jti = ${jtiOf(token)}`,
} satisfies Record<string, (subject: Subject) => Promise<unknown>>;

type State = keyof typeof STATES;

const each = (state: State, kinds: readonly Bearer[]) =>
  kinds.map((kind): [State, Bearer] => [state, kind]);

const ENDS = [
  ...each("its user is deactivated", BEARERS),
  ...each("its company is suspended", OF_TENANTS),
  ...each("its partner is suspended", OF_TENANTS),
  ...each("its client is deleted", ["access of a client"]),
  ...each("its impersonator is deactivated", ["impersonation"]),
  ...each("its impersonator has a lower role", ["impersonation"]),
  ...each("its impersonator has moved", ["impersonation"]),
  ...each("it is revoked", BEARERS),
];

/** The kinds that have ended some minutes after their issue, unused. */
const ENDED_AFTER: readonly [minutes: number, ended: readonly Bearer[]][] = [
  [29, ["password_reset", "challenge"]],
  [31, ["password_reset", "challenge", "access"]],
  [8 * 60, ["password_reset", "challenge", "access", "portal"]],
  [24 * 60, BEARERS.filter((kind) => kind !== "dashboard_pat")],
];

const CHANGES: readonly [State, Bearer, { readonly scope?: string; readonly role?: string }][] = [
  ["its client has fewer scopes", "access of a client", { scope: "reviews:read" }],
  ["its client has other scopes", "access of a client", { scope: "" }],
  ["its client has no grants", "access of a client", {}],
  ["its service has fewer scopes", "service", { scope: "tokens:introspect" }],
  ["its user has a lower role", "access", { role: "account_user" }],
  ["its user has a lower role", "api_pat", { role: "account_user" }],
  ["its company requires a second factor", "access", {}],
  ["its company requires a second factor", "api_pat", {}],
];

const INACTIVE = { active: false };

const check = (token: string) =>
  createAuthenticate(api.deps)({
    requestId: "r",
    ip: "192.0.2.1",
    userAgent: null,
    headers: new Headers({ Authorization: `Bearer ${token}` }),
  }).catch(() => undefined);

const service = await (async () => {
  const userId = await addService(["tokens:introspect"]);
  return grant({ userId, kind: "service", name: "s", scope: "tokens:introspect", ttlS: 3e7 });
})();

const introspect = (text: string) =>
  api.call("POST", "/platform/introspect", { token: service, body: { token: text } });

const introspectAs = (client: TestClient | undefined, token: string) =>
  postForm(api, "/oauth/introspect", { token, ...(client && credentialsOf(client)) });

function setScopes(client: TestClient | undefined, scopes: readonly string[]) {
  return sql`update oauth_clients set scopes = ${[...scopes]}
    where client_id = ${client?.clientId ?? null}`;
}

async function addService(scopes: readonly string[]): Promise<number> {
  const { companyId } = tenants.superAdmin;
  const email = `service-${++made}@services.invalid`;
  const { id } = await addUser(database.db, { companyId, role: "service", email });
  await sql`insert into services (id, scopes) values (${id}, ${[...scopes]})`;
  return id;
}

async function make(kind: Kind): Promise<Subject> {
  const partner = await addPartner(database.db, `i${++made}`, await planId());
  const user = partner.accounts[0].owner;
  const isOfClient = kind === "access of a client" || kind === "refresh";
  const client = isOfClient ? await addClient(database.db, { companyId: partner.id }) : undefined;
  if (kind === "service") {
    const scopes = ["actions:write", "tokens:introspect"];
    const id = await addService(scopes);
    const { companyId } = tenants.superAdmin;
    const token = await grant({
      userId: id,
      kind,
      name: "s",
      scope: scopes.join(" "),
      ttlS: 86_400,
    });
    return { token, user: { ...user, id, companyId, role: kind }, partner, client };
  }
  return { token: await tokenOf(kind, user, { partner, client }), user, partner, client };
}

const planId = async () => {
  const [plan] = await sql<{ id: number }[]>`select min(id) as id from plans`;
  return plan?.id ?? 0;
};

async function tokenOf(
  kind: Kind,
  user: TestUser,
  { partner, client }: Pick<Subject, "partner" | "client">,
): Promise<string> {
  const userId = user.id;
  const impersonatorId = partner.admin.id;
  const clientId = client?.clientId ?? null;
  const signedIn = () =>
    client === undefined
      ? sessionOf(world, user, "login")
      : sessionOf(world, user, "authorization_code", { clientId, scope: OF_CLIENT });
  switch (kind) {
    case "access":
    case "access of a client":
      return (await signedIn()).token;
    case "refresh": {
      const { familyId } = await signedIn();
      return grant({ kind, userId, familyId, clientId, scope: OF_CLIENT, ttlS: 30 * 86_400 });
    }
    case "dashboard_pat":
      return grant({ kind, userId, ttlS: null, box: api.deps.box });
    case "api_pat":
      return grant({ kind, userId, name: "one", scope: "reviews:read webhooks:read" });
    case "impersonation":
      return grant({ kind, userId, impersonatorId, scope: "impersonate reviews:read" });
    case "portal":
      return grant({ kind, userId, scope: "webhooks:read", pages: ["webhooks"], ttlS: 3_600 });
    case "password_reset":
      return grant({ kind, userId, scope: "password:reset", ttlS: 900 });
    case "challenge":
      return grant({ kind, userId, scope: "second-factor", ttlS: 300 });
    case "service":
      throw new Error("A service has a user of its own.");
  }
}

const jtiOf = (token: string) => decodeJwt(token).jti ?? "";

async function isStampedNow(token: string): Promise<boolean> {
  const [row] = await sql<{ at: Date | null }[]>`
    select last_used_at as at from tokens where jti = ${jtiOf(token)}`;
  return row?.at?.getTime() === clock.now().getTime();
}
