// The upgrade of a database from before the baseline (db/upgrades/baseline.sql).
import { afterAll, beforeAll, expect, test } from "bun:test";

import { ulid } from "ulid";

import { migrate, schemaState } from "../../../db/migrate.ts";
import { removeSkipped } from "../../../dispatcher/maintenance/removal-queries.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { showHealth } from "../../../src/webhooks/actions/stats.ts";
import { deliveryOf } from "../../../src/webhooks/queries/events.ts";
import { subscriptionById } from "../../../src/webhooks/queries/subscriptions.ts";
import { createTestBox, createTestSchedule, startDispatcher } from "../../support/dispatch.ts";
import {
  insertSubscriptionRow,
  insertTenant,
  record,
  reviewAction,
  type Tenant,
  type TestSubscription,
} from "../../support/outbox.ts";
import { removeAll } from "../../support/maintenance.ts";
import { catalogOf } from "../../support/declared-schema.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";

const stores = fixture(createTestSchedule);
const receiver = fixture(() => Receiver.start());
const database = fixture(createDatabase);

test("queued and skipped entries of a database from before the baseline keep their states", async () => {
  const active = await old(
    ["expired", "queued", "queued", "skipped", "delivered", "waiting", "expired", "test", "queued"],
    { marked: 4 },
  );
  const held = await old(["expired", "expired", "delivered", "queued", "queued"], {
    state: "disabled",
  });
  const deleted = await old(["deleted", "queued"], { marked: 2, state: "deleted" });
  const expiredAlone = await old(["skipped", "expired"], { marked: 2 });

  await migrate(database.url);

  expect(await statesOf(active)).toEqual([
    "skipped",
    "skipped",
    "skipped",
    "skipped",
    "delivered",
    "waiting",
    "skipped",
    "pending",
    "pending",
  ]);
  expect(await statesOf(held)).toEqual(["skipped", "skipped", "delivered", "pending", "pending"]);
  expect(await statesOf(deleted)).toEqual(["skipped", "skipped"]);
  expect(await statesOf(expiredAlone)).toEqual(["skipped", "skipped"]);
  expect(await healthOf(active)).toMatchObject({
    pending: 3,
    expired24h: 2,
    blockedBy: active.eventIds[5],
  });
  expect(await healthOf(held)).toMatchObject({ held: 2, expired24h: 2 });
  expect(await healthOf(expiredAlone)).toMatchObject({ pending: 0, expired24h: 1 });

  const dispatcher = startDispatcher({ db: database.connect(), box, schedule: stores.schedule });
  try {
    const actions = [reviewAction(active.tenant), reviewAction(active.tenant)];
    await stores.schedule.wake(await record(database.db, actions));
    const events = [5, 8]
      .map((i) => active.eventIds[i] ?? "")
      .concat(actions.map(({ eventId }) => eventId));
    await until("all that is queued", () => receiver.received.length === events.length + 1);
    const isTest = (eventId: string) => eventId === active.eventIds[7];
    expect(receiver.eventIds.filter((eventId) => !isTest(eventId))).toEqual(events);
    expect(receiver.eventIds.filter(isTest)).toHaveLength(1);
    const { sql } = database.db;
    const left = async () =>
      (
        await sql`select from queued_entries where subscription_id = ${active.subscription.subscriptionId}`
      ).length;
    await until("all records", async () => (await left()) === 0);
    await sql`
      update webhook_subscriptions set state = 'active', disabled_at = null, disabled_reason = null
       where id = ${held.subscription.subscriptionId}`;
    await stores.schedule.wake([held.subscription]);
    const more = events.length + 3;
    await until("what was held", () => receiver.received.length === more);
    expect(receiver.eventIds.slice(-2)).toEqual(held.eventIds.slice(-2));
  } finally {
    await dispatcher.stop();
  }
});

test("the upgraded database has the schema of a new one", async () => {
  const fresh = await createDatabase();
  try {
    expect(await schemaState(database.db)).toEqual({ kind: "current" });
    expect(await catalogOf(database.db, "public")).toEqual(await catalogOf(fresh.db, "public"));
    expect(await objectsOf(database.db)).toEqual(await objectsOf(fresh.db));
  } finally {
    await fresh.drop();
  }
});

