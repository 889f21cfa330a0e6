// Removal of old data, one chunk per call. The clock of PostgreSQL decides on the age, so no statement gets a time.
// Statements that move rows between tables are raw SQL.

import { and, gt, isNotNull, lt, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { DbOrTx, RawDb } from "../../db/client.ts";
import { anyOf, anyOfQuery, isAttemptOf } from "../../db/conditions.ts";
import { firstQueued } from "../../db/log.ts";
import { ulidFloor } from "../../db/partitions.ts";
import { incidents, mails } from "../../db/schema/alerts.ts";
import { endpointChecks } from "../../db/schema/checks.ts";
import { auditLog, auditWebhooks } from "../../db/schema/companies.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { authenticationEvents } from "../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { serverTime } from "../../db/server.ts";
import { nullable, onlyRow, statement, type Statement, value } from "../../db/statement.ts";
import { addMs } from "../../src/lib/clock.ts";
import { isConnectionEvent } from "../../src/outbox/queries.ts";
import type { Done } from "./loop.ts";

/** The most rows that one statement reads or removes, so that it holds no lock for long. */
export const CHUNK_ROWS = 1_000;

const DAY_MS = 86_400_000;

/** The age of the data to remove, and the position that the last chunk has reached. */
export interface Old {
  readonly days: number;
  readonly reached: string;
}

/** Makes a job that removes unlocked rows, the oldest first. */
function removeOldest(key: PgColumn, at: PgColumn, where?: SQL) {
  return async (db: RawDb, { days }: Pick<Old, "days">): Promise<Done> => {
    const old = oldestRows(db, { key, at, days, where });
    const { count } = await db.delete(key.table).where(anyOfQuery(key, old));
    return again(count);
  };
}

/** Selects and locks the keys of the oldest unlocked rows beyond the retention time. */
function oldestRows(
  db: DbOrTx,
  { key, at, days, where }: { key: PgColumn; at: PgColumn; days: number; where?: SQL | undefined },
) {
  return db
    .select({ key })
    .from(key.table)
    .where(and(where, sql`${at} < now() - make_interval(days => ${days})`))
    .orderBy(at)
    .limit(CHUNK_ROWS)
    .for("update", { skipLocked: true });
}

/** Returns the progress of a chunk that has handled `rows` rows. After a full chunk another chunk follows. */
export function again(rows: number): Done {
  return rows < CHUNK_ROWS ? { rows } : { rows, next: "" };
}

/** Removes old rows of the audit log, and counts those that the audit webhook has not delivered yet (contract 3.12). */
export async function removeOldAudit(db: RawDb, { days }: Pick<Old, "days">): Promise<Done> {
  return db.transaction(async (tx) => {
    const old = oldestRows(tx, { key: auditLog.id, at: auditLog.at, days });
    const removed = await tx
      .delete(auditLog)
      .where(anyOfQuery(auditLog.id, old))
      .returning({ id: auditLog.id });
    const ids = removed.map(({ id }) => id);
    const { afterId, lostRows } = auditWebhooks;
    const lost = sql`(select count(*) from unnest(${sql.param(ids)}::bigint[]) as id where id > ${afterId})`;
    if (ids.length > 0)
      await tx.update(auditWebhooks).set({ lostRows: sql`${lostRows} + ${lost}` });
    return again(ids.length);
  });
}

// Each condition repeats the condition of a partial index, so that PostgreSQL can use the index.
export const removeOldMails = removeOldest(
  mails.id,
  mails.settledAt,
  sql`${mails.state} <> 'queued'`,
);

/** Removes ended incidents with their alerts. */
export const removeOldIncidents = removeOldest(
  incidents.id,
  incidents.endedAt,
  isNotNull(incidents.endedAt),
);

export const removeOldChecks = removeOldest(endpointChecks.id, endpointChecks.createdAt);

/**
 * Removes old sign-ins that have neither a token nor a code left. Their ids are ULIDs, so the age is a range of ids.
 * Each run walks past the old sign-ins that are still in use.
 */
export async function removeOldSignIns(db: RawDb, { days, reached }: Old): Promise<Done> {
  const before = ulidFloor(addMs(await serverTime(db), -days * DAY_MS));
  const { id } = authenticationEvents;
  return db.transaction(async (tx) => {
    const old = await tx
      .select({ id })
      .from(authenticationEvents)
      .where(and(gt(id, reached), lt(id, before)))
      .orderBy(id)
      .limit(CHUNK_ROWS)
      .for("update", { skipLocked: true });
    const ids = old.map((row) => row.id);
    // Each `offset 0` makes the planner look the sign-in up by an index.
    const { count } = await tx
      .delete(authenticationEvents)
      .where(
        and(
          anyOf(id, ids),
          sql`not exists (select from tokens where family_id = ${id} offset 0)`,
          sql`not exists (select from authorization_codes where family_id = ${id} offset 0)`,
        ),
      );
    return { rows: count, next: ids.at(-1) };
  });
}

const historyRemoval = statement({
  name: "maintenance.removeOldHistory",
  // Raw SQL, because the statement walks past the rows that stay, and looks up by an index probe (`offset 0`) whether
  // each row is still needed. After an ANALYZE of an empty table, a join would scan all rows for each of them.
  params: { after: reviewHistory.id, days: value("integer"), limit: value("bigint") },
  columns: { next: nullable(value("text")), rows: value("bigint") },
  text: ({ after, days, limit }) => sql`
    with looked as materialized (
      select id, event_id, partner_id, store_review_site_id, axis, event, recorded_at, subscription_number, sequence
        from review_history
       where id > ${after} order by id limit ${limit}
    ), old as materialized (
      select l.* from looked l
       where l.recorded_at < now() - make_interval(days => ${days})
         -- The last change of an axis is kept, because it shows since when the axis has its present state.
         and (l.axis is null or exists (
               select from review_history n
                where n.store_review_site_id = l.store_review_site_id and n.axis = l.axis and n.id > l.id
                  and ${isConnectionEvent(sql`n.event`)} offset 0))
         and not exists (select from outbox o where o.event_id = l.event_id offset 0)
         and not exists (
               select from webhook_subscriptions s cross join lateral (
                        select from batch_entries b
                         where b.subscription_id = s.id and b.review_history_id = l.id offset 0) b
                where s.partner_id = l.partner_id offset 0)
         and not exists (
               select from delivery_attempts a where ${isAttemptOf(sql`a.event_id`, sql`l.event_id`)} offset 0)
         and not exists (
               select from webhook_subscriptions s
                cross join lateral (select settled_through from outbox_offsets where subscription_id = s.id offset 0) f
                 left join lateral (
                      select first from outbox_skips where subscription_id = s.id and last >= l.sequence
                       order by last limit 1) k on true
                where s.number = l.subscription_number
                  and (l.sequence > f.settled_through or l.sequence >= k.first) offset 0)
    ), gone as (
      delete from review_history where id = any (array(select id from old)) returning id
    )
    select (select max(id) from looked where exists (
             select from looked where recorded_at < now() - make_interval(days => ${days})))::text as next,
           (select count(*) from gone) as rows`,
});

/**
 * Removes old history rows that no entry (queued or skipped), no event of a waiting batch and no attempt needs for a
 * body. Ids follow the time, so the walk ends at the first chunk without an old row. Each run walks past the old rows
 * that are still needed.
 */
export async function removeOldHistory(db: RawDb, { days, reached }: Old): Promise<Done> {
  return onlyRow(await db.run(historyRemoval, { after: Number(reached), days, limit: CHUNK_ROWS }));
}

const OLD_PARAMS = { days: value("integer"), limit: value("bigint") };
/**
 * The parameters of statements that handle a bounded part of the next subscription that has old rows. The statements
 * find this subscription (`candidate`) by index probes, independent of the statistics of the tables.
 */
const NEXT_SUBSCRIPTION = {
  params: { after: webhookSubscriptions.id, ...OLD_PARAMS },
  columns: { id: webhookSubscriptions.id, rows: value("bigint") },
};

/** Handles a chunk of one subscription. The last chunk moves on to the next subscription. */
const nextChunk =
  (chunk: Statement<typeof NEXT_SUBSCRIPTION.params, typeof NEXT_SUBSCRIPTION.columns>) =>
  async (db: RawDb, { days, reached }: Old): Promise<Done> => {
    const [found] = await db.run(chunk, { after: reached, days, limit: CHUNK_ROWS });
    if (found === undefined) return { rows: 0 };
    return { rows: found.rows, next: found.rows < CHUNK_ROWS ? found.id : reached };
  };

/** Whether the entries of a subscription expire. While a test is pending, its entries do not expire. */
const ENTRIES_EXPIRE = sql`s.state = 'disabled' and s.pending_test_event_id is null`;

const entryExpiry = statement({
  ...NEXT_SUBSCRIPTION,
  name: "maintenance.expireHeldEntries",
  text: ({ after, days, limit }) => sql`
    with candidate as materialized (
      select s.id
        from webhook_subscriptions s cross join lateral (${firstQueued()}) head
       where s.id > ${after} and ${ENTRIES_EXPIRE} and head.recorded_at < now() - make_interval(days => ${days})
       order by s.id limit 1
    ), holder as materialized (
      -- The subscription is locked, so that it is not enabled before the commit. It is locked last, in the order of all
      -- transactions. The statement waits for no lock: it leaves out locked rows.
      select s.id, s.shard, s.number, f.settled_through, f.skipped_through
        from webhook_subscriptions s cross join lateral (
               select * from outbox_offsets where subscription_id = s.id for no key update skip locked) f
       where s.id = (select id from candidate) and ${ENTRIES_EXPIRE} for share of s skip locked
    ), first as (
      select e.* from holder s cross join lateral (
             (select sequence, recorded_at, false as is_logged from outbox
               where shard = s.shard and subscription_id = s.id and sequence > s.skipped_through and skipped_at is null
               order by sequence limit ${limit})
              union all
             (select sequence, recorded_at, true from review_history
               where subscription_number = s.number and sequence > s.settled_through
               order by sequence limit ${limit})) e
       order by e.sequence limit ${limit}
    ), old as materialized (
      -- The range of expired entries ends before the first entry that is too young, because entries are recorded in the
      -- order of their sequence.
      select count(*) as entries, max(sequence) as last, max(sequence) filter (where is_logged) as last_logged
        from first
       where sequence < all (select f.sequence from first f where f.recorded_at >= now() - make_interval(days => ${days}))
    ), moved as (
      update outbox_offsets f
         set skipped_through = o.last, settled_through = greatest(f.settled_through, o.last_logged)
        from old o where f.subscription_id = (select id from candidate) and o.entries > 0
    ), kept as (
      insert into outbox_skips (subscription_id, first, last, reason, entries, skipped_at)
      select s.id, s.settled_through + 1, o.last, 'expired', o.entries, now() from holder s, old o where o.entries > 0
    )
    select c.id, o.entries as rows from candidate c cross join old o`,
});

/**
 * Skips entries of disabled subscriptions that are older than the retention time (contract 7.9), from the head of the
 * queue on. Locked rows are left for the next run.
 */
export const expireHeldEntries = nextChunk(entryExpiry);

const skippedRows = statement({
  name: "maintenance.removeSkipped",
  // Raw SQL, because Drizzle's query builder has no limit for deletes.
  params: OLD_PARAMS,
  columns: { rows: value("bigint") },
  text: ({ days, limit }) => sql`
    with gone as (
      delete from outbox where ctid = any (array(
        (select ctid from outbox where skipped_at < now() - make_interval(days => ${days}) limit ${limit})
         union all
        (select o.ctid
           from outbox_skips k
          cross join lateral (select shard from webhook_subscriptions where id = k.subscription_id offset 0) s
          cross join lateral (
                  select ctid from outbox
                   where shard = s.shard and subscription_id = k.subscription_id and sequence <= k.last
                   order by sequence limit ${limit}) o
          where k.skipped_at < now() - make_interval(days => ${days})
          limit ${limit})
         limit ${limit}))
      returning sequence
    ), noted as (
      delete from outbox_skips
       where skipped_at < now() - make_interval(days => ${days}) and not exists (select from gone)
    )
    select count(*) as rows from gone`,
});

/** Removes entries that were skipped before the retention time, and then the ranges in `outbox_skips`. */
export async function removeSkipped(db: RawDb, { days }: Pick<Old, "days">): Promise<Done> {
  const { rows } = onlyRow(await db.run(skippedRows, { days, limit: CHUNK_ROWS }));
  return rows > 0 ? { rows, next: "" } : { rows };
}

/**
 * Whether no batch will ever take an event of `batch_entries`: a skip has dropped the event, or its subscription is
 * deleted and has no row of `outbox_sequences`.
 */
const isDropped = (entry: SQL, skippedThrough: SQL) =>
  sql`${entry} <= coalesce(${skippedThrough}, ${entry})`;

const batchExpiry = statement({
  ...NEXT_SUBSCRIPTION,
  name: "maintenance.removeBatchEntries",
  text: ({ after, days, limit }) => sql`
    with candidate as materialized (
      select s.id
        from webhook_subscriptions s
       cross join lateral (
               select b.review_history_id as id from batch_entries b where b.subscription_id = s.id
                order by b.review_history_id limit 1) first
       cross join lateral (select recorded_at from review_history where id = first.id offset 0) told
        left join lateral (
               select batch_skipped_through from outbox_sequences where subscription_id = s.id offset 0) q on true
       where s.id > ${after}
         and (s.delivery_kind = 'batch' and ${isDropped(sql`first.id`, sql`q.batch_skipped_through`)}
              or s.state = 'disabled' and told.recorded_at < now() - make_interval(days => ${days}))
       order by s.id limit 1
    ), holder as materialized (
      -- The subscription is locked, so that it is not enabled before the commit.
      select id, state from webhook_subscriptions where id = (select id from candidate) for share skip locked
    ), first as materialized (
      select b.review_history_id as id from batch_entries b
       where b.subscription_id = (select id from holder)
       order by b.review_history_id limit ${limit} for update skip locked
    ), old as (
      select f.id
        from holder s cross join first f
       cross join lateral (select recorded_at from review_history where id = f.id offset 0) told
        left join outbox_sequences q on q.subscription_id = s.id
       where ${isDropped(sql`f.id`, sql`q.batch_skipped_through`)}
          or s.state = 'disabled' and told.recorded_at < now() - make_interval(days => ${days})
    ), gone as (
      delete from batch_entries
       where subscription_id = (select id from candidate) and review_history_id = any (array(select id from old))
      returning review_history_id
    )
    select id, (select count(*) from gone) as rows from candidate`,
});

/**
 * Removes events that have waited too long for the batch of a disabled subscription, or that wait for a batch that
 * never comes.
 */
export const removeBatchEntries = nextChunk(batchExpiry);
