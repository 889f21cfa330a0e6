import { sql, type SQL, type SQLWrapper } from "drizzle-orm";

import type { Tx } from "../../db/client.ts";
import { boundLockWait } from "../../db/server.ts";
import { storeReviewSites } from "../../db/schema/providers.ts";
import { reviewHistory, reviews } from "../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { instant, list, rows, statement, value, type ValuesOf } from "../../db/statement.ts";
import { BATCH_EVENTS, CONNECTION_EVENTS, type RecordedAction } from "./event.ts";

// Statements that append entries are raw SQL, because they determine the throughput of intake (`bun run bench ingest`).

/**
 * Writes actions to review_history with their sequence numbers, and to `batch_entries` for the batch subscriptions, in
 * the given order. Returns the subscriptions to wake after the commit.
 *
 * This must be the last statement of its transaction, because the commit is sent with it. It locks the sequence rows of
 * the partners' subscriptions until the commit. Therefore each sequence has no gap and follows the order of commits.
 * The ids of review_history are drawn under these locks, so they follow that order, too (contract 7.2).
 *
 * A transaction for several partners calls `holdSequences` first. Without it, two writers could take the locks in
 * different orders and deadlock.
 */
export async function recordActions(tx: Tx, actions: readonly RecordedAction[], now: Date) {
  if (actions.length === 0) return [];
  const partners = [...new Set(actions.map(({ partnerId }) => partnerId))];
  return tx.runLast(appendStatement, { given: actions.map(toInput), partners, now });
}

const CONNECTION_LITERALS = sql.raw(CONNECTION_EVENTS.map((event) => `'${event}'`).join(", "));

/**
 * Matches the events that change the connection of an axis. The values are literals and not parameters, because a
 * generic plan can use the partial index `review_history_axis` only if it contains the values.
 */
export const isConnectionEvent = (event: SQLWrapper): SQL =>
  sql`${event} in (${CONNECTION_LITERALS})`;

/**
 * Lock timeout in ms of a transaction for several partners. It is short, because a transaction that waits for the
 * sequence of one partner may block the writers of its other partners.
 */
const SEVERAL_LOCK_MS = 1_000;

const eachId = (ids: SQL): SQL => sql`unnest((select ${ids}::integer[])) as p(id)`;

/**
 * Builds the CTE `held` from a CTE `slots` of subscriptions. It locks their sequences in the order of `slots` and
 * returns one row per subscription. `id` is null if the sequence was not locked.
 */
export const heldOf = (whereHeld: SQL): SQL => sql`held as materialized (
      select s.partner_id, coalesce(own.subscription_id, shared.subscription_id) as id, own.last_logged
        from slots s
        left join lateral (
             select subscription_id, last_logged from outbox_sequences
              where subscription_id = s.id and s.delivery_kind = 'immediate'
                for no key update ${whereHeld}) own on true
        left join lateral (
             select subscription_id from outbox_sequences
              where subscription_id = s.id and s.delivery_kind = 'batch'
                for key share ${whereHeld}) shared on true
    )`;

/**
 * Builds the CTE `held`, which locks the sequences of partners. It locks them in the order of the subscription ids, so
 * that writers cannot deadlock. `partners` is a table `p` with the ids of the partners.
 */
const heldOfPartners = (partners: SQL, whereHeld: SQL): SQL => sql`
    with slots as materialized (
      select s.*
        from ${partners} cross join lateral (
               select id, partner_id, delivery_kind from webhook_subscriptions
                where partner_id = p.id and state <> 'deleted' offset 0) s
       order by s.id
    ), ${heldOf(whereHeld)}`;

function lockStatement(name: string, whereHeld: SQL) {
  return statement({
    name,
    // Raw SQL, because the statement runs with every accepted event, and locks the sequences of immediate and batch
    // subscriptions in one order.
    params: { partners: list(webhookSubscriptions.partnerId) },
    columns: { partnerId: webhookSubscriptions.partnerId },
    text: ({ partners }) => sql`${heldOfPartners(eachId(partners), whereHeld)}
    select distinct partner_id as "partnerId" from held where id is null`,
  });
}

