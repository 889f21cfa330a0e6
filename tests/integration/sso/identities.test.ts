// The identities of a user at identity providers, and how they are unlinked (contract 4.13, 10.1 and 10.5).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { SignInMethod } from "../../../src/http/principal.ts";
import type { Answer } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { inOrder } from "../../support/in-order.ts";
import { until } from "../../support/network/receiver.ts";
import { addClient } from "../../support/oauth.ts";
import { sessionOf } from "../../support/sessions.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import { codeOrReason, connect, HostileProvider } from "../../support/sso.ts";
import { addPartner, addUser, type TestPartner, type TestUser } from "../../support/tenants.ts";

const world = fixture(startSignInWorld);
const sql = () => world.database.db.sql;

describe("an operator", () => {
  test("lists the identities of a user, and unlinks one with all that came of it", async () => {
    const user = await newUser();
    const { token: session } = await exchanged(await signIn(user));
    const [identity] = await listed(user);
    expect(identity).toEqual({
      id: expect.any(Number),
      connection_id: connection,
      issuer: provider.issuer,
      subject: `sub-${user.id}`,
      linked_at: expect.any(String),
    });
    const { clientId } = await addClient(world.database.db);
    const { id: userId } = user;
    const ending = [
      session,
      await opened(user, "sso"),
      await opened(user, "authorization_code", clientId),
    ];
    const staying = [
      await opened(user, "login"),
      await opened(user, "password_grant", clientId),
      await world.grant({ userId, kind: "api_pat", name: "one" }),
      await opened(await newUser(), "sso"),
    ];
    const code = await signIn(user);
    expect((await unlink(user, identity?.id)).status).toBe(204);
    const states = await Promise.all([...ending, ...staying].map((token) => world.statusOf(token)));
    expect(states).toEqual([401, 401, 401, 200, 200, 200, 200]);
    expect((await exchange(code)).status).toBe(400);
    expect(await listed(user)).toEqual([]);
    const [row] = await sql()`
      select actor_id, details from audit_log where action = 'SSO_UNLINKED' order by id desc limit 1`;
    const details = { user_id: user.id, connection_id: connection, issuer: provider.issuer };
    expect(row).toMatchObject({
      actor_id: world.tenants.superAdmin.id,
      details: { ...details, revoked: 3 },
    });
    expect((await unlink(user, identity?.id)).status).toBe(404);
  });

  test("lets a user whom the provider knows by a new subject sign in again", async () => {
    const user = await newUser();
    await exchanged(await signIn(user));
    expect(await signIn(user, { subject: "renewed" })).toBe("other_subject");
    const [old] = await listed(user);
    expect((await unlink(user, old?.id)).status).toBe(204);
    await exchanged(await signIn(user, { subject: "renewed" }));
    const [renewed] = await listed(user);
    expect(renewed).toMatchObject({ subject: "renewed" });
    expect(renewed?.id).not.toBe(old?.id);
    expect(await signIn(user)).toBe("other_subject");
    expect((await unlink(user, old?.id)).status).toBe(404);
  });

  test("gets 404 for an identity of another user, for no user and for no identity", async () => {
    const [user, other] = [await newUser(), await newUser()];
    await exchanged(await signIn(user));
    const [identity] = await listed(user);
    expect((await unlink(other, identity?.id)).status).toBe(404);
    for (const id of ["0", "x", "99999999999", "-1"])
      expect((await unlink(user, id)).status).toBe(404);
    expect((await asRoot("GET", "/admin/users/999999/identities")).status).toBe(404);
    expect(await listed(user)).toHaveLength(1);
  });

  test("pages through the identities of a user at several providers", async () => {
    const user = await newUser();
    await sql()`
      insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
      select 'https://idp-' || n || '.example', 's', ${user.id}, ${connection}, now()
        from generate_series(1, 3) n`;
    const first = await asRoot("GET", `${path(user)}?limit=2`);
    const second = await asRoot("GET", `${path(user)}?limit=2&cursor=${cursorOf(first)}`);
    const issuers = [first, second].flatMap(({ body }) =>
      (body["data"] as Identity[]).map(({ issuer }) => issuer),
    );
    expect(issuers).toEqual([3, 2, 1].map((n) => `https://idp-${n}.example`));
    expect(cursorOf(second)).toBe("null");
    expect((await asRoot("GET", `${path(user)}?cursor=x`)).status).toBe(422);
  });
});

