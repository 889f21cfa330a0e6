import type { Tx } from "../../db/client.ts";

/** Locks the lease of this process for the transaction; false if it is gone. */
export async function holdLease(tx: Tx, dispatcherId: string): Promise<boolean> {
  const rows = await tx.sql`select from dispatchers where id = ${dispatcherId} for key share`;
  return rows.length === 1;
}

/**
 * Locks the sequence, before the subscription as a delete does. Writers of review actions are not held up: they take
 * this row for key share.
 */
export async function holdSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx.sql<{ last: number }[]>`
    select last_sequence as last from outbox_sequences where subscription_id = ${subscriptionId} for no key update`;
  return row?.last;
}

interface DueBatch {
  readonly shard: number;
  readonly intervalHours: number;
  readonly dueAt: Date;
  readonly windowFrom: Date;
}

export async function dueBatch(
  tx: Tx,
  subscriptionId: string,
  now: Date,
): Promise<DueBatch | undefined> {
  const [row] = await tx.sql<DueBatch[]>`
    select shard, batch_interval_hours as "intervalHours", next_batch_at as "dueAt",
           coalesce(last_batch_dispatched_at, created_at) as "windowFrom"
      from webhook_subscriptions
     where id = ${subscriptionId} and state = 'active' and next_batch_at <= ${now}
       for no key update`;
  return row;
}

/** Turns the waiting events into one job per review and one entry per event, in the order of the first event of each review. */
export async function moveToOutbox(
  tx: Tx,
  window: DueBatch & {
    readonly id: string;
    readonly subscriptionId: string;
    readonly sequence: number;
    readonly now: Date;
  },
): Promise<number> {
  const { id, subscriptionId, shard, sequence, windowFrom, now } = window;
  const [row] = await tx.sql<{ jobs: number }[]>`
    with taken as (
      delete from batch_entries where subscription_id = ${subscriptionId} returning review_history_id
    ), events as (
      select h.id, h.event_id, h.event, h.review_id, ${id} || '-' || h.review_id as job_id,
             min(h.id) over (partition by h.review_id) as first_id
        from taken t join review_history h on h.id = t.review_history_id
    ), jobs as (
      insert into batch_jobs (id, subscription_id, review_id, window_from, window_to, events)
      select job_id, ${subscriptionId}, review_id, ${windowFrom}, ${now}, count(*) from events group by job_id, review_id
      returning 1
    ), entries as (
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id,
                          review_id, batch_job_id, recorded_at)
      select ${shard}, ${subscriptionId}, ${sequence}::bigint + row_number() over (order by first_id, id), event_id,
             event, 'full', id, review_id, job_id, ${now}
        from events
      returning 1
    ), counted as (
      update outbox_sequences set last_sequence = last_sequence + (select count(*) from entries)
       where subscription_id = ${subscriptionId}
    )
    select count(*)::int as jobs from jobs`;
  return row?.jobs ?? 0;
}

export async function advanceCursor(
  tx: Tx,
  { subscriptionId, now, next }: { subscriptionId: string; now: Date; next: Date },
): Promise<void> {
  await tx.sql`
    update webhook_subscriptions set last_batch_dispatched_at = ${now}, next_batch_at = ${next}
     where id = ${subscriptionId}`;
}
