import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "./client.ts";
import { outboxOffsets, outboxSkips } from "./schema/outbox.ts";
import { instant, statement, value, type ValuesOf } from "./statement.ts";

/*
 * The log of a subscription: the rows of review_history with its number, in the order of their sequence. What is behind
 * `settled_through` of its offset is to be delivered. The offset only grows; an event that it passes before it is settled
 * gets a row in `outbox`.
 */

/** How many rows one statement writes or deletes, so that it holds its locks for some tens of milliseconds. */
export const CHUNK = 1_000;

/** Up to which sequence the entries of a subscription are skipped, if no attempt has settled them. */
export function skippedThrough(subscriptionId: SQL): SQL {
  return sql`coalesce((select skipped_through from outbox_offsets where subscription_id = ${subscriptionId}), 0)`;
}

/** The columns of a row of `outbox`, of an event `h` of the log. `s` is the subscription. */
export const LOGGED_COLUMNS = sql.raw(
  "shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at",
);
export const LOGGED_VALUES = sql.raw(
  "s.shard, s.id, h.sequence, h.event_id, h.event, case when h.is_minimal then 'minimal' else 'full' end, h.id, h.review_id, h.recorded_at",
);

const passing = statement({
  name: "log.pass",
  // Moves the offset and writes the rows that it passes in one statement.
  params: { id: outboxOffsets.subscriptionId, limit: value("bigint"), lockMs: value("text") },
  text: ({ id, limit, lockMs }) => sql`
    with place as materialized (
      select s.id, s.number, s.shard, f.settled_through
        from webhook_subscriptions s cross join lateral (
               select settled_through from outbox_offsets
                where subscription_id = s.id and set_config('lock_timeout', ${lockMs}, true) is not null
                  for no key update) f
       where s.id = ${id}
    ), passed as materialized (
      select h.* from place s cross join lateral (
               select * from review_history
                where subscription_number = s.number and sequence > s.settled_through
                order by sequence limit ${limit}) h
    ), moved as (
      update outbox_offsets set settled_through = (select max(sequence) from passed)
       where subscription_id = ${id} and exists (select from passed)
    )
    insert into outbox (${LOGGED_COLUMNS}) select ${LOGGED_VALUES} from place s cross join passed h`,
});

/**
 * Gives the next events of a log, at most so many, rows in `outbox`, and moves the offset behind them. From here on the
 * transaction waits for no lock longer than `lockMs`.
 */
export async function passLogged(
  db: DbOrTx,
  id: string,
  { limit, lockMs }: { readonly limit: number; readonly lockMs: number },
): Promise<void> {
  await db.run(passing, { id, limit, lockMs: `${lockMs}` });
}

const skipping = statement({
  name: "log.skip",
  // The range follows from the offset as it was before.
  params: {
    subscriptionId: outboxOffsets.subscriptionId,
    through: outboxSkips.last,
    reason: outboxSkips.reason,
    skippedAt: instant,
  },
  text: ({ subscriptionId, through, reason, skippedAt }) => sql`
    with place as materialized (
      select settled_through from outbox_offsets
       where subscription_id = ${subscriptionId} and skipped_through < ${through} for no key update
    ), moved as (
      update outbox_offsets set settled_through = greatest(settled_through, ${through}), skipped_through = ${through}
       where subscription_id = ${subscriptionId} and exists (select from place)
    )
    insert into outbox_skips (subscription_id, first, last, reason, skipped_at)
    select ${subscriptionId}, settled_through + 1, ${through}, ${reason}, ${skippedAt} from place`,
});

/**
 * Skips everything that is queued up to a sequence, however much it is. Under the lock of the sequence, so that nothing up
 * to `through` can come any more.
 */
export async function skipQueued(tx: Tx, skip: ValuesOf<typeof skipping.params>): Promise<void> {
  await tx.run(skipping, skip);
}
