// Writes the tenants, subscriptions and events of a run, mostly with few statements and without the API.
import { createHmac, randomBytes } from "node:crypto";

import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";
import { BASE_PATH } from "../../src/http/access.ts";
import { providerSecretContext } from "../../src/intake/provider-model.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSecretBox, newSecret } from "../../src/lib/secrets.ts";
import { webhookSecretAssociatedData } from "../../src/master-key.ts";
import { createSchedule, type Schedule, SHARDS, type Wake } from "../../src/outbox/schedule.ts";
import type { Rig } from "./rig.ts";

const PROVIDER = "live";
export const EVENTS_PATH = `${BASE_PATH}/providers/${PROVIDER}/events`;

export type Sign = (body: string) => string;

/** Adds the provider and returns its signing function. */
export async function addProvider({ db, masterKey }: Pick<Rig, "db" | "masterKey">): Promise<Sign> {
  const secret = newSecret();
  const box = createSecretBox({ current: masterKey });
  const sealed = box.seal(secret, providerSecretContext(PROVIDER));
  await db.sql`insert into review_sites (slug, name, sealed_secret) values (${PROVIDER}, 'Live', ${sealed})`;
  return (body) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

export interface Partner {
  readonly partnerId: number;
  readonly siteId: number;
}

/** Adds partners, each with an account, a store and a site of the provider. */
export async function addPartners(db: RawDb, count: number): Promise<Partner[]> {
  return db.sql<Partner[]>`
    with plan as (
      insert into plans (name, features) values ('live ' || clock_timestamp(), '{}') returning id
    ), partners as (
      insert into companies (type, name, primary_color, created_at)
      select 'partner', 'Live', '#000000', now() from generate_series(1, ${count}::int) returning id
    ), accounts as (
      insert into companies (type, name, partner_id, plan_id, primary_color, created_at)
      select 'account', 'Live', partners.id, plan.id, '#000000', now() from partners, plan returning id, partner_id
    ), places as (
      insert into stores (account_id, partner_id, name) select id, partner_id, 'Live' from accounts returning *
    )
    insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
    select places.id, review_sites.id, account_id, partner_id, true, true
      from places, review_sites where slug = ${PROVIDER}
    returning partner_id as "partnerId", id as "siteId"`;
}

/** Inserts reviews at each site and returns their ids. */
export async function addReviews(
  db: RawDb,
  partners: readonly Partner[],
  names: readonly string[],
): Promise<number[]> {
  const rows = await db.sql<{ id: number }[]>`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                         reviewed_at, created_at, updated_at)
    select partner_id, account_id, store_id, id, name, 5, 'x', now(), now(), now()
      from store_review_sites, unnest(${[...names]}::text[]) as name
     where id = any(${partners.map(({ siteId }) => siteId)}::int[])
    returning id`;
  return rows.map(({ id }) => id);
}

export interface BenchSubscription extends Wake {
  readonly partnerId: number;
  readonly url: string;
}

/** Creates a subscription for each URL, for the given partners or each for a new partner. */
export async function subscribe(
  { db, masterKey }: Pick<Rig, "db" | "masterKey">,
  urls: readonly string[],
  owners?: readonly Partner[],
): Promise<BenchSubscription[]> {
  const box = createSecretBox({ current: masterKey });
  const partners = owners ?? (await addPartners(db, urls.length));
  const made = urls.map((url, n) => {
    const partnerId = partners[n]?.partnerId ?? 0;
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

/** Switches subscriptions to ordering by review. */
export async function orderByReview(
  db: RawDb,
  subscriptions: readonly BenchSubscription[],
): Promise<void> {
  const ids = subscriptions.map((one) => one.subscriptionId);
  await db.sql`update webhook_subscriptions set ordering = 'review' where id = any(${ids}::text[])`;
}

/** Deletes the subscriptions, so that they do not affect the next scenario. */
export async function dropSubscriptions(
  db: RawDb,
  subscriptions: readonly BenchSubscription[],
): Promise<void> {
  const ids = subscriptions.map((one) => one.subscriptionId);
  await db.sql`update webhook_subscriptions set state = 'deleted', deleted_at = now() where id = any(${ids}::text[])`;
}

/** The schedule in Redis, with which a benchmark wakes the dispatcher. */
export async function openSchedule({ stores, atEnd }: Rig): Promise<Schedule> {
  const log = createLog({ level: "warn", role: "bench", clock: systemClock });
  const redis = await connectRedis(stores.redisUrl, log);
  atEnd(() => redis.disconnect());
  return createSchedule(redis, stores.redisPrefix, log);
}

export interface Place {
  readonly accountId: number;
  readonly storeId: number;
  readonly storeReviewSiteId: number;
  readonly reviewId: number;
}

/** Adds the provider, and the one account, store, site and review to which all events of a backlog belong. */
export async function addPlace(rig: Pick<Rig, "db" | "masterKey">): Promise<Place> {
  await addProvider(rig);
  const [reviewId = 0] = await addReviews(rig.db, await addPartners(rig.db, 1), ["x"]);
  const [place] = await rig.db.sql<Place[]>`
    select account_id as "accountId", store_id as "storeId", store_review_site_id as "storeReviewSiteId",
           id as "reviewId" from reviews where id = ${reviewId}`;
  if (place === undefined) throw new Error("No review was written.");
  return place;
}

const ACTOR = '{"type":"system","id":null,"name":"google"}';

interface Events {
  /** The review of each event, as an id and as the JSON in the body. */
  readonly reviews: readonly { readonly id: number; readonly json: string }[];
  readonly metadata: object;
  /** How often the events repeat. */
  readonly each?: number;
}

/** Returns the sequence number that an event id of `appendEvents` contains. */
export function sequenceOf(eventId: string): number {
  return Number(eventId.slice(8));
}

/** Appends events to the log of each subscription without waking a dispatcher. Returns the last event id. */
export async function appendEvents(
  db: RawDb,
  place: Place,
  subscriptions: readonly BenchSubscription[],
  { reviews, metadata, each = 1 }: Events,
): Promise<string> {
  const ids = subscriptions.map((one) => one.subscriptionId);
  const count = reviews.length * each;
  const [last] = await db.sql<{ eventId: string }[]>`
    with numbered as (
      update outbox_sequences set last_sequence = last_sequence + ${count}, last_logged = last_sequence + ${count}
       where subscription_id = any(${ids}::text[])
      returning subscription_id, last_sequence - ${count} as base
    ), events as (
      select review_id, review, (turn - 1) * ${reviews.length}::int + nth as n
        from generate_series(1, ${each}::int) as turn,
             unnest(${reviews.map(({ id }) => id)}::int[], ${reviews.map(({ json }) => json)}::text[])
               with ordinality as r(review_id, review, nth)
    ), written as (
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor,
        review, metadata, occurred_at, recorded_at, sequence, subscription_number, is_minimal)
      select lpad(upper(to_hex(s.partner_id)), 8, '0') || lpad((q.base + n)::text, 18, '0'), s.partner_id,
             ${place.accountId}, ${place.storeId}, events.review_id, ${place.storeReviewSiteId}, 'review_received',
             ${ACTOR}::text::json, events.review::json, ${JSON.stringify(metadata)}::text::json, now(), now(), q.base + n,
             s.number, false
        from numbered q
        join webhook_subscriptions s on s.id = q.subscription_id
       cross join events
      returning event_id
    )
    select max(event_id) as "eventId" from written`;
  return last?.eventId ?? "";
}

const PADDING = "x".repeat(500);

/** Appends many equal events for each subscription at once, without waking a dispatcher. */
export async function insertBacklog(
  db: RawDb,
  place: Place,
  subscriptions: readonly BenchSubscription[],
  { each, padding = PADDING }: { readonly each: number; readonly padding?: string },
): Promise<void> {
  const review = {
    id: place.reviewId,
    external_review_id: "ext-1",
    store_id: place.storeId,
    review_site_id: 1,
    source_platform: "google",
    rate: 4,
    reviewer: "Ada",
  };
  await appendEvents(db, place, subscriptions, {
    reviews: [{ id: place.reviewId, json: JSON.stringify(review) }],
    metadata: { rate: 4, padding },
    each,
  });
  await db.sql`analyze review_history`;
}

/** Whether an entry of an active subscription is unsettled. The query stops at the first such entry, so it is cheap. */
export async function isUnsettled(db: RawDb): Promise<boolean> {
  const rows = await db.sql`
    (select from outbox limit 1)
     union all
    (select from outbox_sequences q
      where q.last_logged > (select settled_through from outbox_offsets where subscription_id = q.subscription_id)
        and (select state = 'active' from webhook_subscriptions where id = q.subscription_id)
      limit 1)
     limit 1`;
  return rows.length > 0;
}
