import { randomBytes, randomInt } from "node:crypto";

import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import type { RecordedAction } from "../../src/outbox/event.ts";
import { recordActions } from "../../src/outbox/queries.ts";
import type { Wake } from "../../src/outbox/schedule.ts";
import { webhookSecretContext } from "../../src/outbox/secret-context.ts";

/** One partner with one account, store, connected site and review: what an event refers to. */
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

export async function insertSubscription(
  deps: { db: RawDb; box: SecretBox },
  options: {
    partnerId: number;
    url: string;
    events?: string[];
    payloadMode?: "full" | "minimal";
    ordering?: "subscription" | "review";
    failures?: number;
    batch?: { intervalHours: number; nextAt: Date };
  },
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
      ${deps.box.seal(secret, webhookSecretContext(options.partnerId, id))}, '0123456789abcdef', ${at}, ${at},
      ${options.batch?.intervalHours ?? null}, ${options.batch?.nextAt ?? null})`;
  await deps.db.sql`insert into outbox_sequences (subscription_id) values (${id})`;
  await deps.db.sql`insert into outbox_offsets (subscription_id) values (${id})`;
  return { subscriptionId: id, shard, secret };
}

/** A review event of the tenant. */
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

export function record(db: RawDb, actions: readonly RecordedAction[]): Promise<Wake[]> {
  return db.transaction((tx) => recordActions(tx, actions, new Date()));
}
