import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "./client.ts";
import { outbox, outboxOffsets, outboxSkips } from "./schema/outbox.ts";
import { instant, list, nullable, onlyRow, statement, value, type ValuesOf } from "./statement.ts";

/*
 * The log of a subscription consists of the rows of `review_history` that belong to the subscription, in the order of
 * their sequence. Rows after the subscription's offset (`settled_through` in `outbox_offsets`) are still to be
 * delivered. The offset only grows. An event that the offset passes before the event is settled gets a row in
 * `outbox`.
 */

/**
 * The number of rows that one statement writes or deletes, so that the statement holds its locks for some tens of
 * milliseconds.
 */
export const CHUNK = 1_000;

/**
 * Selects the skip watermark of a subscription: entries up to this sequence that no attempt has settled are skipped.
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

const passing = statement({
  name: "log.pass",
  // Raw SQL, because one statement moves the offset and inserts the `outbox` rows of the passed events.
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
      -- Up to the first removed event.
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
 * removed from the log (contract 7.3). From then on no statement of the transaction waits longer than `lockMs` for a
 * lock. Returns the number of inserted events.
 */
export async function passLogged(
  db: DbOrTx,
  id: string,
  { limit, lockMs }: { readonly limit: number; readonly lockMs: number },
): Promise<number> {
  return onlyRow(await db.run(passing, { id, limit, lockMs: `${lockMs}` })).passed;
}

