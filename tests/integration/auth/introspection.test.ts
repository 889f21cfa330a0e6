import { afterAll, describe, expect, test } from "bun:test";

import { tokens } from "../../../db/schema/tokens.ts";
import { createAuthenticate } from "../../../src/auth/access/authenticate.ts";
import { openSession } from "../../../src/auth/sign-in/open-session.ts";
import type { TokenKind } from "../../../src/http/principal.ts";
import { until } from "../../support/network/receiver.ts";
import { addClient, credentialsOf, postForm, type TestClient } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { addPartner, addUser, type TestPartner, type TestUser } from "../../support/tenants.ts";

/*
 * Runs tokens of every kind through states that change what they may do, and compares what introspection tells with what the
 * check of requests allows (contract 5.5 and 10.7).
 */

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

/** The kinds of the schema, and the two holders of access and refresh tokens. */
const KINDS = tokens.kind.enumValues.flatMap((kind) =>
  kind === "access" ? ([kind, "access of a client"] as const) : [kind],
);

const STATES: Readonly<Record<string, (subject: Subject) => Promise<unknown>>> = {
  "nothing has changed": async () => {},
  "its service has fewer scopes": ({ user }) =>
    sql`update services set scopes = '{tokens:introspect}' where id = ${user.id}`,
  "its service is deactivated": ({ user }) =>
    sql`update users set is_active = false where id = ${user.id} and role = 'service'`,
  "its client has fewer scopes": ({ client }) => setScopes(client, ["reviews:read"]),
  "its client has other scopes": ({ client }) => setScopes(client, ["clients:write"]),
  "its client has no grants": ({ client }) =>
    sql`update oauth_clients set grant_types = '{}' where client_id = ${client?.clientId ?? null}`,
  "its client is deleted": ({ client }) =>
    sql`delete from oauth_clients where client_id = ${client?.clientId ?? null}`,
  "its user has a lower role": ({ user }) =>
    sql`update users set role = 'account_user' where id = ${user.id} and role = 'account_owner'`,
  "its user is deactivated": ({ user }) =>
    sql`update users set is_active = false where id = ${user.id}`,
  "its company is suspended": ({ user }) =>
    sql`update companies set is_active = false where id = ${user.companyId} and type <> 'platform'`,
  "its partner is suspended": ({ partner }) =>
    sql`update companies set is_active = false where id = ${partner.id}`,
  "its company requires a second factor": ({ user }) =>
    sql`update companies set require_second_factor = true where id = ${user.companyId}`,
  "its impersonator is deactivated": ({ partner }) =>
    sql`update users set is_active = false where id = ${partner.admin.id}`,
  "its impersonator has moved": ({ partner }) =>
    sql`update users set company_id = ${tenants.partners[1].id} where id = ${partner.admin.id}`,
  "it is revoked": ({ token }) => sql`delete from tokens where jti = ${jtiOf(token)}`,
  "29 minutes have passed": async () => clock.advance(29 * MINUTE_MS),
  "31 minutes have passed": async () => clock.advance(31 * MINUTE_MS),
  "24 hours have passed": async () => clock.advance(24 * HOUR_MS),
};

describe.each(KINDS)("a token of the kind %s", (kind) => {
  test.each(Object.keys(STATES))(
    "is told as the check of requests has it when %s",
    async (state) => {
      const subject = await make(kind);
      await STATES[state]?.(subject);
      const allowed = await allowedBy(subject.token);
      const told = await toldOf(subject.token);
      expect(told).toEqual(kind === "challenge" || allowed === undefined ? INACTIVE : allowed);
      if (subject.client === undefined || state === "its client is deleted") return;
      const { body } = await introspectAs(subject.client, subject.token);
      if (kind === "refresh") return;
      const { active = false, scope } = body;
      expect([active, scope]).toEqual([allowed !== undefined, allowed?.scope]);
    },
  );

  test("ends when introspection said", async () => {
    const { token } = await make(kind);
    const { expires_at: end } = (await introspect(token)).body;
    if (typeof end !== "string") return;
    const [at, now] = [new Date(end).getTime(), clock.now().getTime()];
    clock.advance(at - now - 1);
    expect(await check(token)).toBeDefined();
    const { token: other } = await make(kind);
    const told = new Date(String((await introspect(other)).body["expires_at"]));
    clock.advance(told.getTime() - clock.now().getTime());
    expect(await check(other)).toBeUndefined();
    expect((await introspect(other)).body).toEqual(INACTIVE);
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

test("a session that a service introspects once a minute is in use", async () => {
  const { token } = await make("access");
  for (let minute = 0; minute < 90; minute++) {
    const { body } = await introspect(token);
    const leftMs = new Date(String(body["expires_at"])).getTime() - clock.now().getTime();
    expect([body["active"], leftMs <= 30 * MINUTE_MS, leftMs >= 29 * MINUTE_MS]).toEqual([
      true,
      true,
      true,
    ]);
    await until("the stamp", async () => isStampedNow(token));
    clock.advance(MINUTE_MS);
  }
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

const INACTIVE = { active: false };

const check = (token: string) =>
  createAuthenticate(api.deps)({
    requestId: "r",
    ip: "192.0.2.1",
    userAgent: null,
    headers: new Headers({ Authorization: `Bearer ${token}` }),
  }).catch(() => undefined);

/** Returns what a service would be told if it were told exactly what the check of requests finds. */
async function allowedBy(token: string) {
  const found = await check(token);
  return (
    found && {
      active: true,
      kind: found.tokenKind,
      user_id: found.userId,
      role: found.role,
      company_id: found.companyId,
      partner_id: found.partnerId,
      account_id: found.accountId,
      store_ids: found.storeIds && [...found.storeIds],
      impersonator_id: found.impersonatorId,
      client_id: found.clientId,
      scope: [...found.scopes].join(" "),
    }
  );
}

/** Introspects a token and leaves out its end. */
async function toldOf(token: string) {
  const { expires_at: _, ...told } = (await introspect(token)).body;
  return told;
}

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

async function make(kind: (typeof KINDS)[number]): Promise<Subject> {
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
  kind: TokenKind | "access of a client",
  { id: userId, companyId }: TestUser,
  { partner, client }: Pick<Subject, "partner" | "client">,
): Promise<string> {
  const impersonatorId = partner.admin.id;
  const clientId = client?.clientId ?? null;
  const signedIn = () =>
    database.db.transaction((tx) =>
      openSession(tx, api.deps, {
        user: { id: userId, companyId },
        method: client === undefined ? "login" : "authorization_code",
        clientId,
        scope: client === undefined ? "*" : "reviews:read reviews:write",
        requestContext: {
          requestId: "r",
          ip: "192.0.2.1",
          userAgent: null,
          headers: new Headers(),
        },
        now: clock.now(),
      }),
    );
  switch (kind) {
    case "access":
    case "access of a client":
      return (await signedIn()).token;
    case "refresh": {
      const { familyId } = await signedIn();
      const scope = "reviews:read reviews:write";
      return grant({ kind, userId, familyId, clientId, scope, ttlS: 30 * 86_400 });
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

const jtiOf = (token: string) =>
  String(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).jti);

async function isStampedNow(token: string): Promise<boolean> {
  const [row] = await sql<{ at: Date | null }[]>`
    select last_used_at as at from tokens where jti = ${jtiOf(token)}`;
  return row?.at?.getTime() === clock.now().getTime();
}