const holdFree = lockStatement("outbox.holdFreeSequences", sql`skip locked`);
const holdAll = lockStatement("outbox.holdSequences", sql``);

/**
 * Locks the sequences of these partners until the commit. Returns the partners of which a sequence was not locked:
 * without `waits`, another transaction holds its lock; with `waits`, another transaction deleted it while this one
 * waited.
 */
export async function holdSequences(tx: Tx, partners: readonly number[], waits: boolean) {
  const bound = waits && partners.length > 1 && boundLockWait(tx, SEVERAL_LOCK_MS);
  // Both statements are sent together. The lock timeout comes first, because it limits the wait for the locks.
  const [, others] = await Promise.all([bound, tx.run(waits ? holdAll : holdFree, { partners })]);
  return new Set(others.map(({ partnerId }) => partnerId));
}

const holdFreeOfSubjects = statement({
  name: "outbox.holdFreeOfSubjects",
  // Raw SQL, because `heldOfPartners` is raw SQL.
  params: {
    partners: list(webhookSubscriptions.partnerId),
    reviewIds: list(reviews.id),
    siteIds: list(storeReviewSites.id),
  },
  columns: { partnerId: webhookSubscriptions.partnerId },
  text: ({ partners, reviewIds, siteIds }) => sql`${heldOfPartners(
    sql`(select id from ${eachId(partners)}
          union
         select l.partner_id from ${eachId(reviewIds)} cross join lateral (
                select partner_id from reviews where id = p.id offset 0) l
          union
         select l.partner_id from ${eachId(siteIds)} cross join lateral (
                select partner_id from store_review_sites where id = p.id offset 0) l) as p(id)`,
    sql`skip locked`,
  )}
    select distinct partner_id as "partnerId" from held where id is null`,
});

/**
 * Locks the sequences of these partners, and of the partners of these reviews and connections, until the commit and
 * without waiting. Returns the partners with a sequence that another transaction has locked.
 */
export async function holdFreeSequences(tx: Tx, given: ValuesOf<typeof holdFreeOfSubjects.params>) {
  const others = await tx.run(holdFreeOfSubjects, given);
  return new Set(others.map(({ partnerId }) => partnerId));
}

/**
 * The name of the statement that only appends entries. The name of every statement that appends entries and does other
 * work begins with this name.
 */
export const APPEND = "outbox.append";

/** The columns of an action in the input of statements that append entries. */
export const ACTION = {
  ord: value("integer"),
  eventId: reviewHistory.eventId,
  event: reviewHistory.event,
  inBatch: value("boolean"),
  partnerId: reviewHistory.partnerId,
  accountId: reviewHistory.accountId,
  storeId: reviewHistory.storeId,
  storeReviewSiteId: reviewHistory.storeReviewSiteId,
  reviewId: reviewHistory.reviewId,
  axis: reviewHistory.axis,
  actor: reviewHistory.actor,
  review: reviewHistory.review,
  site: reviewHistory.site,
  metadata: reviewHistory.metadata,
  occurredAt: reviewHistory.occurredAt,
};

/** The columns that a statement that appends entries returns for each subscription to wake. */
export const WOKEN = { subscriptionId: webhookSubscriptions.id, shard: webhookSubscriptions.shard };

/** Builds the CTE `slots`: those subscriptions of the partners that receive entries. */
export const slotsOf = (partners: SQL, now: SQL): SQL => sql`slots as materialized (
      -- One look-up per partner, forced by the offset: a join would read all subscriptions while the planner
      -- underestimates their number. The array is a separate select, so that the cached plan fits any number of
      -- partners.
      select s.*
        from unnest((select ${partners}::integer[])) as p(id) cross join lateral (
               select id, number, partner_id, shard, delivery_kind, payload_mode, events from webhook_subscriptions
                where partner_id = p.id and state <> 'deleted' and (begins_at is null or begins_at <= ${now}) offset 0) s
    )`;

/**
 * Builds the end of a statement that appends entries. It follows the CTE `slots` and the CTE `input` with the columns
 * of `ACTION`. `before` is a table of the sequences with their `last_logged` before the statement. One statement
 * instead of three reached 2.3 to 2.9 times the transactions per second, because it holds the locks on the sequence
 * rows for less time.
 */
