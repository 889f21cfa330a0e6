import { inArray, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "./client.ts";
import { outbox, outboxMarks, settledEntries } from "./schema/outbox.ts";
import { instant, nullable, statement, value } from "./statement.ts";

/*
 * A mark says that the entries of a subscription up to a sequence are settled as skipped, although they still stand in
 * the outbox. It is written in the transaction that decides so, which is short, however many they are; they follow in
 * chunks. Whoever reads or commits entries leaves out those that are marked, in the same statement.
 */

/** How many entries one statement settles or appends, so that it holds its locks for some tens of milliseconds. */
export const CHUNK = 1_000;

export type Mark = typeof outboxMarks.$inferSelect;

/** Up to which sequence a mark settles what this subscription has queued; 0 without a mark. */
export function markedThrough(subscriptionId: SQL): SQL {
  return sql`coalesce((select through from outbox_marks where subscription_id = ${subscriptionId}), 0)`;
}

/** The first sequence that is queued behind another. */
function firstBehind(key: { shard: SQL; id: SQL }, after: SQL): SQL {
  return sql`(select sequence from outbox where shard = ${key.shard} and subscription_id = ${key.id}
                 and sequence > ${after} order by sequence limit 1)`;
}

const chunk = statement({
  name: "marks.settleChunk",
  reason:
    "Moves rows from table to table in one statement, and skips what is locked. A range of numbers bounds every plan of it.",
  params: {
    shard: outbox.shard,
    id: outbox.subscriptionId,
    after: outbox.sequence,
    through: outbox.sequence,
    limit: value("bigint"),
    reason: settledEntries.reason,
    settledAt: instant,
  },
  columns: { taken: value("integer"), last: nullable(outbox.sequence) },
  text: ({ shard, id, after, through, limit, reason, settledAt }) => sql`
    with range as materialized (
      select first, least(${through}, first + ${limit}::bigint - 1) as last
        from (select ${firstBehind({ shard, id }, after)} as first) f
       where first <= ${through}
    ), taken as materialized (
      select ctid as place, sequence from outbox
       where shard = ${shard} and subscription_id = ${id}
         and sequence between (select first from range) and (select last from range)
       order by sequence for update skip locked
    ), gone as (
      delete from outbox where ctid = any(array(select place from taken)) returning *
    ), settled as (
      insert into settled_entries
        (subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
         batch_job_id, round, reason, recorded_at, settled_at)
      select subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
             batch_job_id, round, ${reason}, recorded_at, ${settledAt}
        from gone
    )
    select count(*)::int as taken, (select last from range) as last from taken`,
});

/** What one chunk did: it took so many entries, and looked at all up to `last`; null if there were none to look at. */
export interface Settled {
  readonly taken: number;
  readonly last: number | null;
}

/** Settles the next marked entries behind a sequence. Those that somebody has locked are left for another walk. */
export async function settleChunk(db: DbOrTx, mark: Mark, after: number): Promise<Settled> {
  const { subscriptionId: id, shard, through, reason, settledAt } = mark;
  const given = { id, shard, through, reason, settledAt, after, limit: CHUNK };
  const [row] = await db.run(chunk, given);
  return row ?? { taken: 0, last: null };
}

const marking = statement({
  name: "marks.mark",
  reason: "Inserts only if something is left to settle, for which the builder has no condition.",
  params: {
    id: outboxMarks.subscriptionId,
    shard: outboxMarks.shard,
    through: outboxMarks.through,
    reason: outboxMarks.reason,
    settledAt: instant,
  },
  columns: {},
  text: ({ id, shard, through, reason, settledAt }) => sql`
    insert into outbox_marks (subscription_id, shard, through, reason, settled_at)
    select ${id}, ${shard}, ${through}, ${reason}, ${settledAt}
     where ${firstBehind({ shard, id }, sql`0`)} <= ${through}
        on conflict (subscription_id) do update
       set through = excluded.through, reason = excluded.reason, settled_at = excluded.settled_at`,
});

/**
 * Skips all that is queued up to a sequence: few entries at once, the rest by a mark. Under the lock of the sequence, so
 * that nothing up to `through` can come any more.
 */
export async function skipQueued(tx: Tx, mark: Mark): Promise<void> {
  await settleChunk(tx, mark, 0);
  const { subscriptionId: id, ...rest } = mark;
  await tx.run(marking, { id, ...rest });
}

const MARKS_AT_ONCE = 100;

/** Marks of these shards. */
export async function openMarks(db: DbOrTx, shards: readonly number[]): Promise<Mark[]> {
  if (shards.length === 0) return [];
  return db
    .select()
    .from(outboxMarks)
    .where(inArray(outboxMarks.shard, [...shards]))
    .limit(MARKS_AT_ONCE);
}

const ending = statement({
  name: "marks.end",
  reason: "Deletes only if nothing is left to settle, as its first look-up says.",
  params: {
    id: outboxMarks.subscriptionId,
    shard: outbox.shard,
    through: outboxMarks.through,
  },
  columns: {},
  text: ({ id, shard, through }) => sql`
    delete from outbox_marks
     where subscription_id = ${id} and through = ${through}
       and coalesce(${firstBehind({ shard, id }, sql`0`)} > ${through}, true)`,
});

/** Ends a mark if nothing of it is left, and it is still the same. */
export async function endMark(db: DbOrTx, mark: Mark): Promise<void> {
  const { subscriptionId: id, shard, through } = mark;
  await db.run(ending, { id, shard, through });
}
