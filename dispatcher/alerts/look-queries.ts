import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { skippedThrough } from "../../db/log.ts";
import { onlyRow } from "../../db/rows.ts";
import { firstQueued, NO_TEST } from "../../db/queue.ts";
import { alerts, incidents } from "../../db/schema/alerts.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import {
  asTable,
  list,
  nullable,
  statement,
  table,
  value,
  type ValuesOf,
} from "../../db/statement.ts";

// What is looked at again and again, so it is SQL: its cost follows the subscriptions in trouble, not all that there are.

/** The attempt number of a head that has failed twice: the next one is its third. */
const RETRYING_FROM = 3;
/** More heads than this do not wait: an actor then reads no more. */
const HEADS_AT_MOST = 256;

const trouble = statement({
  name: "alerts.trouble",
  // A recursive jump from one subscription with waiting entries to the next; all that a look begins with.
  params: { retryingFrom: outbox.attempt, heads: value("bigint"), at: alerts.raisedAt },
  columns: {
    troubled: table({ id: webhookSubscriptions.id, isRetrying: value("boolean") }),
    unmailed: list(alerts.partnerId),
    isPostDue: value("boolean"),
  },
  text: ({ retryingFrom, heads, at }) => sql`
    with recursive waiting as (
      (select subscription_id from outbox where state = 'waiting' order by subscription_id limit 1)
      union all
      select next.subscription_id from waiting w cross join lateral (
             select subscription_id from outbox
              where state = 'waiting' and subscription_id > w.subscription_id
              order by subscription_id limit 1) next
    ), retrying as materialized (
      -- What a disabled one holds is not retried.
      select w.subscription_id as id from waiting w cross join lateral (
             select from webhook_subscriptions where id = w.subscription_id and state = 'active' offset 0) s
       where exists (
             select from (select attempt, is_test from outbox
                           where state = 'waiting' and subscription_id = w.subscription_id
                             and skipped_at is null and sequence > ${skippedThrough(sql`w.subscription_id`)}
                           order by sequence limit ${heads}) head
              where attempt >= ${retryingFrom} and not is_test)
    ), found as (
      select id, bool_or(is_retrying) as is_retrying from (
        select id, true as is_retrying from retrying
        union all select subscription_id, false from waiting
        union all select id, false from webhook_subscriptions where state = 'active' and consecutive_failure_count > 0
        union all select id, false from webhook_subscriptions where state = 'disabled'
        union all select subscription_id, false from incidents where ended_at is null) each
       group by id
    )
    select ${asTable(sql`
             select f.id, f.is_retrying as "isRetrying"
               from found f cross join lateral (
                      select partner_id, state, disabled_at from webhook_subscriptions where id = f.id offset 0) s
               left join lateral (
                      select disabled_at from incidents
                       where subscription_id = f.id and ended_at is null offset 0) i on true
              where s.state <> 'disabled' or i.disabled_at is distinct from s.disabled_at
              order by s.partner_id, f.id`)} as troubled,
           array(select distinct partner_id from alerts where mail_state = 'pending' order by partner_id) as unmailed,
           exists (select from alerts where webhook_state = 'queued' and webhook_due_at <= ${at}) as "isPostDue"`,
});

/**
 * The subscriptions that fail, wait for a retry or are disabled, and those whose incident is open. A disabled one whose
 * disabling is in its incident is left out: nothing changes until it is enabled or deleted. Those of a partner stand
 * side by side, so that one mail has what there is to tell of both. Beside them the partners that have alerts to be
 * mailed, and whether a POST is due.
 */
export async function findTrouble(db: DbOrTx, at: Date) {
  return onlyRow(await db.run(trouble, { retryingFrom: RETRYING_FROM, heads: HEADS_AT_MOST, at }));
}

const backlogged = statement({
  name: "alerts.backlogged",
  // By the last count of what waits, so that nobody walks over all that is queued.
  columns: { id: webhookSubscriptions.id },
  text: () => sql`
    select s.id
      from stats_progress p cross join webhook_subscriptions s cross join lateral (
             select entries from backlog_stats b
              where b.subscription_id = s.id and b.bucket_at = p.counted_until - interval '5 minutes' offset 0) b
     where s.state = 'active' and b.entries > 0`,
});

/** Those that had something queued when it was last counted, at most ten minutes ago. */
export async function backloggedSubscriptions(db: DbOrTx): Promise<string[]> {
  return (await db.run(backlogged, {})).map(({ id }) => id);
}

const SEEN = {
  id: webhookSubscriptions.id,
  partnerId: webhookSubscriptions.partnerId,
  state: webhookSubscriptions.state,
  failures: webhookSubscriptions.consecutiveFailureCount,
  disabledAt: webhookSubscriptions.disabledAt,
  oldestAt: nullable(outbox.recordedAt),
  lastSuccessAt: nullable(webhookSubscriptions.createdAt),
  incidentId: nullable(incidents.id),
  openedAt: nullable(incidents.openedAt),
  incidentDisabledAt: incidents.disabledAt,
  incidentFailures: nullable(incidents.failures),
  isTold: nullable(incidents.isTold),
  kinds: list(alerts.kind),
};
export type SeenRow = ValuesOf<typeof SEEN>;

const seen = statement({
  name: "alerts.see",
  // Each table is asked by its key, once for each subscription.
  params: { ids: list(webhookSubscriptions.id) },
  columns: SEEN,
  text: ({ ids }) => sql`
    select s.id, s.partner_id as "partnerId", s.state, s.consecutive_failure_count as failures,
           case when s.disabled_reason <> 'manual' then s.disabled_at end as "disabledAt",
           head.recorded_at as "oldestAt", success.at as "lastSuccessAt",
           i.id as "incidentId", i.opened_at as "openedAt", i.disabled_at as "incidentDisabledAt",
           i.failures as "incidentFailures", i.is_told as "isTold",
           array(select a.kind from alerts a where a.incident_id = i.id) as kinds
      from unnest((select ${ids}::text[])) as given(id) cross join lateral (
             select * from webhook_subscriptions where id = given.id offset 0) s
      left join lateral (
             ${firstQueued(NO_TEST)}) head on true
      left join lateral (
             select * from incidents where subscription_id = s.id and ended_at is null offset 0) i on true
      left join lateral (
             select started_at + duration_ms * interval '1 millisecond' as at from delivery_attempts
              where subscription_id = s.id and outcome = 'delivered'
                -- Only a success lowers the failures of an active one, or leaves it without any.
                and s.state = 'active' and (s.consecutive_failure_count < i.failures or s.consecutive_failure_count = 0)
                and i.id is not null
              order by id desc limit 1) success on true`,
});

export async function seeSubscriptions(db: DbOrTx, ids: readonly string[]): Promise<SeenRow[]> {
  return db.run(seen, { ids });
}