export const appendInput = (now: SQL, before: SQL): SQL => sql`
    wanted as (
      -- One row per subscription, with its events as an array. If each event were joined separately to the numbers
      -- below, it would be compared with every subscription, because the planner underestimates their number.
      select s.id, s.number, s.shard, s.payload_mode = 'minimal' as is_minimal,
             array_agg(i."eventId" order by i.ord) as event_ids
        from input i
        join slots s on s.partner_id = i."partnerId"
       where s.delivery_kind = 'immediate' and (s.events is null or i.event = any(s.events))
       group by s.id, s.number, s.shard, s.payload_mode
    ), numbered as (
      update outbox_sequences q
         set last_sequence = q.last_sequence + cardinality(w.event_ids),
             last_logged = q.last_sequence + cardinality(w.event_ids),
             unlogged = q.unlogged + q.last_sequence - q.last_logged
        from wanted w join ${before} before on before.id = w.id
       where q.subscription_id = w.id
      returning w.id, w.number, w.shard, w.is_minimal, w.event_ids,
                q.last_sequence - cardinality(w.event_ids) as base, q.unlogged, before.last_logged
    ), sequenced as materialized (
      select n.number, n.is_minimal, e.event_id, n.base + e.nth as sequence,
             case when e.nth = 1 then nullif(n.base - n.last_logged, 0) end as gap, nullif(n.unlogged, 0) as unlogged
        from numbered n cross join lateral unnest(n.event_ids) with ordinality as e(event_id, nth)
    ), batches as (
      -- A share lock. It waits only for a deletion or a skip of the subscription.
      select q.subscription_id, s.partner_id
        from slots s cross join lateral (
               select subscription_id from outbox_sequences where subscription_id = s.id for key share) q
       where s.delivery_kind = 'batch' and s.partner_id in (select "partnerId" from input where "inBatch")
    ), history as (
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id,
                                  event, axis, actor, review, site, metadata, occurred_at, recorded_at,
                                  sequence, subscription_number, is_minimal, gap, unlogged)
      select i."eventId", i."partnerId", i."accountId", i."storeId", i."reviewId", i."storeReviewSiteId",
             i.event, i.axis, i.actor, i.review, i.site, i.metadata, i."occurredAt", ${now},
             s.sequence, s.number, s.is_minimal, s.gap, s.unlogged
        -- Because of the counts, the insert waits for the locks of the sequence rows. Otherwise ids that are drawn
        -- before a skip of a batch slot could be committed after it, and their events would be lost.
        from (select count(*) from numbered) held, (select count(*) from batches) shared,
             input i left join sequenced s on s.event_id = i."eventId"
       order by i.ord
      returning id, event_id
    ), batched as (
      insert into batch_entries (subscription_id, review_history_id)
      select b.subscription_id, h.id
        from batches b
        join input i on i."partnerId" = b.partner_id and i."inBatch"
        join history h on h.event_id = i."eventId"
    )
    select id as "subscriptionId", shard from numbered`;

/**
 * Reads the sequence of a row `w` of `wanted` and locks it. A subscription that was created after the transaction took
 * its locks is not locked yet. Without this lock, the statement could read an outdated last number from its snapshot.
 */
const SEQUENCE_BEFORE = sql`lateral (
           select subscription_id as id, last_logged from outbox_sequences where subscription_id = w.id for no key update)`;

const appendStatement = statement({
  name: APPEND,
  // Raw SQL, because `appendInput` is raw SQL.
  params: { given: rows(ACTION), partners: list(webhookSubscriptions.partnerId), now: instant },
  columns: WOKEN,
  text: ({ given, partners, now }) => sql`
    with input as materialized (
      select * from ${given}
    ), ${slotsOf(partners, now)}, ${appendInput(now, SEQUENCE_BEFORE)}`,
});

/** Converts an action to the columns of `ACTION`. */
export function toInput({ about, ...action }: RecordedAction, ord: number) {
  const axis = "site" in about ? about.site.axis : null;
  const inBatch = BATCH_EVENTS.includes(action.event);
  return { ...action, ord, inBatch, axis, review: null, site: null, ...about };
}
