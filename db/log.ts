import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "./client.ts";
import { outbox, outboxOffsets, outboxSkips } from "./schema/outbox.ts";
import { instant, list, nullable, onlyRow, statement, value, type ValuesOf } from "./statement.ts";

/*
 * The log of a subscription consists of the rows of `review_history` that belong to the subscription, in the order of
 * their sequence numbers. Rows after the subscription's offset (`settled_through` in `outbox_offsets`) are not
 * delivered yet. The offset never decreases. If the offset passes an event that still has to be delivered, the event
 * gets a row in `outbox`.
 */

/**
 * Number of rows that one statement writes or deletes, so that it holds its locks for only some tens of milliseconds.
 */
export const CHUNK = 1_000;

/**
 * Selects the skip watermark of a subscription. Entries up to this sequence are skipped, unless they were delivered or
 * failed.
 */
export function skippedThrough(subscriptionId: SQL): SQL {
  return sql`coalesce((select skipped_through from outbox_offsets where subscription_id = ${subscriptionId}), 0)`;
}

/**
 * The columns of a new `outbox` row for an event of the log. In `LOGGED_VALUES`, `h` is the row of the event in
 * `review_history`, and `s` is the subscription.
 */
export const LOGGED_COLUMNS = sql.raw(
  "shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at",
);
export const LOGGED_VALUES = sql.raw(
  "s.shard, s.id, h.sequence, h.event_id, h.event, case when h.is_minimal then 'minimal' else 'full' end, h.id, h.review_id, h.recorded_at",
);

const passStatement = statement({
  name: "log.pass",
  // Raw SQL, because one statement moves the offset and inserts the `outbox` rows of the events that it passes.
  params: { id: outboxOffsets.subscriptionId, limit: value("bigint"), lockMs: value("text") },
  columns: { passed: value("integer") },
  text: ({ id, limit, lockMs }) => sql`
    with place as materialized (
      select s.id, s.number, s.shard, f.settled_through
        from webhook_subscriptions s cross join lateral (
               select settled_through from outbox_offsets
                where subscription_id = s.id and set_config('lock_timeout', ${lockMs}, true) is not null
                  for no key update) f
       where s.id = ${id}
    ), next as materialized (
      select h.* from place s cross join lateral (
               select *, lag(sequence, 1, s.settled_through) over (order by sequence) as previous from review_history
                where subscription_number = s.number and sequence > s.settled_through
                order by sequence limit ${limit}) h
    ), passed as materialized (
      -- Ends before the first event that was deleted from the log.
      select * from next where sequence < coalesce(
        (select min(sequence) from next where sequence - coalesce(gap, 0) - 1 > previous), 9223372036854775807)
    ), moved as (
      update outbox_offsets set settled_through = (select max(sequence) from passed)
       where subscription_id = ${id} and exists (select from passed)
    ), inserted as (
      insert into outbox (${LOGGED_COLUMNS}) select ${LOGGED_VALUES} from place s cross join passed h returning 1
    )
    select count(*)::int as passed from inserted`,
});

/**
 * Inserts the next `limit` events of a log into `outbox` and moves the offset past them, but not past an event that was
 * deleted from the log (contract 7.3). No later statement of the transaction waits longer than `lockMs` for a lock.
 * Returns the number of inserted events.
 */
export async function passLogged(
  db: DbOrTx,
  id: string,
  { limit, lockMs }: { readonly limit: number; readonly lockMs: number },
): Promise<number> {
  return onlyRow(await db.run(passStatement, { id, limit, lockMs: `${lockMs}` })).passed;
}

