import { afterAll, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";

import { asc, eq, gt, max } from "drizzle-orm";

import { auditLog } from "../../../db/schema/companies.ts";
import { FailureAudit } from "../../../src/audit/failures.ts";
import { emailDigest } from "../../../src/auth/email.ts";
import { startApi } from "../../support/api.ts";
import { addProvider, send } from "../../support/factory.ts";
import { until } from "../../support/network/receiver.ts";
import { addClient, basicOf, credentialsOf, postForm } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

describe("a client that fails to authenticate", () => {
  test("is audited at once at every endpoint, with its id and its address", async () => {
    for (const path of ["/oauth/token", "/oauth/revoke", "/oauth/introspect"]) {
      const client = await addClient(database.db);
      const form = { grant_type: "refresh_token", refresh_token: "x", token: "x" };
      const wrong = { ...credentialsOf(client), client_secret: "wrong" };
      const { status } = await postForm(
        api,
        path,
        { ...form, ...wrong },
        { "User-Agent": "probe" },
      );
      expect(status).toBe(401);
      expect(await rowsOf("CLIENT_AUTH_FAILED", client.clientId)).toMatchObject([
        {
          actorId: null,
          ip: "127.0.0.1",
          userAgent: "probe",
          details: { client_id: client.clientId },
        },
      ]);
    }
  });

  test("is audited without its id if that text is not a client id, and never with its secret", async () => {
    const secret = "a-secret-in-the-wrong-field";
    const as = { clientId: secret, secret: "another-secret" };
    const form = { token: "x" };
    expect((await postForm(api, "/oauth/introspect", form, basicOf(as))).status).toBe(401);
    const rows = await rowsOf("CLIENT_AUTH_FAILED", null);
    expect(rows).toMatchObject([{ details: { client_id: null } }]);
    expect(JSON.stringify(rows)).not.toContain("secret");
  });
});

test("a wrong code is audited with the digest of its email, known or not", async () => {
  const known = (await world.freshUser()).email;
  for (const email of [known, "stranger@nowhere.test"]) {
    const body = { email: ` ${email.toUpperCase()}`, otp: "000000", type: "forgot_password" };
    expect((await api.call("POST", "/email-otp/verify", { body })).status).toBe(422);
    expect(await detailsOf("OTP_FAILED", emailDigest(email))).toEqual([
      { email_digest: emailDigest(email), type: "forgot_password" },
    ]);
  }
});

test("a wrong signature is audited with the review site, known or not", async () => {
  const known = await addProvider(database.db, api.deps.box, "known-site");
  for (const slug of ["known-site", "no-such-site"]) {
    const { status } = await send(api, { ...known, slug, secret: "wrong" }, { events: [] });
    expect(status).toBe(401);
    expect(await detailsOf("PROVIDER_AUTH_FAILED", slug)).toEqual([{ provider: slug }]);
  }
  await send(api, { ...known, slug: "%00", secret: "wrong" }, { events: [] });
  expect(await detailsOf("PROVIDER_AUTH_FAILED", null)).toEqual([{ provider: null }]);
});

describe("what a stranger sends six times with values that nobody issued", () => {
  const oauth = { grant_type: "refresh_token", refresh_token: "x", token: "x" };
  const wrong = { ...oauth, client_id: "x", client_secret: "x" };
  const nobody = { slug: "none", name: "None", secret: "x", id: 1 };
  const sso = (path: string) => api.call("GET", `/auth/sso/${path}`);
  const many: readonly [string, string, (i: number) => Promise<{ status: number }>][] = [
    ["emails", "AUTH_LOGIN_FAILED", (i) => logIn(`x${i}@no.test`)],
    ["clients", "CLIENT_AUTH_FAILED", () => postForm(api, "/oauth/token", wrong)],
    ["codes of single sign-on", "SSO_REFUSED", (i) => sso(`exchange?code=${madeUp(i)}`)],
    ["states", "SSO_REFUSED", (i) => sso(`callback/${NO_ULID}?state=${madeUp(i)}&code=x`)],
    ["signatures", "PROVIDER_AUTH_FAILED", () => send(api, nobody, { events: [] })],
  ];

  test.each(many)(
    "as %s, has one row %s, and one more with the count",
    async (_, action, request) => {
      await failures.flush();
      clock.advance(MINUTE_MS);
      const before = await lastId();
      const rows = async () => {
        const all = await database.db.select().from(auditLog).where(gt(auditLog.id, before));
        return all
          .toSorted((a, b) => a.id - b.id)
          .map((row) => [row.action, row.details["repeats"]]);
      };
      for (let i = 0; i < 6; i++) expect((await request(i)).status).toBeGreaterThanOrEqual(300);
      expect(await rows()).toEqual([[action, undefined]]);
      await failures.flush();
      expect(await rows()).toEqual([
        [action, undefined],
        [action, 5],
      ]);
      await failures.flush();
      expect(await rows()).toHaveLength(2);
    },
  );
});

test("a wrong login of an unknown email is audited with its network, and its lock, too", async () => {
  clock.advance(MINUTE_MS);
  const before = await lastId();
  for (let i = 0; i < 5; i++) await logIn("locked@no.test");
  const rows = await database.db.select().from(auditLog).where(gt(auditLog.id, before));
  const details = { method: "login", network: "127.0.0.1" };
  expect(rows.map((row) => [row.action, row.actorId, row.details])).toEqual([
    ["AUTH_LOGIN_FAILED", null, details],
    ["AUTH_LOCKED", null, details],
  ]);
});

describe("counts that no row has yet", () => {
  const fresh = () => {
    const client_id = randomUUID();
    const own = new FailureAudit(api.deps);
    const fail = () => own.record({ action: "CLIENT_AUTH_FAILED", details: { client_id } }, CALL);
    const seen = () => detailsOf("CLIENT_AUTH_FAILED", client_id);
    return { client_id, own, fail, seen };
  };

  test("are written each minute, also of a failure whose time is not over, and never twice", async () => {
    const { client_id, own, fail, seen } = fresh();
    for (let i = 0; i < 4; i++) await fail();
    await Promise.all([own.flush(), fail(), own.flush()]);
    await own.flush();
    const rows = await seen();
    expect(rows.reduce((sum, row) => sum + (Number(row["repeats"]) || 1), 0)).toBe(5);
    clock.advance(MINUTE_MS);
    await own.flush();
    await fail();
    expect((await seen()).at(-1)).toEqual({ client_id });
  });

  test("are written later if they cannot be written now", async () => {
    const { client_id, own, fail, seen } = fresh();
    for (let i = 0; i < 3; i++) await fail();
    clock.advance(MINUTE_MS);
    await database.db.sql`alter table audit_log rename to audit_log_away`;
    const [lost] = await Promise.allSettled([own.flush()]);
    await database.db.sql`alter table audit_log_away rename to audit_log`;
    expect(lost.status).toBe("rejected");
    await own.flush();
    expect(await seen()).toEqual([{ client_id }, { client_id, repeats: 2 }]);
  });

  test("are written by a process that follows a signal, each minute and until it aborts", async () => {
    const { client_id, own, fail, seen } = fresh();
    await fail();
    await fail();
    const stop = new AbortController();
    const following = own.follow(stop.signal);
    clock.advance(MINUTE_MS);
    await until("the count", async () => (await seen()).length === 2);
    await fail();
    await fail();
    stop.abort();
    await following;
    expect(await seen()).toEqual([
      { client_id },
      { client_id, repeats: 1 },
      { client_id },
      { client_id, repeats: 1 },
    ]);
  });
});

describe("repeats of an audited failure", () => {
  const fail = (clientId: string) =>
    postForm(api, "/oauth/introspect", { token: "x", client_id: clientId, client_secret: "wrong" });
  const seen = (clientId: string) => detailsOf("CLIENT_AUTH_FAILED", clientId);

  test("within a minute are counted in the next row", async () => {
    const client_id = randomUUID();
    for (let i = 0; i < 5; i++) await fail(client_id);
    clock.advance(MINUTE_MS - 1);
    await fail(client_id);
    expect(await seen(client_id)).toEqual([{ client_id }]);
    clock.advance(1);
    await fail(client_id);
    expect(await seen(client_id)).toEqual([{ client_id }, { client_id, repeats: 5 }]);
    clock.advance(MINUTE_MS);
    await fail(client_id);
    expect((await seen(client_id))[2]).toEqual({ client_id });
  });

  test("are reported beside the next failure of any kind after their minute", async () => {
    const [client_id, other] = [randomUUID(), randomUUID()];
    for (let i = 0; i < 3; i++) await fail(client_id);
    clock.advance(MINUTE_MS);
    await fail(other);
    expect(await rowsOf("CLIENT_AUTH_FAILED", client_id)).toMatchObject([
      { details: { client_id }, ip: "127.0.0.1" },
      { details: { client_id, repeats: 2 }, ip: null },
    ]);
    clock.advance(MINUTE_MS);
    await fail(other);
    expect(await seen(client_id)).toHaveLength(2);
  });

  test("are reported by the next row at once if the first row could not be written", async () => {
    const failures = new FailureAudit(api.deps);
    const client_id = randomUUID();
    const record = () =>
      failures.record({ action: "CLIENT_AUTH_FAILED", details: { client_id } }, CALL);
    await database.db.sql`alter table audit_log rename to audit_log_away`;
    const lost = await Promise.allSettled([record(), record()]);
    await database.db.sql`alter table audit_log_away rename to audit_log`;
    expect(lost.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    await record();
    expect(await seen(client_id)).toEqual([{ client_id, repeats: 2 }]);
    await record();
    expect(await seen(client_id)).toHaveLength(1);
  });

  test("get a 500 while the row of the request cannot be written", async () => {
    const client_id = randomUUID();
    await database.db.sql`alter table audit_log rename to audit_log_away`;
    const { status } = await fail(client_id);
    await database.db.sql`alter table audit_log_away rename to audit_log`;
    expect(status).toBe(500);
  });

  test("are distinguished for 100 clients a minute; further failures share a row without an id", async () => {
    clock.advance(MINUTE_MS);
    const failures = new FailureAudit(api.deps);
    const probe = (provider: string) =>
      failures.record(
        { action: "PROVIDER_AUTH_FAILED", details: { provider } },
        { ...CALL, requestId: "flood" },
      );
    for (let i = 0; i < 105; i++) await probe(`site-${i}`);
    await probe("site-0");
    const flood = async () =>
      (await database.db.select().from(auditLog).where(eq(auditLog.requestId, "flood")))
        .toSorted((a, b) => a.id - b.id)
        .map(({ details }) => details);
    expect(await flood()).toHaveLength(101);
    expect((await flood()).slice(-2)).toEqual([{ provider: "site-99" }, { provider: null }]);
    clock.advance(MINUTE_MS);
    await probe("site-104");
    expect((await flood()).at(-1)).toEqual({ provider: "site-104" });
    expect(await detailsOf("PROVIDER_AUTH_FAILED", "site-0")).toEqual([
      { provider: "site-0" },
      { provider: "site-0", repeats: 1 },
    ]);
    expect(await detailsOf("PROVIDER_AUTH_FAILED", null)).toContainEqual({
      provider: null,
      repeats: 4,
    });
  });
});

describe("refusals of a signed-in user", () => {
  const denied = (token: string, path = "/admin/users") => api.call("GET", path, { token });
  const HOUR_MS = 3_600_000;

  test("are counted by token and route for an hour, in the next row", async () => {
    const user = await world.freshUser();
    const [first, second] = [await api.login(user.email), await api.login(user.email)];
    const rows = async () =>
      (
        await database.db.sql<{ path: string; repeats: number | null }[]>`
          select details ->> 'path' as path, (details ->> 'repeats')::int as repeats from audit_log
           where action = 'AUTHZ_DENIED' and actor_id = ${user.id} order by id`
      ).map(({ path, repeats }) => [path, repeats]);
    const answers = await Promise.all(Array.from({ length: 5 }, () => denied(first)));
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    expect(await rows()).toEqual([["/admin/users", null]]);
    await denied(second);
    await denied(first, "/admin/plans");
    clock.advance(HOUR_MS - 1);
    await denied(first);
    expect(await rows()).toHaveLength(3);
    clock.advance(1);
    await denied(first);
    expect((await rows()).at(3)).toEqual(["/admin/users", 5]);
  });

  test("are reported without the user if the user was removed meanwhile", async () => {
    const user = await world.freshUser();
    const token = await api.login(user.email);
    await denied(token);
    await denied(token, "/admin/stores");
    await denied(token, "/admin/stores");
    const { sql } = database.db;
    await sql`update audit_log set actor_id = null where actor_id = ${user.id}`;
    for (const table of ["tokens", "authentication_events"])
      await sql`delete from ${sql(table)} where user_id = ${user.id}`;
    await sql`delete from users where id = ${user.id}`;
    clock.advance(HOUR_MS);
    expect((await denied(await api.login((await world.freshUser()).email))).status).toBe(403);
    const [row] = await sql<{ actor: number | null }[]>`
      select actor_id as actor from audit_log
       where details ->> 'path' = '/admin/stores' and details ? 'repeats'`;
    expect(row).toEqual({ actor: null });
  });
});

const world = await startSignInWorld();
const { database, clock } = world;
const failures = new FailureAudit(world.api.deps);
const api = await startApi({ ...world.api.deps, failures });

const NO_ULID = "01J00000000000000000000000";

const madeUp = (i: number) => String(i).padStart(43, "x");

const logIn = (email: string) => api.call("POST", "/login", { body: { email, password: "x" } });

const lastId = async () =>
  (await database.db.select({ id: max(auditLog.id) }).from(auditLog))[0]?.id ?? 0;

const detailsOf = async (action: string, value: string | null) =>
  (await rowsOf(action, value)).map(({ details }) => details);

afterAll(() => world.stop());

const MINUTE_MS = 60_000;

const CALL = { requestId: "direct", ip: "192.0.2.1", userAgent: null, headers: new Headers() };

/** Lists the rows of an action with this value in their details, oldest first. */
async function rowsOf(action: string, value: string | null) {
  const rows = await database.db
    .select()
    .from(auditLog)
    .where(eq(auditLog.action, action))
    .orderBy(asc(auditLog.id));
  return rows.filter(({ details }) => Object.values(details).includes(value));
}
