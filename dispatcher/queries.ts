import type { Db, DbOrTx } from "../db/client.ts";
import type { LoadRequest } from "./actor-event.ts";
import type { AttemptRecord } from "./attempt.ts";
import { DISABLE_AFTER_FAILURES } from "./decide.ts";
import type { Axis, PayloadMode } from "../src/outbox/event.ts";

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
 * columns it expects a few rows, and then reads and sorts all that a subscription has queued.
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
      left join review_history h on h.id = e.review_history_id
     order by e.subscription_id, e.sequence`;
}

/** What a commit changed beyond its entries. */
export interface CommitResult {
  /** False: this process was declared dead, and nothing was written. */
  readonly fenced: boolean;
  /** Subscriptions of the records that are not active, or no longer. */
  readonly inactive: readonly string[];
  readonly disabled: readonly string[];
}

export interface CommitGroup {
  readonly records: readonly AttemptRecord[];
  /** They may have been written before: looking for that in each index is paid by such a group alone. */
  readonly repeated: boolean;
  readonly now: Date;
}

/**
 * Writes the records of many actors in one statement: attempt rows, entries gone or waiting, failure counters
 * and the disabling at the 20th failure (interface.md 3.1). All of it or nothing; and only while this process holds
 * its lease, whose row is locked meanwhile. Sending the same records again changes nothing more: an entry moves only
 * from the attempt that the record is about, and counters follow the entries that moved.
 *
 * An entry that ends leaves the outbox, and its last attempt says how it ended. The entries of a subscription go in
 * one walk of the index each group.
 *
 * Each column comes as one text, its values between separators: taking those apart costs Postgres a third of what
 * json_to_recordset or arrays do.
 */
export async function commitAttempts(
  db: DbOrTx,
  dispatcherId: string,
  { records, repeated, now }: CommitGroup,
): Promise<CommitResult> {
  const column = (value: (record: AttemptRecord) => string | number | null) =>
    records.map((record) => value(record) ?? NULL).join(SEPARATOR);
  const [row] = await db.sql<[{ held: number; inactive: string[]; disabled: string[] }]>`
    with lease as materialized (
      select id from dispatchers where id = ${dispatcherId} for key share
    ), input as materialized (
      select i.ord, i.id, i.shard::smallint, i.subscription_id, i.sequence::bigint, i.event_id,
             i.event, i.round::smallint, i.attempt::smallint, i.started_at::timestamptz, i.duration_ms::int, i.outcome,
             i.status_code::smallint, i.error_code, i.request_headers::json, i.request_body,
             i.response_headers::json, i.response_excerpt, i.response_truncated::boolean, i.resent::boolean,
             i.next_attempt_at::timestamptz
        from lease, rows from (
          string_to_table(${column((one) => one.id)}, chr(30)),
          string_to_table(${column((one) => one.shard)}, chr(30)),
          string_to_table(${column((one) => one.subscriptionId)}, chr(30)),
          string_to_table(${column((one) => one.sequence)}, chr(30)),
          string_to_table(${column((one) => one.eventId)}, chr(30)),
          string_to_table(${column((one) => one.event)}, chr(30)),
          string_to_table(${column((one) => one.round)}, chr(30)),
          string_to_table(${column((one) => one.attempt)}, chr(30)),
          string_to_table(${column((one) => one.startedAt.toISOString())}, chr(30)),
          string_to_table(${column((one) => one.durationMs)}, chr(30)),
          string_to_table(${column((one) => one.decision.kind)}, chr(30)),
          string_to_table(${column((one) => one.statusCode)}, chr(30), chr(31)),
          string_to_table(${column((one) => one.errorCode)}, chr(30), chr(31)),
          string_to_table(${column((one) => JSON.stringify(one.requestHeaders))}, chr(30)),
          string_to_table(${column((one) => one.requestBody)}, chr(30)),
          string_to_table(${column((one) => one.responseHeaders && JSON.stringify(one.responseHeaders))}, chr(30), chr(31)),
          string_to_table(${column((one) => storable(one.responseExcerpt))}, chr(30), chr(31)),
          string_to_table(${column((one) => String(one.responseTruncated))}, chr(30)),
          string_to_table(${column((one) => String(one.resent))}, chr(30)),
          string_to_table(${column(retryAt)}, chr(30), chr(31))
        ) with ordinality as i(id, shard, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms, outcome,
               status_code, error_code, request_headers, request_body, response_headers, response_excerpt,
               response_truncated, resent, next_attempt_at, ord)
    ), ended as (
      select shard, subscription_id, attempt, array_agg(sequence) as sequences
        from input where outcome in ('delivered', 'failed') group by shard, subscription_id, attempt
    ), found as materialized (
      -- The offset keeps this a look-up per subscription, whatever the planner thinks of the size of the outbox.
      select o.place
        from ended e cross join lateral (
               select ctid as place from outbox
                where shard = e.shard and subscription_id = e.subscription_id and sequence = any(e.sequences)
                  and attempt = e.attempt offset 0) o
    ), removed as (
      delete from outbox where ctid = any(array(select place from found))
      returning subscription_id, sequence, payload_mode, batch_job_id, recorded_at
    ), known as (
      select i.*, r.payload_mode, r.batch_job_id, r.recorded_at, r.recorded_at is not null as settled
        from input i
        left join removed r on r.subscription_id = i.subscription_id and r.sequence = i.sequence
                           and i.outcome in ('delivered', 'failed')
    ), attempts as (
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, status_code, error_code, request_headers, request_body, response_headers,
        response_excerpt, response_truncated, resent, next_attempt_at, payload_mode, batch_job_id, recorded_at)
      select id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, status_code, error_code, request_headers, request_body, response_headers,
        -- One row with an empty text comes as no row at all.
        coalesce(response_excerpt, case when status_code is not null then '' end), response_truncated, resent,
        next_attempt_at, payload_mode, batch_job_id, recorded_at
        from known
          ${repeated ? db.sql`on conflict do nothing` : db.sql``}
    ), waiting as (
      update outbox o set state = 'waiting', attempt = i.attempt + 1, due_at = i.next_attempt_at
        from input i
       where i.outcome = 'retry' and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt
    ), bounded as (
      select subscription_id, outcome, ord,
             min(ord) filter (where outcome = 'delivered') over of_subscription as first_success,
             max(ord) filter (where outcome = 'delivered') over of_subscription as last_success
        from known where settled window of_subscription as (partition by subscription_id)
    ), runs as (
      -- Failures before the first success continue the stored run; those after the last one are the new run.
      select subscription_id, bool_or(outcome = 'delivered') as succeeded,
             count(*) filter (where outcome = 'failed' and ord < coalesce(first_success, ord + 1)) as leading,
             count(*) filter (where outcome = 'failed' and ord > last_success) as trailing
        from bounded group by subscription_id
    ), counted as (
      -- Only w is the row as it is now, should an enable have come in between; so the rule looks at w alone.
      update webhook_subscriptions w
         set consecutive_failure_count = case
               when w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES} then ${DISABLE_AFTER_FAILURES}
               when r.succeeded then r.trailing
               else w.consecutive_failure_count + r.leading end,
             state = case when w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES}
                          then 'disabled' else 'active' end,
             disabled_at = case when w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES}
                                then ${now}::timestamptz end,
             disabled_reason = case when w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES}
                                    then 'consecutive_failures' end,
             updated_at = case when w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES}
                               then ${now}::timestamptz else w.updated_at end
        from runs r
       where w.id = r.subscription_id and w.state = 'active'
         and (r.leading > 0 or r.trailing > 0 or w.consecutive_failure_count > 0)
      returning w.id, w.state
    )
    select (select count(*)::int from lease) as held,
           array(select id from counted where state = 'disabled') as disabled,
           array(select w.id from webhook_subscriptions w
                  where w.id in (select subscription_id from input) and w.state <> 'active') as inactive`;
  const { disabled } = row;
  // The last select sees the subscriptions as they were before this statement.
  return { fenced: row.held === 0, inactive: [...row.inactive, ...disabled], disabled };
}

/** Between the values of a column, chr(30), and instead of an absent one, chr(31): no value contains these. */
const SEPARATOR = "\x1e";
const NULL = "\x1f";

function retryAt({ decision }: AttemptRecord): string | null {
  return decision.kind === "retry" ? decision.dueAt.toISOString() : null;
}

/**
 * What a receiver sent, without NUL and halves of surrogate pairs, which Postgres text cannot hold, and without our
 * separators. In JSON all of these are escaped already.
 */
function storable(text: string | null): string | null {
  if (text === null || text === "") return null;
  const clean = [SEPARATOR, NULL, "\0"].reduce((left, one) => left.replaceAll(one, "\uFFFD"), text);
  return clean.toWellFormed();
}

/** Whom to tell of a disabled subscription: the active owners of its partner. */
export async function ownersOf(
  tx: DbOrTx,
  subscriptionIds: readonly string[],
): Promise<{ subscriptionId: string; label: string; webhookUrl: string; email: string }[]> {
  return tx.sql`
    select w.id as "subscriptionId", w.label, w.webhook_url as "webhookUrl", u.email
      from webhook_subscriptions w
      join users u on u.company_id = w.partner_id and u.role = 'partner_owner' and u.is_active
     where w.id = any(${subscriptionIds}::text[])
     order by u.id`;
}