const holdStatement = statement({
  name: "log.hold",
  // Raw SQL, because the statement locks a bounded number of rows and skips those that another transaction has locked.
  params: {
    id: outbox.subscriptionId,
    after: outbox.sequence,
    except: list(outbox.reviewId),
    exceptNone: value("boolean"),
    heldAt: instant,
  },
  columns: { searchedThrough: nullable(value("bigint")), held: value("integer") },
  text: ({ id, after, except, exceptNone, heldAt }) => sql`
    with searched as materialized (
      select o.ctid as place, o.sequence, o.review_history_id
        from webhook_subscriptions s cross join lateral (
               select ctid, sequence, review_history_id from outbox
                where shard = s.shard and subscription_id = s.id and sequence > greatest(${after}, ${skippedThrough(id)})
                  and not is_test and skipped_at is null
                  and coalesce(review_id <> all(${except}), not ${exceptNone}::boolean)
                order by sequence limit ${sql.raw(String(CHUNK))}) o
       where s.id = ${id}
    ), found as materialized (
      select q.place from searched q
       cross join lateral (select account_id from review_history where id = q.review_history_id offset 0) h
       cross join lateral (
               -- Locked, so that an activation either waits for this statement, or this statement sees it and excludes
               -- the account.
               select from companies where id = h.account_id and not is_active for share) c
    ), held as (
      update outbox set skipped_at = ${heldAt}, is_held = true
       where ctid = any(array(
               select ctid from outbox where ctid = any(array(select place from found)) and skipped_at is null
                  for update skip locked))
      returning 1
    )
    select case when count(*) = ${sql.raw(String(CHUNK))} then max(sequence) end as "searchedThrough",
           (select count(*)::int from held) as held
      from searched`,
});

/**
 * Searches the next `CHUNK` rows of `outbox` after a sequence and holds those whose account is not active (contract
 * 10.1). A held row is skipped (`skipped_at`) until `releaseHeld`. Events of the log are held after they have got a row
 * (`passLogged`). The reviews in `exceptReviews` are excluded, because their entries may be in flight. Returns the
 * number of held rows and the last searched sequence, which is null if no further row follows.
 */
export async function holdQueued(
  db: DbOrTx,
  one: {
    readonly id: string;
    readonly after: number;
    readonly exceptReviews: readonly (number | null)[];
    readonly heldAt: Date;
  },
): Promise<{ readonly searchedThrough: number | null; readonly held: number }> {
  const { id, after, exceptReviews, heldAt } = one;
  const except = exceptReviews.filter((review) => review !== null);
  const exceptNone = exceptReviews.includes(null);
  return onlyRow(await db.run(holdStatement, { id, after, except, exceptNone, heldAt }));
}

/** The time before which loads with lanes by review ignore a row of `outbox`; null if the row has never waited. */
export const retryTime = (row: string): SQL =>
  sql.raw(`coalesce(${row}.due_at, ${row}.behind_until)`);

interface RowSelection {
  readonly shard: SQL;
  readonly id: SQL;
  /** The row of `outbox_offsets` of the subscription. */
  readonly offset: SQL;
  /** Condition that selects rows `o` of `outbox`. */
  readonly isAsked: SQL;
}

/**
 * Selects rows of `outbox` that loads with lanes by review read without a result, because the first row of their review
 * is due later. Each result has the row's `place` and, as `until`, the due time of that first row. The search covers
 * the next `limit` rows that never waited, and the same number of rows whose wait has ended. Rows after the offset are
 * excluded, because the log may contain earlier events of their reviews.
 */
export function walkedPast({ shard, id, offset, isAsked }: RowSelection, limit: number): SQL {
  const isQueued = (row: string) => {
    const column = (name: string) => sql.raw(`${row}.${name}`);
    return sql`${column("shard")} = ${shard} and ${column("subscription_id")} = ${id} and ${column("sequence")} > ${offset}.skipped_through
                 and not ${column("is_test")} and ${column("skipped_at")} is null`;
  };
  const next = (when: SQL) => sql`
    (select o.ctid as place, o.* from outbox o where ${isQueued("o")} and ${when}
        and o.sequence <= ${offset}.settled_through and ${isAsked}
      order by ${retryTime("o")}, o.sequence limit ${sql.raw(String(limit))})`;
  return sql`
    select n.place, head.until
      from (${next(sql`${retryTime("o")} is null`)} union all ${next(sql`${retryTime("o")} <= now()`)}) n
     cross join lateral (
             select w.sequence, ${retryTime("w")} as until from outbox w
              where ${isQueued("w")} and coalesce(w.review_id, 0) = coalesce(n.review_id, 0)
              order by w.sequence limit 1) head
     where head.sequence < n.sequence and n.due_at is null
       and head.until > coalesce(n.behind_until, '-infinity')`;
}

