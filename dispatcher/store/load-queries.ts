import type { Db } from "../../db/client.ts";
import type { LoadRequest } from "../actor/event.ts";
import type { Axis, PayloadMode } from "../../src/outbox/event.ts";

/** A subscription that may be delivered to, as stored. */
export interface SubscriptionRow {
  readonly id: string;
  readonly shard: number;
  readonly partnerId: number;
  readonly webhookUrl: string;
  readonly ordering: "subscription" | "review";
  readonly sealedSecret: string;
  readonly sealedPreviousSecret: string | null;
  readonly nextBatchAt: Date | null;
}

/** Those of the given subscriptions that are active. A previous secret is answered only while its grace period runs. */
export async function activeSubscriptions(
  db: Db,
  ids: readonly string[],
  now: Date,
): Promise<SubscriptionRow[]> {
  return db.sql<SubscriptionRow[]>`
    select id, shard, partner_id as "partnerId", webhook_url as "webhookUrl", ordering,
           sealed_secret as "sealedSecret", next_batch_at as "nextBatchAt",
           case when previous_secret_expires_at > ${now} then sealed_previous_secret end as "sealedPreviousSecret"
      from webhook_subscriptions
     where id = any(${ids}::text[]) and state = 'active'`;
}

/** An entry with the facts of its event; the facts are null for a test event. */
export interface EntryRow {
  readonly subscriptionId: string;
  readonly sequence: number;
  readonly eventId: string;
  readonly event: string;
  readonly isTest: boolean;
  readonly payloadMode: PayloadMode;
  readonly reviewId: number | null;
  readonly round: number;
  readonly attempt: number;
  readonly dueAt: Date | null;
  readonly reviewHistoryId: number | null;
  /** Of a test event when it was asked for. */
  readonly occurredAt: Date;
  readonly storeId: number | null;
  readonly storeReviewSiteId: number | null;
  readonly axis: Axis | null;
  readonly actorJson: string | null;
  readonly reviewJson: string | null;
  readonly siteJson: string | null;
  readonly metadataJson: string | null;
}

const TESTS_LIMIT = 16;

/** Above every sequence. */
const NO_END = "9223372036854775807";

/**
 * The next entries of several subscriptions, each in the order of its sequence, and their test events. The bounds are
 * rows, because the planner takes those for wide and so walks the primary key up to the limit: of bounds on single
 * columns it expects a few rows, and then reads and sorts all that a subscription has queued. The event is looked up
 * behind `offset 0`, because a plain join becomes a hash over all of review_history while the planner has no statistics.
 */
export async function nextEntries(db: Db, requests: readonly LoadRequest[]): Promise<EntryRow[]> {
  const asked = JSON.stringify(
    requests.map(({ id, shard, after, limit, exceptReviews }) => ({
      id,
      shard,
      after,
      limit,
      except: exceptReviews.filter((review) => review !== null),
      except_none: exceptReviews.includes(null),
    })),
  );
  return db.sql<EntryRow[]>`
    with asked as materialized (
      select * from json_to_recordset(${asked}::text::json)
        as a(id text collate "C", shard smallint, after bigint, "limit" int, "except" int[], except_none boolean)
    )
    select e.subscription_id as "subscriptionId", e.sequence, e.event_id as "eventId", e.event,
           e.is_test as "isTest", e.payload_mode as "payloadMode", e.review_id as "reviewId", e.round, e.attempt,
           e.due_at as "dueAt", e.review_history_id as "reviewHistoryId",
           coalesce(h.occurred_at, e.recorded_at) as "occurredAt", h.store_id as "storeId",
           h.store_review_site_id as "storeReviewSiteId", h.axis, h.actor::text as "actorJson",
           h.review::text as "reviewJson", h.site::text as "siteJson", h.metadata::text as "metadataJson"
      from asked a
     cross join lateral (
             (select * from outbox o
               where (o.shard, o.subscription_id, o.sequence) > (a.shard, a.id, a.after)
                 and (o.shard, o.subscription_id, o.sequence) < (a.shard, a.id, ${NO_END}::bigint) and not o.is_test
                 and (cardinality(a."except") = 0 or o.review_id is null or o.review_id <> all(a."except"))
                 and not (a.except_none and o.review_id is null)
               order by o.shard, o.subscription_id, o.sequence limit a."limit")
             union all
             (select * from outbox o
               where o.shard = a.shard and o.subscription_id = a.id and o.is_test
               order by o.sequence limit ${TESTS_LIMIT})
           ) e
      left join lateral (select * from review_history where id = e.review_history_id offset 0) h on true
     order by e.subscription_id, e.sequence`;
}
