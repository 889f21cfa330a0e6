// A partner or an account is deleted with everything that belongs to it (contract 10.8), with the job of the maintenance loop.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import { ulid } from "ulid";

import { emailDigest } from "../../../src/auth/email.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { readConfig } from "../../../src/lib/config.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { deletionChunk } from "../../../src/tenants/actions/delete-companies.ts";
import { addIntegration } from "../../support/callers.ts";
import { createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import { connectStore, created, queuedFor, report, send } from "../../support/factory.ts";
import { fixture } from "../../support/fixture.ts";
import { tickOnce } from "../../support/maintenance.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addPartner, type TestPartner } from "../../support/tenants.ts";
import { placesOf, rowCounts } from "../../support/texts.ts";
import { startWebhooks } from "../../support/webhooks.ts";

const stores = fixture(createTestSchedule);
const world = fixture(() => startWebhooks({ schedule: stores.schedule }));

beforeEach(() => world.clock.set(systemClock.now()));
afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

describe("a partner that leaves", () => {
  test("leaves no row in any table, also if a process dies after any chunk, and those of others stay", async () => {
    await world.emit(3);
    const before = await rowCounts(world.database.db);
    const { partner, subscription } = await fillPartner("leaving");
    const own = await idsOf(partner.id);
    const filled = await rowCounts(world.database.db);
    const unfilled = Object.keys(filled).filter(
      (table) => ![...KEPT, ...OF_NO_COMPANY].includes(table) && filled[table] === before[table],
    );
    expect(unfilled).toEqual([]);
    expect(await attemptsOf(subscription)).toBeGreaterThan(0);

    await request("partners", partner);
    await due(partner.id);
    const { db } = world.database;
    for (let n = 0, isLeft = true; isLeft; n++) {
      if (n % 3 === 0)
        await db
          .transaction(async (tx) => {
            await deletionChunk({ ...deps(), db: { ...db, transaction: (work) => work(tx) } });
            throw new Error("killed");
          })
          .catch(() => undefined);
      isLeft = (await chunk()).next !== undefined;
    }
    expect(await references(own)).toEqual([]);
    expect(await placesOf(world.database.db, world.api.deps.box, ["leaving"])).toEqual([]);
    expect(withoutKept(await rowCounts(world.database.db))).toEqual(withoutKept(before));
    expect((await asRoot("GET", `/admin/partners/${partner.id}`)).status).toBe(404);
    const [service] = await world.database.db.sql<{ ids: number[] }[]>`
      select partner_ids as ids from services order by id desc limit 1`;
    expect(service?.ids).toEqual([]);
    // The audit log keeps what happened, with the ids.
    const rows = await world.audit("COMPANY_DELETED");
    expect(rows.at(-1)).toMatchObject({
      actor: null,
      details: {
        company_id: partner.id,
        type: "partner",
        requested_by: world.tenants.superAdmin.id,
      },
    });
    const [login] = await world.database.db.sql<{ details: object; ip: string | null }[]>`
      select details, ip from audit_log
       where action = 'AUTH_LOGIN' and details -> 'deleted' ->> 'actor_id' = ${String(partner.owner.id)}`;
    expect(login).toMatchObject({
      ip: null,
      details: { deleted: { actor_id: partner.owner.id, company_id: partner.id } },
    });
  }, 60_000);

  test("is deleted once by two processes at the same time", async () => {
    const before = await rowCounts(world.database.db);
    const one = await fillPartner("both-1");
    const two = await fillPartner("both-2");
    for (const { partner } of [one, two]) {
      await request("partners", partner);
      await due(partner.id);
    }
    await Promise.all([allChunks(), allChunks()]);
    await allChunks();
    expect(withoutKept(await rowCounts(world.database.db))).toEqual(withoutKept(before));
    const rows = await world.audit("COMPANY_DELETED");
    for (const { partner } of [one, two])
      expect(
        rows.filter(({ details }) => fieldsOf(details)["company_id"] === partner.id),
      ).toHaveLength(1);
  }, 60_000);
});

describe("an account that leaves", () => {
  test("takes its events out of the log of its partner, and the others are delivered in order", async () => {
    const { partner, sites, subscription, batch, token } = await fillPartner("account");
    const [leaver, stayer] = partner.accounts;
    const { db } = world.database;
    const before = await queuedFor(db, subscription);
    const own = await eventsOf(leaver.id);
    const rest = before.filter(({ eventId }) => !own.includes(eventId));
    expect([before.length, rest.length]).toEqual([11, 5]);

    await asRoot("POST", `/admin/accounts/${leaver.id}/deactivate`, {});
    // The site goes on to report until the deletion begins.
    await report(world.api, world.provider, [created(sites[0], "late")]);
    await leave("accounts", { id: leaver.id, name: "account-a1" });
    expect(await eventsOf(leaver.id)).toEqual([]);
    expect(await queuedFor(db, subscription)).toEqual(rest);
    const waiting = await db.sql<{ accountId: number }[]>`
      select h.account_id as "accountId" from batch_entries b join review_history h on h.id = b.review_history_id
       where b.subscription_id = ${batch}`;
    expect([...new Set(waiting.map(({ accountId }) => accountId))]).toEqual([stayer.id]);
    const late = await send(world.api, world.provider, { events: [created(sites[0], "later")] });
    expect([late.status, Object.keys(late.body["errors"] ?? {})]).toEqual([
      422,
      ["events.0.store_review_site_id"],
    ]);

    const receiver = await Receiver.start();
    started.push(receiver);
    const path = `/partner/webhooks/${subscription}`;
    await world.api.call("POST", path, { token, body: { webhook_url: receiver.url } });
    await world.api.call("POST", `${path}/enable`, { token });
    await report(world.api, world.provider, [created(sites[1], "after")]);
    await dispatch();
    await until("the others and a new one", () => receiver.received.length >= 6);
    const [last = ""] = (await eventsOf(stayer.id)).slice(-1);
    expect(receiver.eventIds).toEqual([...rest.map(({ eventId }) => eventId), last]);
    await until("their records", async () => (await queuedFor(db, subscription)).length === 0);
    // The partner still sees its own.
    const { body } = await world.api.call("GET", "/partner/accounts", { token });
    expect((body["data"] as { id: number }[]).map(({ id }) => id)).toEqual([stayer.id]);
  }, 60_000);
});

describe("the waiting time", () => {
  test("begins with the name of a deactivated company, and can be cancelled", async () => {
    const partner = await freshPartner("waiting");
    const path = `/admin/partners/${partner.id}`;
    const named = { name: "waiting" };
    expect((await asRoot("GET", `${path}/deletion`)).status).toBe(404);
    expect(await codeOf("POST", `${path}/deletion`, named)).toEqual([409, "company_active"]);
    await asRoot("POST", `${path}/deactivate`, {});
    const wrong = await asRoot("POST", `${path}/deletion`, { name: "Waiting" });
    expect([wrong.status, wrong.body["errors"]]).toEqual([
      422,
      { name: ["does not match the name of the company"] },
    ]);
    const { status, body } = await asRoot("POST", `${path}/deletion`, named);
    expect([status, body["state"]]).toEqual([202, "waiting"]);
    const days =
      (Date.parse(String(body["due_at"])) - Date.parse(String(body["requested_at"]))) / DAY;
    expect(days).toBe(30);
    world.clock.advance(1_000);
    expect((await asRoot("POST", `${path}/deletion`, named)).body).toEqual(body);
    expect((await asRoot("GET", `${path}/deletion`)).body).toEqual(body);

    expect(await codeOf("POST", `${path}/activate`)).toEqual([409, "deletion_requested"]);
    const [account] = partner.accounts;
    await asRoot("POST", `/admin/accounts/${account.id}/deactivate`, {});
    expect(await codeOf("POST", `/admin/accounts/${account.id}/activate`)).toEqual([
      409,
      "deletion_requested",
    ]);
    await asRoot("POST", `/admin/accounts/${account.id}/deactivate`, {});

    await chunk();
    expect((await asRoot("GET", path)).status).toBe(200);
    expect((await asRoot("DELETE", `${path}/deletion`)).status).toBe(204);
    expect((await asRoot("DELETE", `${path}/deletion`)).status).toBe(404);
    expect((await asRoot("POST", `${path}/activate`)).status).toBe(200);
  });

  test("is over for good once the deletion has begun", async () => {
    const partner = await freshPartner("begun");
    await request("partners", partner);
    await due(partner.id);
    await chunk();
    const path = `/admin/partners/${partner.id}`;
    expect((await asRoot("GET", `${path}/deletion`)).body["state"]).toBe("running");
    expect(await codeOf("DELETE", `${path}/deletion`)).toEqual([409, "deletion_running"]);
    // A user who is added meanwhile does not stop it.
    await allButLast();
    const late = await asRoot("POST", "/admin/users", {
      company_id: partner.id,
      role: "partner_admin",
      email: "late@begun.test",
      name: "Late",
    });
    expect(late.status).toBe(201);
    await allChunks();
    expect((await asRoot("GET", path)).status).toBe(404);
  });

  test.each([
    ["0", false],
    ["1", true],
    ["365", true],
    ["366", false],
  ])("of %s days is a setting: %j", (DELETION_WAIT_DAYS, isValid) => {
    const read = () =>
      readConfig({
        DATABASE_URL: "postgres://unused.invalid/test",
        REDIS_URL: "redis://unused.invalid",
        SERVER_ROOT: "http://localhost:3000",
        MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
        DELETION_WAIT_DAYS,
      });
    if (isValid) expect(read().deletionWaitDays).toBe(Number(DELETION_WAIT_DAYS));
    else expect(read).toThrow("DELETION_WAIT_DAYS");
  });
});

test("a review, a connection and an event stay as long as their company does", async () => {
  await world.emit(1);
  const { sql } = world.database.db;
  for (const table of ["reviews", "store_review_sites"])
    expect(await failure(sql`delete from ${sql(table)}`)).not.toBe("");
  expect(await failure(sql`update review_history set event = 'note_added'`)).toContain(
    "never change",
  );
  expect(await failure(sql`update review_history set actor = '{}'`)).toContain("never change");
  const erasing = sql`update review_history set erased_at = now(), sequence = null`;
  expect(await failure(erasing)).toContain("never change");
});

const DAY = 86_400_000;
const started: { stop(): Promise<unknown> }[] = [];

/**
 * Tables whose rows stay: ids of reported events, the trail of what happened, mails until they are old, and answers to
 * repeated requests until they expire.
 */
const KEPT = ["audit_log", "keyed_requests", "mails", "provider_events", "services"];
/** Tables without rows of a company. The row in `company_deletions` is added by the request for the deletion. */
const OF_NO_COMPANY = [
  "audit_webhooks",
  "company_deletions",
  "dispatchers",
  "erasures",
  "imports",
  "maintenance_jobs",
  "plans",
  "processes",
  "review_sites",
  "service_actions",
  "shards",
  "signing_keys",
  "stats_progress",
];

/** The users of services belong to the platform. */
const withoutKept = (counts: Readonly<Record<string, number>>) => ({
  ...counts,
  ...Object.fromEntries(KEPT.map((table) => [table, 0])),
  users: (counts["users"] ?? 0) - (counts["services"] ?? 0),
});

const deps = () => ({
  db: world.database.db,
  clock: world.clock,
  log: world.api.deps.log,
});
const chunk = () => deletionChunk(deps());

async function allChunks(): Promise<void> {
  while ((await chunk()).next !== undefined);
}

/** Runs chunks up to the one that deletes the company itself. */
async function allButLast(): Promise<void> {
  const isLast = async () => {
    const [row] = await world.database.db.sql<{ reached: string }[]>`
      select reached from company_deletions`;
    return row?.reached.includes(" settings ") === true;
  };
  while (!(await isLast())) await chunk();
}

const asRoot = (method: string, path: string, body?: object) =>
  world.api.call(method, path, { token: world.tokens.root, body });

async function codeOf(method: string, path: string, body?: object) {
  const answer = await asRoot(method, path, body);
  return [answer.status, answer.body["code"]];
}

interface Named {
  readonly id: number;
  readonly name: string;
}

async function request(kind: "partners" | "accounts", { id, name }: Named): Promise<void> {
  await asRoot("POST", `/admin/${kind}/${id}/deactivate`, {});
  const { status } = await asRoot("POST", `/admin/${kind}/${id}/deletion`, { name });
  expect(status).toBe(202);
}

// A second ago, because the server's clock has microseconds and that of the process may be behind it.
const due = (id: number) =>
  world.database.db.sql`
    update company_deletions set due_at = now() - interval '1 second' where company_id = ${id}`;

/** Requests a deletion, lets the waiting time pass and runs the job in the maintenance loop. */
async function leave(kind: "partners" | "accounts", company: Named): Promise<void> {
  await request(kind, company);
  await due(company.id);
  const { db } = world.database;
  // The column has milliseconds, so that now() may be rounded up.
  await db.sql`update maintenance_jobs set next_at = now() - interval '1 second' where name = 'deletions'`;
  await tickOnce({ db, jobs: [{ name: "deletions", paceS: 60, db, run: chunk }] });
}

async function failure(query: PromiseLike<unknown>): Promise<string> {
  return Promise.resolve(query).then(
    () => "",
    (error: unknown) => String(error),
  );
}

async function dispatch(): Promise<void> {
  const { db } = world.database;
  started.unshift(startDispatcher({ db, box: world.api.deps.box, schedule: stores.schedule }));
}

async function attemptsOf(subscription: string): Promise<number> {
  const rows = await world.database.db.sql`
    select from delivery_attempts where subscription_id = ${subscription}`;
  return rows.length;
}

async function eventsOf(accountId: number): Promise<string[]> {
  const rows = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from review_history where account_id = ${accountId} order by id`;
  return rows.map(({ eventId }) => eventId);
}

async function eventsOfSite(siteId: number): Promise<string[]> {
  const rows = await world.database.db.sql<{ eventId: string }[]>`
    select event_id as "eventId" from review_history where store_review_site_id = ${siteId} order by id`;
  return rows.map(({ eventId }) => eventId);
}

async function freshPartner(name: string): Promise<TestPartner & Named> {
  const { db } = world.database;
  const [plan] = await db.sql<{ id: number }[]>`select id from plans limit 1`;
  return { ...(await addPartner(db, name, plan?.id ?? 0)), name };
}

/** Makes a partner with rows in every table that can have rows of a partner, most of them through the API. */
async function fillPartner(name: string) {
  const { api, provider } = world;
  const { db } = world.database;
  const partner = await freshPartner(name);
  const sites = [
    await connectStore(db, partner.accounts[0], { provider }),
    await connectStore(db, partner.accounts[1], { provider }),
  ] as const;
  const token = await api.login(partner.owner.email);
  const call = (method: string, path: string, body?: object) =>
    api.call(method, path, { token, body });
  const receiver = await Receiver.start();
  const made = await call("POST", "/partner/webhooks", {
    label: name,
    webhook_url: receiver.url,
    delivery_kind: "immediate",
  });
  const subscription = String(made.body["id"]);
  const { body: batched } = await call("POST", "/partner/webhooks", {
    label: name,
    webhook_url: receiver.url,
    delivery_kind: "batch",
    batch_interval_hours: 24,
  });
  const batch = String(batched["id"]);
  const dispatcher = startDispatcher({ db, box: api.deps.box, schedule: stores.schedule });
  const path = `/partner/webhooks/${subscription}`;
  for (const [i, site] of sites.entries())
    await report(api, provider, [created(site, `${name}-delivered-${i}`)]);
  await call("POST", `${path}/test`, {});
  await until("deliveries", async () => (await attemptsOf(subscription)) >= 3);
  await dispatcher.stop();
  await receiver.stop();
  // A skip, and then a backlog of both accounts.
  await call("POST", `${path}/disable`);
  await report(api, provider, [created(sites[0], `${name}-skipped`)]);
  await call("POST", `${path}/enable`, { held: "skip" });
  for (const site of sites) {
    const [eventId = ""] = await eventsOfSite(site);
    await call("POST", `${path}/deliveries/${eventId}/redeliver`);
  }
  await call("POST", `${path}/disable`);
  for (let i = 0; i < 4; i++)
    for (const [n, site] of sites.entries())
      await report(api, provider, [created(site, `${name}-${n}-${i}`)]);
  await act(partner, `${name}-0-0`);
  await call("PATCH", "/partner/alerts", { webhook_url: "https://alerts.example/hook" });
  await call("PATCH", "/partner/embedding", { origins: ["https://frame.example"] });
  await call("POST", "/partner/portal-links", { pages: ["webhooks"] });
  await call("POST", "/partner/oauth-clients", { name, redirect_uris: ["https://app.example/cb"] });
  await addIntegration(api, token, { name });
  const pat = await call("POST", "/account/personal-access-tokens", {
    name,
    scopes: ["webhooks:read"],
  });
  await api.call("GET", "/partner/webhooks", { token: String(pat.body["access_token"]) });
  await call("POST", "/partner/account-owner/token", {
    account_id: partner.accounts[0].id,
    reason: name,
  });
  await asRoot("POST", "/admin/services", {
    name: `of ${ulid()}`,
    scopes: ["actions:write"],
    partner_ids: [partner.id],
  });
  await insertRest(partner, { subscription, batch, siteId: sites[0] });
  return { partner, sites, subscription, batch, token };
}

async function act(partner: TestPartner, externalId: string): Promise<void> {
  const token = await world.api.login(partner.accounts[0].owner.email);
  const { body } = await world.api.call(
    "GET",
    `/account/reviews?external_review_id=${externalId}`,
    {
      token,
    },
  );
  const [review] = body["data"] as { id: number }[];
  await world.api.call("POST", `/account/reviews/${review?.id}/assign`, {
    token,
    body: { user_id: partner.accounts[0].user.id },
  });
}

/** Inserts rows of tables that only time or an outside system would fill. */
async function insertRest(
  partner: TestPartner,
  {
    subscription,
    batch,
    siteId,
  }: { readonly subscription: string; readonly batch: string; readonly siteId: number },
): Promise<void> {
  const { db } = world.database;
  const { id: userId, email } = partner.admin;
  const incident = ulid();
  const connection = ulid();
  const sealed = world.api.deps.box.seal("s", `sso:${partner.id}:${connection}`);
  await db.sql`
    insert into incidents (id, subscription_id, partner_id, opened_at, failures, is_told)
    values (${incident}, ${subscription}, ${partner.id}, now(), 1, false)`;
  await db.sql`
    insert into alerts (id, incident_id, subscription_id, partner_id, kind, raised_at, cause, mail_state, webhook_state)
    values (${ulid()}, ${incident}, ${subscription}, ${partner.id}, 'failures_5', now(), '{}', 'none', 'none')`;
  await db.sql`
    insert into endpoint_checks (id, subscription_id, partner_id, created_at)
    values (${ulid()}, ${subscription}, ${partner.id}, now())`;
  await db.sql`
    insert into attempt_stats (subscription_id, step_s, bucket_at, outcome, bins, counts)
    values (${subscription}, 300, now(), 'delivered', '{1}', '{1}')`;
  await db.sql`
    insert into backlog_stats (subscription_id, bucket_at, entries) values (${subscription}, now(), 1)`;
  await db.sql`
    insert into sso_connections (id, company_id, issuer, client_id, sealed_client_secret, password_login, is_active,
                                 created_at, updated_at)
    values (${connection}, ${partner.id}, 'https://idp.example', 'c', ${sealed}, true, true, now(), now())`;
  await db.sql`
    insert into sso_domains (domain, connection_id) values (${`${partner.id}.example`}, ${connection})`;
  await db.sql`
    insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
    values ('https://idp.example', ${String(userId)}, ${userId}, ${connection}, now())`;
  await db.sql`
    insert into sso_states (state_hash, connection_id, browser_hash, return_to, created_at, expires_at)
    values (${ulid()}, ${connection}, 'b', '/', now(), now())`;
  await db.sql`
    insert into sso_codes (code_hash, user_id, connection_id, created_at, expires_at)
    values (${ulid()}, ${userId}, ${connection}, now(), now())`;
  await db.sql`
    insert into authorization_codes (secret_hash, state, client_id, user_id, redirect_uri, scope, issued_at, expires_at)
    select ${ulid()}, 'issued', client_id, ${userId}, 'https://app.example/cb', 'webhooks:read', now(), now()
      from oauth_clients where company_id = ${partner.id}`;
  await db.sql`
    insert into invitations (user_id, code_hash, created_at, expires_at)
    values (${userId}, ${ulid()}, now(), now())`;
  await db.sql`
    insert into second_factors (id, user_id, kind, name, credential_id, public_key, sign_count, created_at)
    values (${ulid()}, ${userId}, 'passkey', 'Key', ${ulid()}, '\\x01', 0, now())`;
  await db.sql`insert into recovery_codes (user_id, code_hash) values (${userId}, 'h')`;
  await db.sql`
    insert into second_factor_challenges (jti) select jti from tokens where user_id = ${partner.owner.id} limit 1`;
  const digest = emailDigest(email);
  await db.sql`
    insert into sign_in_locks (email_digest, failures, locks, last_failure_at) values (${digest}, 1, 0, now())`;
  await db.sql`
    insert into email_codes (email_digest, type, user_id, code_mac, tries, issued_at, expires_at)
    values (${digest}, 'forgot_password', ${userId}, 'm', 0, now(), now())`;
  await db.sql`
    insert into email_code_limits (email_digest, issued_at, wrong_at, touched_at) values (${digest}, '{}', '{}', now())`;
  await db.sql`
    insert into email_code_tries (email_digest, network, wrong_at, touched_at)
    values (${digest}, '203.0.113.7', '{}', now())`;
  await db.sql`
    insert into recoveries (subscription_id, since, events, through_at, through_id, skipped_through,
                            batch_skipped_through)
    values (${subscription}, now(), '{}', now(), 0, 0, 0)`;
  await db.sql`
    insert into batch_windows (subscription_id, id, opened_at, through) values (${batch}, ${ulid()}, now(), 0)`;
  const action = JSON.stringify({ id: ulid(), store_review_site_id: siteId });
  await db.sql`insert into inbox (service_id, action) values (1, ${action}::text::jsonb)`;
}

type Ids = Readonly<Record<string, readonly (number | string)[]>>;

/** Reads the ids of everything that belongs to a partner, by the names of the columns that refer to it. */
async function idsOf(partnerId: number): Promise<Ids> {
  const { sql } = world.database.db;
  const read = async (query: PromiseLike<readonly { id: number | string }[]>) =>
    (await query).map(({ id }) => id);
  const companies = await read(
    sql`select id from companies where id = ${partnerId} or partner_id = ${partnerId}`,
  );
  const users = await read(sql`select id from users where company_id = any(${companies})`);
  const names: Record<string, readonly (number | string)[]> = {
    store_id: await read(sql`select id from stores where partner_id = ${partnerId}`),
    store_review_site_id: await read(
      sql`select id from store_review_sites where partner_id = ${partnerId}`,
    ),
    review_id: await read(sql`select id from reviews where partner_id = ${partnerId}`),
    review_history_id: await read(
      sql`select id from review_history where partner_id = ${partnerId}`,
    ),
    event_id: await read(
      sql`select event_id as id from review_history where partner_id = ${partnerId}`,
    ),
    subscription_id: await read(
      sql`select id from webhook_subscriptions where partner_id = ${partnerId}`,
    ),
  };
  for (const name of ["company_id", "partner_id", "account_id"]) names[name] = companies;
  for (const name of ["user_id", "actor_id", "impersonator_id", "response_user_id", "acts_as"])
    names[name] = users;
  return names;
}

/** Finds the columns that still have one of the ids. */
async function references(ids: Ids): Promise<string[]> {
  const { sql } = world.database.db;
  const columns = await sql<{ table: string; column: string }[]>`
    select c.table_name as table, c.column_name as column
      from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'public' and t.table_type = 'BASE TABLE'`;
  const found: string[] = [];
  for (const { table, column } of columns) {
    const own = (ids[column] ?? []).map(String);
    if (own.length === 0) continue;
    const rows = await sql`select from ${sql(table)} where ${sql(column)}::text = any(${own})`;
    if (rows.length > 0) found.push(`${table}.${column}`);
  }
  return found;
}