describe("an owner of a partner", () => {
  test("unlinks the partner's people, and nobody else", async () => {
    const token = await world.api.login(partner.owner.email);
    const user = partner.admin;
    await exchanged(await signIn(user));
    const list = await world.api.call("GET", partnerPath(user), { token });
    const [identity] = list.body["data"] as Identity[];
    expect(identity).toMatchObject({ issuer: provider.issuer, subject: `sub-${user.id}` });
    const remove = (who: TestUser, as = token) =>
      world.api.call("DELETE", `${partnerPath(who)}/${identity?.id}`, { token: as });
    const others = [partner.accounts[0].owner, world.tenants.partners[1].owner];
    for (const other of [...others, world.tenants.superAdmin]) {
      const listing = world.api.call("GET", partnerPath(other), { token });
      expect([(await listing).status, (await remove(other)).status]).toEqual([403, 403]);
    }
    expect((await remove(partner.owner)).status).toBe(404);
    const admin = await world.api.login(partner.admin.email);
    expect((await remove(user, admin)).status).toBe(403);
    expect((await world.api.call("GET", partnerPath(user), { token: admin })).status).toBe(403);
    expect((await remove(user)).status).toBe(204);
    expect((await remove(user)).status).toBe(404);
    const [row] = await sql()`
      select actor_id from audit_log where action = 'SSO_UNLINKED' order by id desc limit 1`;
    expect(row).toEqual({ actor_id: partner.owner.id });
  });

  test("proves a second factor first, like an operator, where one is required", async () => {
    const { id: userId, companyId } = partner.admin;
    await exchanged(await signIn(partner.admin));
    const [identity] = await listed(partner.admin);
    await sql()`update companies set require_second_factor = true where id = ${companyId}`;
    const stale = await opened(partner.owner, "login");
    const remove = (at: string, token: string) =>
      world.api.call("DELETE", `${at}/${userId}/identities/${identity?.id}`, { token });
    expect((await remove("/partner/users", stale)).body["code"]).toBe("step_up_required");
    const fresh = await opened(partner.owner, "sso");
    expect((await remove("/partner/users", fresh)).status).toBe(204);
    await sql()`update companies set require_second_factor = false where id = ${companyId}`;
  });

  test("ends the own session by an unlinking of oneself", async () => {
    const { token } = await exchanged(await signIn(partner.owner));
    const list = await world.api.call("GET", partnerPath(partner.owner), { token });
    const [identity] = list.body["data"] as Identity[];
    const at = `${partnerPath(partner.owner)}/${identity?.id}`;
    expect((await world.api.call("DELETE", at, { token })).status).toBe(204);
    expect(await world.statusOf(token)).toBe(401);
  });

  test("may be the last one while the connection is active or there is a password", async () => {
    const [alone, other] = await twoOwners();
    await sql()`update users set is_active = false where id = ${other.user.id}`;
    const linked = async () =>
      exchanged(await signIn(alone.user, { connection: alone.connection }));
    await setActive(alone, false);
    expect(await unlinkedBy(alone)).toEqual([409, "last_owner"]);
    // An operator may, who can appoint another owner.
    const [first] = await listed(alone.user);
    expect((await unlink(alone.user, first?.id)).status).toBe(204);
    await setActive(alone, true);
    await linked();
    expect(await unlinkedBy(alone)).toEqual([204, undefined]);
    await linked();
    await setActive(alone, false);
    await sql()`update users set password_hash = 'a hash' where id = ${alone.user.id}`;
    expect(await unlinkedBy(alone)).toEqual([204, undefined]);
  });

  test("is the last one if the address is in no domain of the connection, which would not link it anew", async () => {
    const [alone, other] = await twoOwners();
    await sql()`update users set is_active = false where id = ${other.user.id}`;
    await sql()`
      update sso_domains set domain = ${`left-${++made}.example`} where connection_id = ${alone.connection}`;
    expect(await unlinkedBy(alone)).toEqual([409, "last_owner"]);
  });

  test("is not the last one beside another who can sign in, of whom one stays", async () => {
    const [one, two] = await twoOwners();
    await setActive(one, false);
    const answers = await inOrder(
      world.database.db,
      one.user.id,
      () => unlinkedBy(one),
      () => unlinkedBy(two),
    );
    expect(answers).toEqual([
      [204, undefined],
      [409, "last_owner"],
    ]);
  });

  test("is not deactivated while the only other one is unlinked", async () => {
    const [one, two] = await twoOwners();
    await setActive(one, false);
    const off = `/partner/users/${one.user.id}/deactivate`;
    const [unlinked, deactivated] = await inOrder(
      world.database.db,
      one.user.id,
      () => unlinkedBy(two),
      () => world.api.call("POST", off, { token: two.token, body: {} }),
    );
    expect([unlinked[0], deactivated.body["code"]]).toEqual([204, "last_owner"]);
  });
});

