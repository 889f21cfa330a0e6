// This file uses raw SQL, because the query builder cannot express partitions.
import { sql } from "drizzle-orm";
import { encodeTime } from "ulid";

import type { DbOrTx, RawDb, RawTx } from "./client.ts";
import { isLockTimeout } from "./errors.ts";
import { LOCK_MS, retryLocks } from "./locks.ts";
import { waitForTurn, serverTime } from "./server.ts";

const DAY_MS = 86_400_000;
/** The number of days after today for which partitions are created. */
const PARTITION_DAYS_AHEAD = 7;

/**
 * Maximum number of rows that one statement moves out of the default partition, and maximum number of rows that the
 * default partition may contain for a day whose partition is created.
 */
const MOVED_AT_ONCE = 5_000;
export const MOVED_AT_MOST = 100_000;

/**
 * Returns the smallest ULID of an instant. ULIDs are ordered by time, so the ULIDs of a day form a range. They begin in
 * 1970.
 */
export function ulidFloor(at: Date): string {
  return encodeTime(Math.max(0, at.getTime()), 10) + "0".repeat(16);
}

/** Lists the daily partitions of delivery_attempts, the oldest first. */
function dailyPartitions(db: DbOrTx) {
  const day = sql`right(c.relname, 8)`;
  const end = sql`(to_date(${day}, 'YYYYMMDD') + 1)::timestamp at time zone 'UTC'`;
  const index = sql`coalesce(to_regclass(c.relname || '_of_value'), to_regclass(c.relname || '_of_event'))`;
  return db
    .select({
      name: sql`c.oid::regclass::text`.mapWith(String),
      /** The server's estimate of the number of rows in the partition; negative if the partition was never analysed. */
      estimate: sql`c.reltuples`.mapWith(Number),
      /** Hours since the end of the partition's day, by PostgreSQL's clock. */
      endedHours: sql`extract(epoch from now() - ${end}) / 3600`.mapWith(Number),
      /** Whether the partition has the index by event value (`indexEndedDays`). */
      isIndexed: sql`${index} is not null`.mapWith(Boolean),
    })
    .from(sql`pg_inherits i join pg_class c on c.oid = i.inhrelid`)
    .where(sql`i.inhparent = 'delivery_attempts'::regclass and c.relname ~ '_[0-9]{8}$'`)
    .orderBy(day, sql`c.relname`);
}

type DayPartition = ReturnType<typeof partitionsAhead>[number];

/**
 * Returns the daily partitions from the day of `now` on. Their names end with the UTC day, such as `_20260601`. A
 * partition contains the ids from `from` to `to`, without `to`.
 */
export function partitionsAhead(now: Date, days: number) {
  const today = now.getTime() - (now.getTime() % DAY_MS);
  return Array.from({ length: days + 1 }, (_, i) => {
    const from = new Date(today + i * DAY_MS);
    const day = from.toISOString().slice(0, 10).replaceAll("-", "");
    const to = new Date(from.getTime() + DAY_MS);
    return { name: `delivery_attempts_${day}`, from: ulidFloor(from), to: ulidFloor(to) };
  });
}

/**
 * Creates the missing partitions of the next week. Also creates partitions for those of the last `pastDays` days of
 * which the default partition contains rows, and moves these rows into them. Returns the names of the new partitions.
 *
 * Each partition is created separately; the first error is thrown after all were tried. A partition is left for the
 * next call if its locks are not available, or if the default partition has too many rows for it. Until then these rows
 * are read, written and finally deleted in the default partition.
 */
export async function ensurePartitions(db: RawDb, now: Date, pastDays = 0): Promise<string[]> {
  const first = new Date(now.getTime() - pastDays * DAY_MS);
  const there = new Set((await dailyPartitions(db)).map(({ name }) => name));
  const made: string[] = [];
  const failures: unknown[] = [];
  for (const partition of partitionsAhead(first, pastDays + PARTITION_DAYS_AHEAD))
    try {
      if (there.has(partition.name) || !(await isDue(db, partition, now))) continue;
      if (await makePartition(db, partition)) made.push(partition.name);
    } catch (error) {
      failures.push(error);
    }
  if (failures.length > 0) throw failures[0];
  return made;
}

