import type { Db } from "../db/client.ts";
import type { LoadRequest } from "./actor.ts";
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
  readonly recordedAt: Date;
  readonly reviewHistoryId: number | null;
  readonly occurredAt: Date | null;
  readonly partnerId: number | null;
  readonly storeId: number | null;
  readonly storeReviewSiteId: number | null;
  readonly axis: Axis | null;
  readonly actorJson: string | null;
  readonly reviewJson: string | null;
  readonly siteJson: string | null;
  readonly metadataJson: string | null;
}

const TESTS_LIMIT = 16;

/** The next entries of several subscriptions, each in the order of its sequence, and their test events. */
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
           e.due_at as "dueAt", e.recorded_at as "recordedAt", e.review_history_id as "reviewHistoryId",
           h.occurred_at as "occurredAt", h.partner_id as "partnerId", h.store_id as "storeId",
           h.store_review_site_id as "storeReviewSiteId", h.axis, h.actor::text as "actorJson",
           h.review::text as "reviewJson", h.site::text as "siteJson", h.metadata::text as "metadataJson"
      from asked a
     cross join lateral (
             (select * from outbox o
               where o.shard = a.shard and o.subscription_id = a.id and o.sequence > a.after and not o.is_test
                 and (cardinality(a."except") = 0 or o.review_id is null or o.review_id <> all(a."except"))
                 and not (a.except_none and o.review_id is null)
               order by o.sequence limit a."limit")
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

/**
 * Writes the records of many actors in one statement: attempt rows, entries settled or waiting, failure counters
 * and the disabling at the 20th failure (interface.md 3.1). All of it or nothing; and only while this process holds
 * its lease, whose row is locked meanwhile. Sending the same records again changes nothing more: an entry moves only
 * from the attempt that the record is about, and counters follow the entries that moved.
 */
export async function commitAttempts(
  db: Db,
  dispatcherId: string,
  records: readonly AttemptRecord[],
  now: Date,
): Promise<CommitResult> {
  const input = JSON.stringify(records.map(toInput));
  const [row] = await db.sql<[{ held: number; inactive: string[]; disabled: string[] }]>`
    with lease as materialized (
      select id from dispatchers where id = ${dispatcherId} for key share
    ), input as materialized (
      select i.* from lease, json_to_recordset(${input}::text::json) as i(
        ord int, id text collate "C", shard smallint, subscription_id text collate "C", sequence bigint,
        event_id text collate "C", event text, round smallint, attempt smallint, started_at timestamptz,
        duration_ms int, outcome text, settles boolean, status_code smallint, error_code text, request_headers json,
        request_body text, response_headers json, response_excerpt text, response_truncated boolean,
        next_attempt_at timestamptz)
    ), attempts as (
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, status_code, error_code, request_headers, request_body, response_headers,
        response_excerpt, response_truncated, next_attempt_at)
      select id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, status_code, error_code, request_headers, request_body, response_headers,
        response_excerpt, response_truncated, next_attempt_at
        from input
          on conflict do nothing
    ), settled as (
      delete from outbox o using input i
       where i.settles and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt
      returning o.subscription_id, o.sequence, o.event_id, o.event, o.is_test, o.payload_mode, o.review_history_id,
        o.review_id, o.batch_job_id, o.round, i.outcome, o.recorded_at, i.ord
    ), kept as (
      insert into settled_entries (subscription_id, sequence, event_id, event, is_test, payload_mode,
        review_history_id, review_id, batch_job_id, round, state, recorded_at, settled_at)
      select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
        batch_job_id, round, outcome, recorded_at, ${now} from settled
    ), waiting as (
      update outbox o set state = 'waiting', attempt = i.attempt + 1, due_at = i.next_attempt_at
        from input i
       where i.outcome = 'retry' and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt
    ), bounds as (
      select subscription_id, min(ord) filter (where outcome = 'delivered') as first_success,
             max(ord) filter (where outcome = 'delivered') as last_success
        from settled group by subscription_id
    ), runs as (
      -- Failures before the first success continue the stored run; those after the last one are the new run.
      select s.subscription_id, b.last_success is not null as succeeded,
             count(*) filter (where s.outcome = 'failed' and s.ord < coalesce(b.first_success, s.ord + 1)) as leading,
             count(*) filter (where s.outcome = 'failed' and s.ord > b.last_success) as trailing
        from settled s join bounds b using (subscription_id)
       group by s.subscription_id, b.last_success
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
                                    then 'consecutive_failures' end
        from runs r
       where w.id = r.subscription_id and w.state = 'active'
         and (r.leading > 0 or r.trailing > 0 or w.consecutive_failure_count > 0)
      returning w.id, w.state
    )
    select (select count(*)::int from lease) as held,
           array(select id from counted where state = 'disabled') as disabled,
           array(select distinct w.id from input i join webhook_subscriptions w on w.id = i.subscription_id
                  where w.state <> 'active') as inactive`;
  const disabled = row.disabled;
  // The last select sees the subscriptions as they were before this statement.
  return { fenced: row.held === 0, inactive: [...row.inactive, ...disabled], disabled };
}

/** Postgres text holds neither NUL nor half of a surrogate pair; a receiver may send anything. */
function storable(text: string | null): string | null {
  return text === null ? null : text.replaceAll("\0", "\uFFFD").toWellFormed();
}

function toInput(record: AttemptRecord, ord: number) {
  const { decision } = record;
  return {
    ord,
    id: record.id,
    shard: record.shard,
    subscription_id: record.subscriptionId,
    sequence: record.sequence,
    event_id: record.eventId,
    event: record.event,
    round: record.round,
    attempt: record.attempt,
    started_at: record.startedAt,
    duration_ms: record.durationMs,
    outcome: decision.kind,
    settles: decision.kind === "delivered" || decision.kind === "failed",
    status_code: record.statusCode,
    error_code: record.errorCode,
    request_headers: record.requestHeaders,
    request_body: record.requestBody,
    response_headers: record.responseHeaders,
    response_excerpt: storable(record.responseExcerpt),
    response_truncated: record.responseTruncated,
    next_attempt_at: decision.kind === "retry" ? decision.dueAt : null,
  };
}
