import { randomBytes, randomInt } from "node:crypto";

import { ulid } from "ulid";

import type { RawDb, RawTx } from "../../db/client.ts";
import { passLogged } from "../../db/log.ts";
import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import type { RecordedAction } from "../../src/outbox/event.ts";
import { holdSequences, recordActions } from "../../src/outbox/queries.ts";
import type { Wake } from "../../src/outbox/schedule.ts";
import { webhookSecretAssociatedData } from "../../src/master-key.ts";

/** A limit above the longest queue of any test. */
const MANY = 1_000_000;

/** The rows that an event refers to: a partner with one account, one store, one connected review site, and reviews. */
export interface Tenant {
  readonly partnerId: number;
  readonly accountId: number;
  readonly storeId: number;
  readonly storeReviewSiteId: number;
  readonly reviewSiteId: number;
  readonly reviewIds: number[];
}

export async function insertTenant(db: RawDb, reviews = 1): Promise<Tenant> {
  const tag = ulid();
  const at = new Date();
  const id = async (query: PromiseLike<{ id?: number }[]>) => (await query)[0]?.id ?? 0;
  const plan = await id(
    db.sql`insert into plans (name, features) values (${tag}, '{}') returning id`,
  );
  const partnerId = await id(
    db.sql`insert into companies (type, name, primary_color, created_at) values ('partner', ${tag}, '#123456', ${at}) returning id`,
  );
  const accountId = await id(
    db.sql`insert into companies (type, name, partner_id, plan_id, primary_color, created_at)
           values ('account', ${tag}, ${partnerId}, ${plan}, '#123456', ${at}) returning id`,
  );
  const storeId = await id(
    db.sql`insert into stores (account_id, partner_id, name) values (${accountId}, ${partnerId}, 'Store') returning id`,
  );
  const reviewSiteId = await id(
    db.sql`insert into review_sites (slug, name, sealed_secret) values (${tag}, 'Site', '') returning id`,
  );
  const storeReviewSiteId = await id(
    db.sql`insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
           values (${storeId}, ${reviewSiteId}, ${accountId}, ${partnerId}, true, true) returning id`,
  );
  const rows = await db.sql<{ id: number }[]>`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                         reviewed_at, created_at, updated_at)
    select ${partnerId}, ${accountId}, ${storeId}, ${storeReviewSiteId}, 'ext-' || n, 5, 'Fine', ${at}, ${at}, ${at}
      from generate_series(1, ${reviews}::int) n returning id`;
  return {
    partnerId,
    accountId,
    storeId,
    storeReviewSiteId,
    reviewSiteId,
    reviewIds: rows.map((row) => row.id),
  };
}

export interface TestSubscription extends Wake {
  readonly secret: string;
}

export interface SubscriptionOptions {
  partnerId: number;
  url: string;
  events?: string[];
  payloadMode?: "full" | "minimal";
  ordering?: "subscription" | "review";
  failures?: number;
  batch?: { intervalHours: number; nextAt: Date };
}

export async function insertSubscription(
  deps: { db: RawDb; box: SecretBox },
  options: SubscriptionOptions,
): Promise<TestSubscription> {
  const id = ulid();
  const shard = randomInt(64);
  const secret = randomBytes(32).toString("hex");
  const at = new Date();
  await deps.db.sql`
    insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, events, payload_mode,
      suppress_native_notifications, ordering, state, consecutive_failure_count, sealed_secret, secret_fingerprint,
      created_at, updated_at, batch_interval_hours, next_batch_at)
    values (${id}, ${options.partnerId}, ${shard}, 'Test', ${options.url}, ${options.batch ? "batch" : "immediate"}, ${options.events ?? null},
      ${options.payloadMode ?? "full"}, false, ${options.ordering ?? "subscription"}, 'active', ${options.failures ?? 0},
      ${deps.box.seal(secret, webhookSecretAssociatedData(options.partnerId, id))}, '0123456789abcdef', ${at}, ${at},
      ${options.batch?.intervalHours ?? null}, ${options.batch?.nextAt ?? null})`;
  await deps.db.sql`insert into outbox_sequences (subscription_id) values (${id})`;
  await deps.db.sql`insert into outbox_offsets (subscription_id) values (${id})`;
  return { subscriptionId: id, shard, secret };
}

/** Builds an action on the first review of the tenant: `review_received`, unless `overrides` names another event. */
export function reviewAction(
  tenant: Tenant,
  overrides: Partial<RecordedAction> = {},
): RecordedAction {
  const reviewId = overrides.reviewId ?? tenant.reviewIds[0] ?? 0;
  return {
    eventId: ulid(),
    event: "review_received",
    partnerId: tenant.partnerId,
    accountId: tenant.accountId,
    storeId: tenant.storeId,
    storeReviewSiteId: tenant.storeReviewSiteId,
    reviewId,
    actor: { type: "system", id: null, name: "google" },
    about: {
      review: {
        id: reviewId,
        external_review_id: "ext-1",
        store_id: tenant.storeId,
        review_site_id: tenant.reviewSiteId,
        source_platform: "google",
        rate: 4,
        reviewer: "Ada",
      },
    },
    metadata: { rate: 4 },
    occurredAt: new Date("2026-06-01T12:00:00.000Z"),
    ...overrides,
  };
}