const postponeStatement = statement({
  name: "log.postpone",
  // Raw SQL, because the statement reads bounded parts of an index and looks up the review of each row.
  params: {
    id: outbox.subscriptionId,
    except: list(outbox.reviewId),
    exceptNone: value("boolean"),
  },
  columns: { postponed: value("integer") },
  text: ({ id, except, exceptNone }) => sql`
    with found as materialized (
      select w.* from webhook_subscriptions s
       cross join lateral (select * from outbox_offsets where subscription_id = s.id offset 0) f
       cross join lateral (${walkedPast(
         {
           shard: sql`s.shard`,
           id: sql`s.id`,
           offset: sql`f`,
           isAsked: sql`coalesce(o.review_id <> all(${except}), not ${exceptNone}::boolean)`,
         },
         CHUNK,
       )}) w
       where s.id = ${id}
    ), postponed as (
      update outbox o set behind_until = found.until from found
       where o.ctid = found.place
         and o.ctid = any(array(
               select ctid from outbox where ctid = any(array(select place from found)) for no key update skip locked))
      returning 1
    )
    select count(*)::int as postponed from postponed`,
});

/**
 * Stores in rows of a subscription with lanes by review until when an earlier entry of the same review waits, so that
 * loads do not read these rows. It updates at most twice `CHUNK` rows. The reviews in `exceptReviews` are excluded.
 * Returns the number of updated rows.
 */
export async function postponeBehind(
  db: DbOrTx,
  one: { readonly id: string; readonly exceptReviews: readonly (number | null)[] },
): Promise<number> {
  const except = one.exceptReviews.filter((review) => review !== null);
  const exceptNone = one.exceptReviews.includes(null);
  return onlyRow(await db.run(postponeStatement, { id: one.id, except, exceptNone })).postponed;
}

const releaseStatement = statement({
  name: "log.release",
  // Raw SQL, because the statement reads a bounded part of an index and looks up the account of each row.
  params: {
    id: outbox.subscriptionId,
    shard: outbox.shard,
    after: outbox.sequence,
    accountId: value("integer"),
    isDelivered: value("boolean"),
  },
  columns: { searchedThrough: value("bigint") },
  text: ({ id, shard, after, accountId, isDelivered }) => sql`
    with searched as materialized (
      select sequence, review_history_id from outbox
       where shard = ${shard} and subscription_id = ${id} and sequence > ${after} and is_held
       order by sequence limit ${sql.raw(String(CHUNK))}
    ), released as (
      -- The rows are found by their key, because a concurrent update moves a row to another place.
      update outbox o set is_held = false, skipped_at = case when not ${isDelivered}::boolean then o.skipped_at end
       where o.shard = ${shard} and o.subscription_id = ${id} and o.is_held
         and o.sequence = any(array(
               select q.sequence from searched q cross join lateral (
                        select account_id from review_history where id = q.review_history_id offset 0) h
                where h.account_id = ${accountId}))
    )
    select max(sequence) as "searchedThrough" from searched having count(*) = ${sql.raw(String(CHUNK))}`,
});

/**
 * Ends the hold of an account's entries at a subscription: if `isDelivered` is true, they return to their old positions
 * in the queue, otherwise they stay skipped. The caller has locked the account, so that no entry is held during the
 * release. Each statement searches `CHUNK` held entries, so that it does not exceed its time limit; 100,000 entries
 * take a few seconds.
 */
export async function releaseHeld(
  tx: Tx,
  { id, shard }: { readonly id: string; readonly shard: number },
  { accountId, held }: { readonly accountId: number; readonly held: "deliver" | "skip" },
): Promise<void> {
  const isDelivered = held === "deliver";
  const release = (after: number) =>
    tx.run(releaseStatement, { id, shard, after, accountId, isDelivered });
  let [found] = await release(0);
  while (found !== undefined) [found] = await release(found.searchedThrough);
}