describe("an unlinking", () => {
  test("happens once, of two at the same time", async () => {
    const user = await newUser();
    await exchanged(await signIn(user));
    const [identity] = await listed(user);
    const answers = await Promise.all([unlink(user, identity?.id), unlink(user, identity?.id)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404]);
  });

  test("before a callback that knew the identity refuses it", async () => {
    const user = await newUser();
    await exchanged(await signIn(user));
    const [identity] = await listed(user);
    const [unlinked, code] = await inOrder(
      world.database.db,
      user.id,
      () => unlink(user, identity?.id),
      () => signIn(user),
    );
    expect([unlinked.status, code]).toEqual([204, "unlinked"]);
    await exchanged(await signIn(user));
  });

  test("after a callback takes its code back", async () => {
    const user = await newUser();
    await exchanged(await signIn(user));
    const [identity] = await listed(user);
    const [code, unlinked] = await inOrder(
      world.database.db,
      user.id,
      () => signIn(user),
      () => unlink(user, identity?.id),
    );
    expect(unlinked.status).toBe(204);
    expect((await exchange(code)).status).toBe(400);
  });

  test("before an exchange refuses it, and after one ends its session", async () => {
    for (const isFirst of [true, false]) {
      const user = await newUser();
      const code = await signIn(user);
      const [identity] = await listed(user);
      const calls = [() => unlink(user, identity?.id), () => exchange(code)] as const;
      const answers = isFirst
        ? await inOrder(world.database.db, user.id, ...calls)
        : (await inOrder(world.database.db, user.id, calls[1], calls[0])).toReversed();
      expect(answers.map(({ status }) => status)).toEqual([204, isFirst ? 400 : 200]);
      const token = answers[1]?.body["token"];
      if (!isFirst) expect(await world.statusOf(String(token))).toBe(401);
    }
  });

  test("leaves nothing behind if its process dies before the commit", async () => {
    const user = await newUser();
    const { token } = await exchanged(await signIn(user));
    const code = await signIn(user);
    const [identity] = await listed(user);
    await world.database.db.transaction(async ({ sql: tx }) => {
      await tx`lock table audit_log in exclusive mode`;
      const died = unlink(user, identity?.id);
      await until("the unlinking waits for its last statement", async () => {
        const ended = await sql()`
          select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock'
             and query like 'insert into "audit_log"%'`;
        return ended.length > 0;
      });
      expect((await died).status).toBeGreaterThanOrEqual(500);
    });
    expect(await listed(user)).toMatchObject([{ id: identity?.id, subject: `sub-${user.id}` }]);
    expect([await world.statusOf(token), (await exchange(code)).status]).toEqual([200, 200]);
    expect((await unlink(user, identity?.id)).status).toBe(204);
  });

  test("and a deletion of the connection at the same time both succeed", async () => {
    for (let round = 0; round < 5; round++) {
      const users = await Promise.all([newUser(), newUser(), newUser()]);
      const gone = await newConnection(`gone-${round}.test`);
      for (const user of users)
        await sql()`
          insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
          values ('https://gone.example', ${`${user.id}`}, ${user.id}, ${gone}, now())`;
      const ids = await Promise.all(users.map(async (user) => (await listed(user))[0]?.id));
      const [deleted, ...unlinked] = await Promise.all([
        asRoot("DELETE", `/admin/sso-connections/${gone}`),
        ...users.map((user, i) => unlink(user, ids[i])),
      ]);
      expect(deleted.status).toBe(204);
      for (const { status } of unlinked) expect([204, 404]).toContain(status);
    }
  });
});