/**
 * Returns whether a missing partition is created now. Either its day has not ended, or the default partition contains
 * rows of it. The default partition must not contain more than `MOVED_AT_MOST` of these rows.
 */
async function isDue(db: RawDb, { from, to }: DayPartition, now: Date): Promise<boolean> {
  const count = await db.$count(sql`(
    select from delivery_attempts_default where id >= ${from} and id < ${to} limit ${MOVED_AT_MOST + 1}) counted`);
  return count <= MOVED_AT_MOST && (count > 0 || to > ulidFloor(now));
}

/**
 * Creates one partition and moves the rows of its day from the default partition into it. Returns false if another
 * process has created the partition, and undefined if the locks are not available.
 *
 * The partition is created and filled as a separate table, which blocks nobody: until the commit, other sessions see
 * the rows in the default partition. Attaching the table needs an exclusive lock on the default partition. The parent
 * is locked first. Otherwise a statement that was planned with the old partitions, and then waited for the default
 * partition, would miss the moved rows.
 */
function makePartition(db: RawDb, partition: DayPartition) {
  const { name, from, to } = partition;
  return underLocks(db, async (tx) => {
    // Several processes may find the same missing partition, so they create partitions one after another.
    await waitForTurn(tx, "partitions");
    if ((await dailyPartitions(tx)).some((one) => one.name === name)) return false;
    await tx.sql.unsafe(LOCK_LIMITS);
    // Names and bounds are derived from the clock and contain no input, so they are safe in the text.
    await tx.sql.unsafe(
      `create table if not exists ${name} (like delivery_attempts including all)`,
    );
    await moveDefaultRows(tx, partition);
    await tx.sql.unsafe(
      retryLocks(
        "lock table only delivery_attempts, delivery_attempts_default in access exclusive mode;",
      ),
    );
    // Moves the rows of this day that other sessions have inserted into the default partition since the first move.
    await moveDefaultRows(tx, partition);
    await tx.sql.unsafe(
      `alter table delivery_attempts attach partition ${name} for values from ('${from}') to ('${to}')`,
    );
    return true;
  });
}

/** Moves the rows of this day out of the default partition in chunks, in the transaction of the caller. */
async function moveDefaultRows(tx: RawTx, { name, from, to }: DayPartition): Promise<void> {
  for (let moved = MOVED_AT_ONCE; moved === MOVED_AT_ONCE;) {
    const { count } = await tx.sql.unsafe(`
      with taken as (
        delete from delivery_attempts_default where ctid = any (array(
          select ctid from delivery_attempts_default where id >= '${from}' and id < '${to}' limit ${MOVED_AT_ONCE}))
        returning *
      ) insert into ${name} select * from taken`);
    moved = count;
  }
}

/**
 * Time limit in ms of one statement in a transaction that creates or drops a partition. It is long enough to move a few
 * thousand rows on a busy server.
 */
const STATEMENT_MS = 60_000;

const LOCK_WAIT = `set local lock_timeout = ${LOCK_MS}`;
/** The timeouts of a transaction that creates or drops a partition. */
const LOCK_LIMITS = `${LOCK_WAIT}; set local statement_timeout = ${STATEMENT_MS}`;

/** Runs `work` in a transaction. Returns undefined if a lock is not available in time. */
async function underLocks<T>(db: RawDb, work: (tx: RawTx) => Promise<T>): Promise<T | undefined> {
  try {
    return await db.transaction(work);
  } catch (error) {
    if (isLockTimeout(error)) return undefined;
    throw error;
  }
}

