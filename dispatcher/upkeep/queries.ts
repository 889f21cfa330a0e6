import { and, eq, exists, lt, sql } from "drizzle-orm";
import type { Db } from "../../db/client.ts";

import { batchEntries } from "../../db/schema/outbox.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { instant, statement, value } from "../../db/statement.ts";

// What moves rows from table to table is SQL.

const expiry = statement({
  name: "maintenance.expireHeldEntries",
  reason: "Skips what is locked, and moves the rest from table to table in one statement.",
  params: { cutoff: instant, now: instant, limit: value("bigint") },
  columns: {},
  text: ({ cutoff, now, limit }) => sql`
    with old as (
      select o.shard, o.subscription_id, o.sequence
        from outbox o join webhook_subscriptions s on s.id = o.subscription_id and s.shard = o.shard
       where s.state = 'disabled' and o.recorded_at < ${cutoff}
       limit ${limit} for update of o skip locked
    ), gone as (
      delete from outbox o using old
       where o.shard = old.shard and o.subscription_id = old.subscription_id and o.sequence = old.sequence
      returning o.*
    )
    insert into settled_entries (subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id,
                                 review_id, batch_job_id, round, reason, recorded_at, settled_at)
    select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
           batch_job_id, round, 'expired', recorded_at, ${now}
      from gone`,
});

/**
 * Settles entries of disabled subscriptions that are older than the retention time as skipped, at most `limit`
 * (contract 7.9). An entry that somebody else has locked is left for the next time.
 */
export async function expireHeldEntries(
  db: Db,
  cutoff: Date,
  now: Date,
  limit: number,
): Promise<number> {
  const { count } = await db.run(expiry, { cutoff, now, limit });
  return count;
}

/** Events that wait for the batch of a disabled subscription for longer than that. */
export async function expireHeldBatchEntries(db: Db, cutoff: Date): Promise<number> {
  const disabled = db
    .select({ id: webhookSubscriptions.id })
    .from(webhookSubscriptions)
    .where(
      and(
        eq(webhookSubscriptions.id, batchEntries.subscriptionId),
        eq(webhookSubscriptions.state, "disabled"),
      ),
    );
  const old = db
    .select({ id: reviewHistory.id })
    .from(reviewHistory)
    .where(
      and(eq(reviewHistory.id, batchEntries.reviewHistoryId), lt(reviewHistory.recordedAt, cutoff)),
    );
  const { count } = await db.delete(batchEntries).where(and(exists(disabled), exists(old)));
  return count;
}