export function record(
  db: RawDb,
  actions: readonly RecordedAction[],
  now = new Date(),
): Promise<Wake[]> {
  const partners = [...new Set(actions.map(({ partnerId }) => partnerId))];
  return db.transaction(async (tx) => {
    if (partners.length > 1) await holdSequences(tx, partners, true);
    return recordActions(tx, actions, now);
  });
}

/** Records actions in a transaction that stays open. `recordActions` alone would send the commit with its statement. */
export function recordFirst(tx: RawTx, actions: readonly RecordedAction[]): Promise<Wake[]> {
  return recordActions({ ...tx, runLast: tx.run.bind(tx) }, actions, new Date());
}

/**
 * Empties the queue of one subscription, or of all: deletes the outbox rows and moves the offsets to the end of the
 * log.
 */
export async function forgetQueue(db: RawDb, subscriptionId?: string): Promise<void> {
  const id = subscriptionId ?? null;
  await db.sql`delete from outbox where ${id}::text is null or subscription_id = ${id}`;
  await db.sql`
    update outbox_offsets f set settled_through = greatest(f.settled_through, q.last_logged)
      from outbox_sequences q
     where q.subscription_id = f.subscription_id and (${id}::text is null or f.subscription_id = ${id})`;
}

/** Moves the offset of a subscription past its whole log, which gives every queued event a row in `outbox`. */
export async function passQueue(db: RawDb, subscriptionId: string): Promise<void> {
  await passLogged(db, subscriptionId, { limit: MANY, lockMs: 1_000 });
}

/** Sets all queued events of a subscription to wait for a retry: attempt number `attempt`, due at `dueAt`. */
export async function makeWait(
  db: RawDb,
  subscriptionId: string,
  { attempt = 2, dueAt = new Date() }: { attempt?: number; dueAt?: Date } = {},
): Promise<void> {
  await passQueue(db, subscriptionId);
  await db.sql`
    update outbox set state = 'waiting', attempt = ${attempt}, due_at = ${dueAt}
     where subscription_id = ${subscriptionId} and skipped_at is null`;
}

/**
 * Appends `count` copies of the last event of a subscription's log to its queue. They are events of the log, or with
 * `rows` separate rows of `outbox`. Answers the event id of the last copy.
 */
export async function queueCopies(
  db: RawDb,
  subscriptionId: string,
  count: number,
  kind: "log" | "rows" = "log",
): Promise<string> {
  return db.transaction(async ({ sql }) => {
    const [last] = await sql<{ sequence: number; logged: number; number: number; id: number }[]>`
      select q.last_sequence as sequence, q.last_logged as logged, s.number, h.id
        from outbox_sequences q
        join webhook_subscriptions s on s.id = q.subscription_id
       cross join lateral (select max(id) as id from review_history where subscription_number = s.number) h
       where q.subscription_id = ${subscriptionId} for update of q`;
    if (last === undefined) throw new Error(`No subscription ${subscriptionId}`);
    const { sequence, logged, number, id } = last;
    const prefix = `01${String(number).padStart(6, "0")}`;
    await sql`
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, axis,
        actor, review, site, metadata, occurred_at, recorded_at, sequence, subscription_number, is_minimal, gap)
      select ${prefix} || lpad((${sequence} + n)::text, 18, '0'), partner_id, account_id, store_id, review_id, store_review_site_id, event, axis,
             actor, review, site, metadata, occurred_at, recorded_at,
             case when ${kind} = 'log' then ${sequence} + n end, case when ${kind} = 'log' then ${number}::int end,
             case when ${kind} = 'log' then is_minimal end,
             case when ${kind} = 'log' and n = 1 then nullif(${sequence - logged}::int, 0) end
        from review_history, generate_series(1, ${count}::int) n where id = ${id}`;
    if (kind === "rows")
      await sql`
        insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at)
        select s.shard, s.id, right(h.event_id, 18)::bigint, h.event_id, h.event, 'full', h.id, h.review_id, h.recorded_at
          from review_history h, webhook_subscriptions s
         where s.id = ${subscriptionId} and h.id > ${id} and h.event_id like ${prefix} || '%' and h.sequence is null`;
    await sql`
      update outbox_sequences
         set last_sequence = ${sequence + count},
             last_logged = case when ${kind} = 'log' then ${sequence + count} else last_logged end
       where subscription_id = ${subscriptionId}`;
    return prefix + String(sequence + count).padStart(18, "0");
  });
}

/** Builds the record of an attempt at an event of the log. By default it failed with status 500. */
export function attemptRecord(
  fields: Pick<AttemptRecord, "id" | "shard" | "subscriptionId" | "sequence" | "eventId"> &
    Partial<AttemptRecord>,
): AttemptRecord {
  return {
    isLogged: true,
    erasures: 0,
    event: "review_received",
    round: 1,
    attempt: 1,
    startedAt: new Date(),
    durationMs: 1,
    statusCode: 500,
    errorCode: "http_status",
    tlsReason: null,
    payloadFormat: 1,
    host: "partner.example",
    signature: "5a".repeat(32),
    previousSignature: null,
    bodyDigest: "d1".repeat(16),
    standardSignatures: null,
    sentNumber: null,
    sentSettled: null,
    headerNames: null,
    requestHeaders: null,
    requestBody: null,
    payloadMode: "full",
    batchJobId: null,
    recordedAt: new Date(),
    responseHeaders: null,
    responseExcerpt: null,
    responseTruncated: false,
    resent: false,
    possiblyRepeated: false,
    endedMs: 0,
    decision: { kind: "failed" },
    ...fields,
  };
}