/** Reads the definitions of all indexes, triggers, functions and views, and the storage parameters of all tables. */
async function objectsOf({ sql }: TestDatabase["db"]): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select indexdef as line from pg_indexes where schemaname = 'public' and tablename !~ '_[0-9]{8}$'
    union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
    union all select pg_get_viewdef(oid) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'
    union all select concat_ws(' ', relname, reloptions) from pg_class
               where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname !~ '_[0-9]{8}$'
    union all select concat_ws(' ', 'job', name) from maintenance_jobs
    order by 1`;
  return rows.map(({ line }) => line);
}

test("entries that were skipped before the upgrade are deleted when they are old, and no others", async () => {
  const { sql } = database.db;
  const count = async () => (await sql`select from outbox`).length;
  const before = await count();
  expect(before).toBeGreaterThan(0);
  expect(await removeAll(removeSkipped, database.db, DAYS)).toBe(0);
  await sql`update outbox set skipped_at = now() - interval '31 days' where skipped_at is not null`;
  await sql`update outbox_skips set skipped_at = now() - interval '31 days'`;
  expect(await removeAll(removeSkipped, database.db, DAYS)).toBe(before);
  expect(await sql`select from outbox_skips`).toHaveLength(0);
});

const DAYS = 30;

const HOUR = "1 hour";

const box = createTestBox();

beforeAll(async () => {
  const { sql } = database.db;
  await sql.unsafe("drop schema public cascade; create schema public; drop schema drizzle cascade");
  await sql.unsafe(await Bun.file(`${import.meta.dir}/schema-0022.sql`).text());
});

afterAll(async () => {
  await stores.flush();
});

type Kind = "queued" | "waiting" | "test" | "delivered" | "skipped" | "expired" | "deleted";

interface Old {
  readonly tenant: Tenant;
  readonly subscription: TestSubscription;
  /** Event ids by sequence, from 1. */
  readonly eventIds: readonly string[];
}

/** Creates a subscription with these entries, in the order of their sequence. Those up to `marked` are skipped. */
async function old(
  kinds: readonly Kind[],
  {
    marked = 0,
    state = "active",
  }: { marked?: number; state?: "active" | "disabled" | "deleted" } = {},
): Promise<Old> {
  const { sql } = database.db;
  const tenant = await insertTenant(database.db);
  const { partnerId } = tenant;
  const subscription = await insertSubscriptionRow(
    { db: database.db, box },
    { partnerId, url: receiver.url },
  );
  const { subscriptionId: id, shard } = subscription;
  if (state !== "deleted")
    await sql`insert into outbox_sequences (subscription_id, last_sequence) values (${id}, ${kinds.length})`;
  await sql`
    update webhook_subscriptions
       set state = ${state}, disabled_at = case when ${state} = 'disabled' then now() end,
           disabled_reason = case when ${state} = 'disabled' then 'manual' end,
           deleted_at = case when ${state} = 'deleted' then now() end
     where id = ${id}`;
  const eventIds: string[] = [];
  for (const [i, kind] of kinds.entries())
    eventIds.push(await oldEntry(tenant, { id, shard }, i + 1, kind));
  if (marked > 0)
    await sql`
      insert into outbox_marks (subscription_id, shard, through, reason, settled_at)
      values (${id}, ${shard}, ${marked}, ${state === "deleted" ? "deleted" : "skipped"}, now() - ${HOUR}::interval)`;
  return { tenant, subscription, eventIds };
}

async function oldEntry(
  tenant: Tenant,
  { id, shard }: { id: string; shard: number },
  sequence: number,
  kind: Kind,
): Promise<string> {
  const { sql } = database.db;
  const eventId = ulid();
  const isTest = kind === "test";
  const history = isTest ? null : await oldHistory(tenant, eventId);
  const [review = 0] = tenant.reviewIds;
  if (kind === "expired" || kind === "skipped" || kind === "deleted")
    await sql`
      insert into settled_entries (subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id,
        review_id, round, reason, recorded_at, settled_at)
      values (${id}, ${sequence}, ${eventId}, 'review_received', false, 'full', ${history}, ${review}, 1, ${kind},
        now() - interval '2 days', now() - ${HOUR}::interval)`;
  else if (kind !== "delivered")
    await sql`
      insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id,
        review_id, attempt, state, due_at, recorded_at)
      values (${shard}, ${id}, ${sequence}, ${eventId}, ${isTest ? "webhook.test" : "review_received"}, ${isTest}, 'full', ${history},
        ${isTest ? null : review}, ${kind === "waiting" ? 2 : 1}, ${kind === "waiting" ? "waiting" : "pending"},
        case when ${kind} = 'waiting' then now() end, now() - ${HOUR}::interval)`;
  if (kind === "waiting" || kind === "delivered")
    await sql`
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms,
        outcome, request_headers, request_body, response_truncated, next_attempt_at, payload_mode, recorded_at)
      values (${ulid()}, ${id}, ${sequence}, ${eventId}, 'review_received', 1, 1, now() - ${HOUR}::interval, 1,
        ${kind === "waiting" ? "retry" : "delivered"}, '{}', '{}', false,
        case when ${kind} = 'waiting' then now() end,
        case when ${kind} = 'delivered' then 'full' end, case when ${kind} = 'delivered' then now() end)`;
  return eventId;
}

async function oldHistory(tenant: Tenant, eventId: string): Promise<number> {
  const { about } = reviewAction(tenant);
  const review = "review" in about ? about.review : null;
  const [row] = await database.db.sql<{ id: number }[]>`
    insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor,
      review, metadata, occurred_at, recorded_at)
    values (${eventId}, ${tenant.partnerId}, ${tenant.accountId}, ${tenant.storeId}, ${tenant.reviewIds[0] ?? 0},
      ${tenant.storeReviewSiteId}, 'review_received', '{"type":"system","id":null,"name":"google"}',
      ${JSON.stringify(review)}::text::jsonb, '{}', now(), now() - ${HOUR}::interval) returning id`;
  return row?.id ?? 0;
}

const statesOf = async ({ subscription, eventIds }: Old) =>
  Promise.all(
    eventIds.map(
      async (eventId) =>
        (await deliveryOf(database.db, subscription.subscriptionId, eventId))?.state,
    ),
  );

async function healthOf({ tenant, subscription }: Old) {
  const found = await subscriptionById(database.db, tenant.partnerId, subscription.subscriptionId);
  if (found === undefined) throw new Error("There is no such subscription.");
  return showHealth({ db: database.db, clock: systemClock }, found);
}
