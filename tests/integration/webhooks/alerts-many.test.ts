import { afterEach, beforeAll, beforeEach, expect, test } from "bun:test";

import type { Raised } from "../../../dispatcher/alerts/incidents.ts";
import { detectIncidents } from "../../support/alerts.ts";
import { createTestBox, silentLog } from "../../support/dispatch.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);

test("an alert that PostgreSQL rejects does not block alerts of other subscriptions, and is raised once the cause is removed", async () => {
  const [refused = ""] = ids.slice(60);
  const { sql } = database.db;
  await sql.unsafe(
    `alter table incidents add constraint refused check (subscription_id <> '${refused}') not valid`,
  );
  await disable();
  await look();
  expect(disabledOnes().toSorted()).toEqual(ids.filter((id) => id !== refused));
  expect(await countOf("mails")).toBe(MANY - 1);
  expect(logged).toContain(`alerts.stuck ${refused}`);
  const failures = () => logged.filter((one) => one === "alerts.failed").length;
  expect(failures()).toBeLessThan(20);
  await sql`update webhook_subscriptions set consecutive_failure_count = 19, state = 'active', disabled_at = null,
    disabled_reason = null where id = ${ids[0] ?? ""}`;
  await look();
  expect(raised.at(-1)?.subscriptionId).toBe(ids[0]);
  expect(disabledOnes()).not.toContain(refused);
  await sql.unsafe("alter table incidents drop constraint refused");
  await look();
  expect(disabledOnes()).toContain(refused);
  expect(await countOf("incidents")).toBe(MANY + 1);
});

test("a subscription that somebody has locked does not block alerts of the others, and has its own after that", async () => {
  const [locked = ""] = ids.slice(60);
  await disable();
  await database.connect().transaction(async ({ sql }) => {
    await sql`select from webhook_subscriptions where id = ${locked} for update`;
    await look();
  });
  expect(disabledOnes().toSorted()).toEqual(ids.filter((id) => id !== locked));
  await look();
  expect(disabledOnes()).toContain(locked);
});

test("a mail that cannot be composed does not block the mails of other partners", async () => {
  const { sql } = database.db;
  const [partner] = await sql<{ id: number }[]>`
    select partner_id as id from webhook_subscriptions where id = ${ids[60] ?? ""}`;
  await sql.unsafe(`
    alter table alerts add constraint refused
      check (partner_id <> ${partner?.id ?? 0} or mail_state <> 'queued') not valid`);
  await disable();
  await look();
  expect(disabledOnes()).toHaveLength(MANY);
  expect(await countOf("mails")).toBe(MANY - 1);
  await sql.unsafe("alter table alerts drop constraint refused");
  await look();
  expect(await countOf("mails")).toBe(MANY);
});

const MANY = 101;

const box = createTestBox();

let ids: string[];

let raised: Raised[];

let logged: string[];

beforeAll(async () => {
  const rows = await database.db.sql<{ id: string }[]>`
    with partners as (
      insert into companies (type, name, primary_color, created_at)
      select 'partner', 'Partner ' || n, '#123456', now() from generate_series(1, ${MANY}::int) n returning id
    ), owners as (
      insert into users (company_id, email, name, role, is_active, created_at, updated_at)
      select id, id || '@partner.example', 'Owner', 'partner_owner', true, now(), now() from partners
    )
    insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
      suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at)
    select 'S' || lpad(id::text, 8, '0'), id, id % 64, 'Test', 'https://receiver.example/', 'immediate', 'full', false,
           'subscription', 'active', '', '0123456789abcdef', now(), now()
      from partners returning id`;
  ids = rows.map((row) => row.id).toSorted();
});

beforeEach(() => {
  raised = [];
  logged = [];
});

afterEach(async () => {
  await database.db.sql`truncate alerts, incidents, mails`;
  await enable();
});

const disable = () => database.db.sql`
  update webhook_subscriptions
     set state = 'disabled', consecutive_failure_count = 20, disabled_at = now(), disabled_reason = 'x'`;

const enable = (id?: string) => database.db.sql`
  update webhook_subscriptions
     set state = 'active', consecutive_failure_count = 0, disabled_at = null, disabled_reason = null,
         deleted_at = null
   where ${id ?? null}::text is null or id = ${id ?? ""}`;

async function look(): Promise<void> {
  const note = (event: string, fields: object = {}) =>
    void logged.push(`${event} ${String(Reflect.get(fields, "subscription_id") ?? "")}`.trim());
  const log = { ...silentLog, warn: note, error: note };
  raised.push(...(await detectIncidents({ db: database.db, log, box })));
}

const disabledOnes = () =>
  raised.flatMap(({ kind, subscriptionId }) => (kind === "disabled" ? [subscriptionId] : []));

const countOf = async (table: "incidents" | "mails") =>
  (await database.db.sql.unsafe(`select from ${table}`)).length;
