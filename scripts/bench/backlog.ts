// Inserts subscriptions and events with few statements, for benchmarks that do not measure the inserts.
import { randomBytes } from "node:crypto";

import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { webhookSecretAssociatedData } from "../../src/master-key.ts";
import type { RecordedAction } from "../../src/outbox/event.ts";
import { SHARDS, type Wake } from "../../src/outbox/schedule.ts";

const PADDING = "x".repeat(500);

export interface BenchSubscription extends Wake {
  readonly partnerId: number;
  readonly url: string;
}

/** Creates a subscription for each URL, for the given partners or each for a new partner. */
export async function subscribe(
  db: RawDb,
  key: Uint8Array,
  urls: readonly string[],
  owners?: readonly number[],
): Promise<BenchSubscription[]> {
  const box = createSecretBox({ current: key });
  const partners = owners ?? (await insertPartners(db, urls.length));
  const made = urls.map((url, n) => {
    const partnerId = partners[n] ?? 0;
    const subscriptionId = ulid();
    const secret = randomBytes(32).toString("hex");
    const sealed = box.seal(secret, webhookSecretAssociatedData(partnerId, subscriptionId));
    return { subscriptionId, partnerId, shard: n % SHARDS, url, sealed };
  });
  await db.sql`
    with rows as (
      select * from json_to_recordset(${JSON.stringify(made)}::text::json)
        as r("subscriptionId" text, "partnerId" int, shard smallint, url text, sealed text)
    ), subscriptions as (
      insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
        suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at)
      select "subscriptionId", "partnerId", shard, 'Bench', url, 'immediate', 'full', false, 'subscription', 'active',
             sealed, '0000000000000000', now(), now() from rows
    ), offsets as (
      insert into outbox_offsets (subscription_id) select "subscriptionId" from rows
    )
    insert into outbox_sequences (subscription_id) select "subscriptionId" from rows`;
  return made;
}

async function insertPartners(db: RawDb, count: number): Promise<number[]> {
  const rows = await db.sql<{ id: number }[]>`
    insert into companies (type, name, primary_color, created_at)
    select 'partner', 'Bench', '#000000', now() from generate_series(1, ${count}::int) returning id`;
  return rows.map(({ id }) => id);
}

export interface Place {
  readonly accountId: number;
  readonly storeId: number;
  readonly storeReviewSiteId: number;
  readonly reviewId: number;
}

/** Inserts the one account, store, site and review to which all events belong. */
export async function insertPlace(db: RawDb): Promise<Place> {
  const [row] = await db.sql<Place[]>`
    with plan as (insert into plans (name, features) values (${ulid()}, '{}') returning id),
    partner as (
      insert into companies (type, name, primary_color, created_at) values ('partner', 'P', '#000000', now()) returning id),
    account as (
      insert into companies (type, name, partner_id, plan_id, primary_color, created_at)
      select 'account', 'A', partner.id, plan.id, '#000000', now() from partner, plan returning id, partner_id),
    store as (insert into stores (account_id, partner_id, name) select id, partner_id, 'S' from account returning *),
    site as (insert into review_sites (slug, name, sealed_secret) values (${ulid()}, 'Site', '') returning id),
    connected as (
      insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
      select store.id, site.id, account_id, partner_id, true, true from store, site returning *),
    review as (
      insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                           reviewed_at, created_at, updated_at)
      select partner_id, account_id, store_id, id, 'x', 5, 'x', now(), now(), now() from connected returning *)
    select account_id as "accountId", store_id as "storeId", store_review_site_id as "storeReviewSiteId",
           id as "reviewId" from review`;
  if (row === undefined) throw new Error("No review was written.");
  return row;
}

function actionOf(
  place: Place,
  subscription: { readonly partnerId: number },
  padding: string,
): RecordedAction {
  return {
    eventId: ulid(),
    event: "review_received",
    partnerId: subscription.partnerId,
    ...place,
    actor: { type: "system", id: null, name: "google" },
    about: {
      review: {
        id: place.reviewId,
        external_review_id: "ext-1",
        store_id: place.storeId,
        review_site_id: 1,
        source_platform: "google",
        rate: 4,
        reviewer: "Ada",
      },
    },
    metadata: { rate: 4, padding },
    occurredAt: new Date(),
  };
}

/** Inserts many events for each subscription at once, without waking a dispatcher. */
export async function insertBacklog(
  db: RawDb,
  place: Place,
  subscriptions: readonly BenchSubscription[],
  { each, padding = PADDING }: { readonly each: number; readonly padding?: string },
): Promise<void> {
  const ids = subscriptions.map((one) => one.subscriptionId);
  const first = subscriptions[0] ?? { partnerId: 0, subscriptionId: "", shard: 0 };
  const { about, actor, event, metadata } = actionOf(place, first, padding);
  const review = JSON.stringify("review" in about ? about.review : {});
  await db.sql`
    with numbered as (
      update outbox_sequences set last_sequence = last_sequence + ${each}, last_logged = last_sequence + ${each}
       where subscription_id = any(${ids}::text[])
      returning subscription_id, last_sequence - ${each} as base
    )
    insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor,
      review, metadata, occurred_at, recorded_at, sequence, subscription_number, is_minimal)
    select lpad(upper(to_hex(s.partner_id)), 8, '0') || lpad((q.base + n)::text, 18, '0'), s.partner_id,
           ${place.accountId}, ${place.storeId}, ${place.reviewId}, ${place.storeReviewSiteId}, ${event},
           ${JSON.stringify(actor)}::text::json, ${review}::text::json, ${JSON.stringify(metadata)}::text::json, now(), now(),
           q.base + n, s.number, false
      from numbered q
      join webhook_subscriptions s on s.id = q.subscription_id
     cross join generate_series(1, ${each}::int) n`;
  await db.sql`analyze review_history`;
}

/**
 * Returns 1 while an entry of an active subscription is unsettled, else 0. It stops at the first such entry, so it is
 * cheap.
 */
export async function unsettled(db: RawDb): Promise<number> {
  const rows = await db.sql`
    (select from outbox limit 1)
     union all
    (select from outbox_sequences q
      where q.last_logged > (select settled_through from outbox_offsets where subscription_id = q.subscription_id)
        and (select state = 'active' from webhook_subscriptions where id = q.subscription_id)
      limit 1)
     limit 1`;
  return rows.length;
}

/** Deletes the subscriptions, so that they do not affect the next scenario. */
export async function dropSubscriptions(
  db: RawDb,
  subscriptions: readonly BenchSubscription[],
): Promise<void> {
  const ids = subscriptions.map((one) => one.subscriptionId);
  await db.sql`update webhook_subscriptions set state = 'deleted', deleted_at = now() where id = any(${ids}::text[])`;
}