const skipStatement = statement({
  name: "log.skip",
  // Raw SQL, because the skipped range begins after the value that the offset had before the update.
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
 * Skips all queued entries up to a sequence, in constant time. The caller must hold the lock of the sequence, so that
 * no entry up to `through` can be added later.
 */
export async function skipQueued(
  tx: Tx,
  skip: ValuesOf<typeof skipStatement.params>,
): Promise<void> {
  await tx.run(skipStatement, skip);
}

/*
 * SQL fragments for statements that read the queue of a subscription: the rows of `outbox`, and the events of its log
 * after the offset. Each fragment reads a bounded part of an index. The alias `s` stands for the subscription with its
 * id, shard and number.
 */

const queuedRows = sql`from outbox o where o.shard = s.shard and o.subscription_id = s.id and o.skipped_at is null
                   and o.sequence > ${skippedThrough(sql`s.id`)}`;
const loggedEvents = sql`from review_history h where h.subscription_number = s.number
                     and h.sequence > (select settled_through from outbox_offsets where subscription_id = s.id)`;

/** A limit that is larger than any number of rows, for reads without a limit. */
export const NO_LIMIT = 2 ** 31 - 1;

/** Selects `sequence`, `recorded_at`, `due_at` and `state` of the first entry in the queue. */
export const firstQueued = (isOrdered: SQL = sql`true`): SQL => sql`
  select * from (
    (select o.sequence, o.recorded_at, o.due_at, o.state ${queuedRows} and ${isOrdered} order by o.sequence limit 1)
     union all
    (select h.sequence, h.recorded_at, null, 'pending' ${loggedEvents} order by h.sequence limit 1)) first
   order by sequence limit 1`;

/** Selects `recorded_at` and `state` of all entries in the queue, in no order. */
export const allQueued = sql`
  select o.recorded_at, o.state ${queuedRows} union all select h.recorded_at, 'pending' ${loggedEvents}`;

/** Excludes test events, because they do not block other entries. */
export const NO_TEST = sql`not o.is_test`;

/**
 * Selects the length of the queue as a scalar subquery. The length is exact up to `limit` rows and `limit` events of
 * the log. Beyond that, each sequence number counts as an entry. So counting a queue of a million entries takes no
 * longer than counting `limit` entries.
 */
export function queueLength(limit: number): SQL {
  const most = sql.raw(String(limit));
  // The limit is a subquery whose value the planner cannot estimate. So the planner reads the index in its order
  // instead of sorting the whole queue.
  const length = (sequence: SQL, from: SQL, last: SQL) => sql`(
    select c.entries + case when c.entries < ${most} then 0 else greatest(0, coalesce(${last}, c.last) - c.last) end
      from (select count(*) as entries, max(n) as last
              from (select ${sequence} as n ${from} order by 1 limit (select ${most}::bigint)) e) c)`;
  const lastRow = sql`(select o.sequence ${queuedRows} order by o.sequence desc limit 1)`;
  const lastLogged = sql`(select last_logged from outbox_sequences where subscription_id = s.id)`;
  return sql`(${length(sql`o.sequence`, queuedRows, lastRow)} + ${length(sql`h.sequence`, loggedEvents, lastLogged)})`;
}

/** Selects how many events of a batch subscription wait for its next batch, up to `limit`, as a scalar subquery. */
export function batchLength(limit: number): SQL {
  // The limit is a subquery, because the planner then walks the index in order.
  return sql`(
    select count(*) from (
      select b.review_history_id from batch_entries b
       where b.subscription_id = s.id
         and b.review_history_id > coalesce((select batch_skipped_through from outbox_sequences where subscription_id = s.id), 0)
       order by b.review_history_id limit (select ${sql.raw(String(limit))}::bigint)) e)`;
}

/**
 * Builds the common table expressions of a `with recursive`. The last one, `queues` (shard, subscription_id), contains
 * about `limit` subscriptions per shard that have queued entries. The caller's expression `asked` (shard) lists the
 * shards.
 */
export function queuesOf(limit: SQL): SQL {
  return sql`with_rows as (
      -- A loose index scan: it jumps from one subscription to the next, however many rows each of them has. The bounds
      -- are single columns, because before PostgreSQL 18 a row comparison does not end an index scan.
      select 1 as n, a.shard, next.subscription_id
        from asked a cross join lateral (
               select subscription_id from outbox where shard = a.shard order by subscription_id limit 1) next
       union all
      select w.n + 1, w.shard, next.subscription_id
        from with_rows w cross join lateral (
               select subscription_id from outbox where shard = w.shard and subscription_id > w.subscription_id
                order by subscription_id limit 1) next
       where w.n < ${limit}::integer
    ), behind as (
      select s.shard, s.id as subscription_id
        from asked a cross join lateral (
               select shard, id from webhook_subscriptions
                where shard = a.shard and state <> 'deleted' and delivery_kind = 'immediate' offset 0) s
       cross join lateral (select last_logged from outbox_sequences where subscription_id = s.id offset 0) q
       cross join lateral (select settled_through from outbox_offsets where subscription_id = s.id offset 0) f
       where q.last_logged > f.settled_through
       limit ${limit}::integer::bigint * (select count(*) from asked)
    ), queues as (
      select shard, subscription_id from with_rows union select shard, subscription_id from behind
    )`;
}