const holding = statement({
  name: "log.hold",
  // Raw SQL, because the statement locks a bounded number of rows and leaves out those that another one has locked.
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
               -- Locked, so that an activation either waits for this statement or excludes its account.
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
 * Searches the next `CHUNK` rows of `outbox` after a sequence, and holds those whose account is not active (contract
 * 10.1): they are marked as skipped until `releaseHeld`. Events of the log are held once they have a row
 * (`passLogged`). The reviews in `exceptReviews` are left out, because they may be under way. Returns the number of held
 * rows, and the last searched sequence, or null if no row follows it.
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
  return onlyRow(await db.run(holding, { id, after, except, exceptNone, heldAt }));
}

/** The time before which loads with lanes by review do not look at a row of `outbox`; null if it never waited. */
export const lookAt = (row: string): SQL => sql.raw(`coalesce(${row}.due_at, ${row}.behind_until)`);

interface Place {
  readonly shard: SQL;
  readonly id: SQL;
  /** The row of `outbox_offsets`. */
  readonly offset: SQL;
  /** Selects rows `o` of `outbox`. */
  readonly isAsked: SQL;
}

/**
 * Selects the rows that loads with lanes by review read in vain, because the first row of their review is due later. Each
 * has its `place` and, as `until`, the due time of that first row. The search covers the next `limit` rows that never waited,
 * and as many whose time has come. Rows after the offset are left out, because the log may have earlier events of their
 * reviews.
 */
export function walkedPast({ shard, id, offset, isAsked }: Place, limit: number): SQL {
  const isQueued = (row: string) => {
    const column = (name: string) => sql.raw(`${row}.${name}`);
    return sql`${column("shard")} = ${shard} and ${column("subscription_id")} = ${id} and ${column("sequence")} > ${offset}.skipped_through
                 and not ${column("is_test")} and ${column("skipped_at")} is null`;
  };
  const next = (when: SQL) => sql`
    (select o.ctid as place, o.* from outbox o where ${isQueued("o")} and ${when}
        and o.sequence <= ${offset}.settled_through and ${isAsked}
      order by ${lookAt("o")}, o.sequence limit ${sql.raw(String(limit))})`;
  return sql`
    select n.place, head.until
      from (${next(sql`${lookAt("o")} is null`)} union all ${next(sql`${lookAt("o")} <= now()`)}) n
     cross join lateral (
             select w.sequence, ${lookAt("w")} as until from outbox w
              where ${isQueued("w")} and coalesce(w.review_id, 0) = coalesce(n.review_id, 0)
              order by w.sequence limit 1) head
     where head.sequence < n.sequence and n.due_at is null
       and head.until > coalesce(n.behind_until, '-infinity')`;
}

const postponing = statement({
  name: "log.postpone",
  // Raw SQL, because the statement walks bounded parts of an index and looks up the review of each row.
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
 * Notes at rows of a subscription with lanes by review how long the entries before them wait, so that loads do not walk
 * past these rows: at up to twice `CHUNK` of them. The reviews in `exceptReviews` are left out. Returns the number of rows.
 */
export async function postponeBehind(
  db: DbOrTx,
  one: { readonly id: string; readonly exceptReviews: readonly (number | null)[] },
): Promise<number> {
  const except = one.exceptReviews.filter((review) => review !== null);
  const exceptNone = one.exceptReviews.includes(null);
  return onlyRow(await db.run(postponing, { id: one.id, except, exceptNone })).postponed;
}

const releasing = statement({
  name: "log.release",
  // Raw SQL, because the statement walks a bounded part of an index and looks up the account of each row.
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
      -- By the key, because a row that another statement changes meanwhile gets a new place.
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
 * Ends the hold of an account's entries at a subscription: they return into the queue at their old places, or stay
 * skipped. The caller has locked the account, so that no entry is held meanwhile. Each statement searches `CHUNK` held
 * entries, so that none runs into its time limit; a hundred thousand entries take a few seconds.
 */
export async function releaseHeld(
  tx: Tx,
  { id, shard }: { readonly id: string; readonly shard: number },
  { accountId, held }: { readonly accountId: number; readonly held: "deliver" | "skip" },
): Promise<void> {
  const isDelivered = held === "deliver";
  const release = (after: number) =>
    tx.run(releasing, { id, shard, after, accountId, isDelivered });
  let [found] = await release(0);
  while (found !== undefined) [found] = await release(found.searchedThrough);
}

const skipping = statement({
  name: "log.skip",
  // Raw SQL, because the skipped range starts after the value that the offset had before the update.
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
 * Skips all queued entries up to a sequence, in constant time. The caller holds the lock of the sequence, so that no
 * entry up to `through` can be added later.
 */
export async function skipQueued(tx: Tx, skip: ValuesOf<typeof skipping.params>): Promise<void> {
  await tx.run(skipping, skip);
}

/*
 * SQL fragments for statements that read the queue of a subscription: the rows of `outbox` and the events of its log
 * after the offset. Each fragment reads a bounded part of an index. In them `s` is the subscription, with its id,
 * shard and number.
 */

const rows = sql`from outbox o where o.shard = s.shard and o.subscription_id = s.id and o.skipped_at is null
                   and o.sequence > ${skippedThrough(sql`s.id`)}`;
const logged = sql`from review_history h where h.subscription_number = s.number
                     and h.sequence > (select settled_through from outbox_offsets where subscription_id = s.id)`;

/** A limit above any number of rows, for reads without a limit. */
export const NO_LIMIT = 2 ** 31 - 1;

/** Selects the first entry of the queue: its sequence, recorded_at, due_at and state. */
export const firstQueued = (isOrdered: SQL = sql`true`): SQL => sql`
  select * from (
    (select o.sequence, o.recorded_at, o.due_at, o.state ${rows} and ${isOrdered} order by o.sequence limit 1)
     union all
    (select h.sequence, h.recorded_at, null, 'pending' ${logged} order by h.sequence limit 1)) first
   order by sequence limit 1`;

/** Selects all entries of the queue, unordered: their recorded_at and state. */
export const allQueued = sql`
  select o.recorded_at, o.state ${rows} union all select h.recorded_at, 'pending' ${logged}`;

/** Excludes test events, because they do not hold back other entries. */
export const NO_TEST = sql`not o.is_test`;

/**
 * Selects the length of the queue as a scalar subquery. The length is exact up to `limit` rows and `limit` events of
 * the log. Beyond that each sequence number counts as an entry, so that counting a queue of a million entries costs
 * as much as counting `limit` entries.
 */
export function queueLength(limit: number): SQL {
  const most = sql.raw(String(limit));
  // The limit is a subquery, which the planner cannot estimate, so the planner walks the index instead of sorting the
  // whole queue.
  const length = (sequence: SQL, from: SQL, last: SQL) => sql`(
    select c.entries + case when c.entries < ${most} then 0 else greatest(0, coalesce(${last}, c.last) - c.last) end
      from (select count(*) as entries, max(n) as last
              from (select ${sequence} as n ${from} order by 1 limit (select ${most}::bigint)) e) c)`;
  const lastRow = sql`(select o.sequence ${rows} order by o.sequence desc limit 1)`;
  const lastLogged = sql`(select last_logged from outbox_sequences where subscription_id = s.id)`;
  return sql`(${length(sql`o.sequence`, rows, lastRow)} + ${length(sql`h.sequence`, logged, lastLogged)})`;
}

/**
 * Makes the common table expressions of a `with recursive`. The last one, `queues` (shard, subscription_id), contains
 * the subscriptions with queued entries in the shards that the caller's expression `asked` (shard) lists, about
 * `limit` per shard.
 */
export function queuesOf(limit: SQL): SQL {
  return sql`with_rows as (
      -- A loose index scan: it goes from one subscription to the next, however many rows each of them has. The bounds
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