interface Identity {
  readonly id: number;
  readonly connection_id: string;
  readonly issuer: string;
  readonly subject: string;
  readonly linked_at: string;
}

let provider: HostileProvider;
let root = "";
let connection = "";
let partner: TestPartner;
let made = 0;

beforeAll(async () => {
  root = await world.api.login(world.tenants.superAdmin.email);
  provider = await HostileProvider.start();
  [partner] = world.tenants.partners;
  connection = await newConnection("p1.test");
});

afterAll(() => provider.stop());

function newConnection(domain: string, company_id = partner.id): Promise<string> {
  const { issuer } = provider;
  return connect(world.api, root, { company_id, issuer, domains: [domain] });
}

const setActive = ({ connection: id }: Owner, isActive: boolean) =>
  sql()`update sso_connections set is_active = ${isActive} where id = ${id}`;

const newUser = () =>
  addUser(world.database.db, {
    companyId: partner.id,
    role: "partner_admin",
    email: `linked-${++made}@p1.test`,
  });

const asRoot = (method: string, at: string) => world.api.call(method, at, { token: root });
const path = ({ id }: TestUser) => `/admin/users/${id}/identities`;
const partnerPath = ({ id }: TestUser) => `/partner/users/${id}/identities`;
const cursorOf = ({ body }: Answer) => String(body["next_cursor"]);

async function listed(user: TestUser): Promise<Identity[]> {
  return (await asRoot("GET", path(user))).body["data"] as Identity[];
}

const unlink = (user: TestUser, id: number | string | undefined) =>
  asRoot("DELETE", `${path(user)}/${id}`);

const opened = async (user: TestUser, method: SignInMethod, clientId: string | null = null) =>
  (await sessionOf(world, user, method, { clientId })).token;

/** Signs in at the provider; answers the one-time code, or the reason of the refusal. */
async function signIn(
  user: TestUser,
  { subject = `sub-${user.id}`, ...at }: { subject?: string; connection?: string } = {},
): Promise<string> {
  const claims = { sub: subject, email: user.email, email_verified: true };
  provider.onIdToken = (payload) => void Object.assign(payload, claims);
  return codeOrReason(world.api, at.connection ?? connection);
}

const exchange = (code: string) => world.api.call("GET", `/auth/sso/exchange?code=${code}`);

async function exchanged(code: string): Promise<{ token: string }> {
  const { status, body } = await exchange(code);
  expect([code, status]).toEqual([code, 200]);
  return { token: String(body["token"]) };
}

interface Owner {
  readonly user: TestUser;
  readonly connection: string;
  /** A session that an unlinking does not end. */
  readonly token: string;
}

/** Makes the two owners of a partner of their own, with linked identities and without passwords. */
async function twoOwners(): Promise<[Owner, Owner]> {
  const { db } = world.database;
  const [plan] = await sql()`select id from plans limit 1`;
  const name = `own-${++made}`;
  const { id: companyId, owner } = await addPartner(db, name, Number(plan?.["id"]));
  await sql()`update users set is_active = false where id = ${owner.id}`;
  const theirs = await newConnection(`${name}.example`, companyId);
  const add = async (email: string): Promise<Owner> => {
    const person = { companyId, role: "partner_owner", email, passwordHash: null } as const;
    const user = await addUser(db, person);
    await sql()`
      insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
      values (${provider.issuer}, ${`sub-${user.id}`}, ${user.id}, ${theirs}, now())`;
    return { user, connection: theirs, token: await opened(user, "login") };
  };
  return [await add(`one@${name}.example`), await add(`two@${name}.example`)];
}

async function unlinkedBy({ user, token }: Owner): Promise<[number, unknown]> {
  const [identity] = await listed(user);
  const at = `${partnerPath(user)}/${identity?.id}`;
  const { status, body } = await world.api.call("DELETE", at, { token });
  return [status, body["code"]];
}
