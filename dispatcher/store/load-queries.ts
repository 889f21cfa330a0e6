import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { markedThrough } from "../../db/marks.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import {
  instant,
  list,
  nullable,
  rows,
  statement,
  value,
  type ValuesOf,
} from "../../db/statement.ts";
import type { LoadRequest } from "../actor/event.ts";

// Every load of an actor runs the first two statements: they are SQL because they are measured (`bun run bench
// dispatch`).

const ACTIVE = {
  id: webhookSubscriptions.id,
  shard: webhookSubscriptions.shard,
  partnerId: webhookSubscriptions.partnerId,
  webhookUrl: webhookSubscriptions.webhookUrl,
  ordering: webhookSubscriptions.ordering,
  sealedSecret: webhookSubscriptions.sealedSecret,
  nextBatchAt: webhookSubscriptions.nextBatchAt,
  sealedPreviousSecret: webhookSubscriptions.sealedPreviousSecret,
};

/** A subscription that may be delivered to, as stored. */
export type SubscriptionRow = ValuesOf<typeof ACTIVE>;

const active = statement({
  name: "load.activeSubscriptions",
  reason: "Hot: once per load, beside the entries.",
  params: { ids: list(webhookSubscriptions.id), now: instant },
  columns: ACTIVE,
  text: ({ ids, now }) => sql`
    select id, shard, partner_id as "partnerId", webhook_url as "webhookUrl", ordering,
           sealed_secret as "sealedSecret", next_batch_at as "nextBatchAt",
           case when previous_secret_expires_at > ${now} then sealed_previous_secret end as "sealedPreviousSecret"
      from webhook_subscriptions
     where id = any(${ids}::text[]) and state = 'active'`,
});

/** Those of the given subscriptions that are active. A previous secret is answered only while its grace period runs. */
export function activeSubscriptions(
  db: Db,
  ids: readonly string[],
  now: Date,
): Promise<SubscriptionRow[]> {
  return db.run(active, { ids, now });
}

/** JSON is loaded as the text that was stored: it goes into the body as it is. */
const jsonText = value("text");

const ENTRY = {
  subscriptionId: outbox.subscriptionId,
  sequence: outbox.sequence,
  eventId: outbox.eventId,
  event: outbox.event,
  isTest: outbox.isTest,
  payloadMode: outbox.payloadMode,
  reviewId: outbox.reviewId,
  round: outbox.round,
  attempt: outbox.attempt,
  dueAt: outbox.dueAt,
  reviewHistoryId: outbox.reviewHistoryId,
  /** Of a test event when it was asked for. */
  occurredAt: outbox.recordedAt,
  storeId: nullable(reviewHistory.storeId),
  storeReviewSiteId: nullable(reviewHistory.storeReviewSiteId),
  axis: reviewHistory.axis,
  actorJson: nullable(jsonText),
  reviewJson: nullable(jsonText),
  siteJson: nullable(jsonText),
  metadataJson: nullable(jsonText),
};

/** An entry with the facts of its event; the facts are null for a test event. */
export type EntryRow = ValuesOf<typeof ENTRY>;

const TESTS_LIMIT = 16;

/** Above every sequence. */
const NO_END = "9223372036854775807";

const next = statement({
  name: "load.nextEntries",
  reason: "Hot; walks the primary key by bounds that are rows, one walk per request of a table.",
  params: {
    given: rows({
      id: outbox.subscriptionId,
      shard: outbox.shard,
      after: outbox.sequence,
      limit: value("integer"),
      except: value("integer[]"),
      except_none: value("boolean"),
    }),
  },
  columns: ENTRY,
  text: ({ given }) => sql`
    with asked as materialized (
      -- Of one moment with the entries: what an enable skips is left out, whichever of the two came first.
      select given.*, ${markedThrough(sql`given.id`)} as marked
        from ${given} cross join lateral (
               select from webhook_subscriptions where id = given.id and state = 'active' offset 0) active
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
               where (o.shard, o.subscription_id, o.sequence) > (a.shard, a.id, greatest(a.after, a.marked))
                 and (o.shard, o.subscription_id, o.sequence) < (a.shard, a.id, ${NO_END}::bigint) and not o.is_test
                 and (cardinality(a."except") = 0 or o.review_id is null or o.review_id <> all(a."except"))
                 and not (a.except_none and o.review_id is null)
               order by o.shard, o.subscription_id, o.sequence limit a."limit")
             union all
             (select * from outbox o
               where o.shard = a.shard and o.subscription_id = a.id and o.sequence > a.marked and o.is_test
               order by o.sequence limit ${TESTS_LIMIT})
           ) e
      left join lateral (select * from review_history where id = e.review_history_id offset 0) h on true
     order by e.subscription_id, e.sequence`,
});

/**
 * The next entries of several subscriptions, each in the order of its sequence, and their test events. The bounds are
 * rows, because the planner takes those for wide and so walks the primary key up to the limit: of bounds on single
 * columns it expects a few rows, and then reads and sorts all that a subscription has queued. The event is looked up
 * behind `offset 0`, because a plain join becomes a hash over all of review_history while the planner has no statistics.
 */
export function nextEntries(db: Db, requests: readonly LoadRequest[]): Promise<EntryRow[]> {
  const given = requests.map(({ id, shard, after, limit, exceptReviews }) => ({
    id,
    shard,
    after,
    limit,
    except: exceptReviews.filter((review) => review !== null),
    except_none: exceptReviews.includes(null),
  }));
  return db.run(next, { given });
}
