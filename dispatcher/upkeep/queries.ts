import type { Db } from "../../db/client.ts";

/**
 * Settles entries of disabled subscriptions that are older than the retention time as skipped, at most `limit`
 * (decisions.md 4, disable). An entry that somebody else has locked is left for the next time.
 */
export async function expireHeldEntries(
  db: Db,
  cutoff: Date,
  now: Date,
  limit: number,
): Promise<number> {
  const { count } = await db.sql`
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
                                 review_id, batch_job_id, round, state, reason, recorded_at, settled_at)
    select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
           batch_job_id, round, 'skipped', 'expired', recorded_at, ${now}
      from gone`;
  return count;
}

/** Events that wait for the batch of a disabled subscription for longer than that. */
export async function expireHeldBatchEntries(db: Db, cutoff: Date): Promise<number> {
  const { count } = await db.sql`
    delete from batch_entries b using webhook_subscriptions s, review_history h
     where s.id = b.subscription_id and s.state = 'disabled' and h.id = b.review_history_id
       and h.recorded_at < ${cutoff}`;
  return count;
}