/** Maximum number of rows that are counted in a partition without an estimate by the server. */
const MAX_COUNTED_ROWS = 10_000;

/**
 * Drops the oldest daily partition that ended more than `days` days ago by PostgreSQL's clock, if there is one. Each
 * call drops only one, so that an operator can notice a wrong clock in time. A partition whose locks are not available
 * is left for the next call.
 *
 * The number of rows is the server's estimate. A partition that was never analysed has no estimate, so its rows are
 * counted, up to `MAX_COUNTED_ROWS`. `isCounted` is false for an estimate, and if the partition has more rows.
 */
export function dropExpiredPartition(db: RawDb, days: number) {
  return underLocks(db, async (tx) => {
    const [oldest] = await dailyPartitions(tx);
    if (oldest === undefined || oldest.endedHours < days * 24) return undefined;
    await tx.sql.unsafe(LOCK_LIMITS);
    const { name, estimate } = oldest;
    const isUnknown = estimate < 0;
    const counted = sql.raw(`(select from ${name} limit ${MAX_COUNTED_ROWS}) counted`);
    const rows = isUnknown ? await tx.$count(counted) : Math.round(estimate);
    await tx.sql.unsafe(retryLocks(`drop table ${name};`));
    return { name, rows, isCounted: isUnknown && rows < MAX_COUNTED_ROWS };
  });
}

/**
 * Deletes up to `limit` rows older than `days`, by PostgreSQL's clock, from the default partition. Such rows exist
 * because no partition existed for their day when they were written.
 */
export async function deleteExpiredDefaultRows(
  db: RawDb,
  days: number,
  limit: number,
): Promise<number> {
  const now = await serverTime(db);
  const floor = ulidFloor(new Date(now.getTime() - days * DAY_MS));
  const { count } = await db.execute(sql`
    delete from delivery_attempts_default where ctid = any (array(
      select ctid from delivery_attempts_default where id < ${floor} limit ${limit}))`);
  return count;
}

/**
 * Number of days that one call indexes. Usually one day ends per day, but after an upgrade all retained days lack the
 * index.
 */
const DAYS_AT_ONCE = 4;

/**
 * Definition of the index. It contains a hash of subscription id and event value, because the two texts would double
 * its size; `hashOfValue` queries the hash. No more rows are inserted into an ended day, so the pages of the index need
 * no free space.
 */
const BY_VALUE = "(hashtext(subscription_id || event), id) with (fillfactor = 100)";

/**
 * Number of hours between the end of a day and the creation of its index. An attempt belongs to the day of its start
 * and is written after its end, so the margin covers attempts that end after midnight. A later insert, after an outage
 * of PostgreSQL, waits until the index is built. A day that already has the older index with both texts (`_of_event`)
 * keeps it.
 */
const MARGIN_HOURS = 1;

/**
 * Creates the index by event value on the newest ended days that lack it. Returns the names of their partitions. A day
 * to which rows are being written is left for the next call.
 *
 * The index is not built `concurrently`: such a build would wait for every older transaction, for example a dump that
 * takes hours, and would leave an invalid index if it fails. A build without it delays only inserts into an ended day.
 */
export async function indexEndedDays(db: RawDb): Promise<string[]> {
  const made: string[] = [];
  const days = await dailyPartitions(db);
  const due = days.filter((one) => one.endedHours >= MARGIN_HOURS && !one.isIndexed).toReversed();
  for (const { name } of due.slice(0, DAYS_AT_ONCE))
    await underLocks(db, async (tx) => {
      await tx.sql.unsafe(LOCK_WAIT);
      // The lock is stronger than needed for an index, so that two processes cannot create the same index at once.
      await tx.sql.unsafe(retryLocks(`lock table ${name} in share row exclusive mode;`));
      await tx.sql.unsafe(`create index if not exists ${name}_of_value on ${name} ${BY_VALUE}`);
      made.push(name);
    });
  return made;
}
