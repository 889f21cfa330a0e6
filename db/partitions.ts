// Raw (db/statement.ts): partitions, which the query builder has no words for.
import { sql } from "drizzle-orm";
import { encodeTime } from "ulid";

import type { RawDb, RawTx } from "./client.ts";
import { isLockTimeout } from "./errors.ts";
import { deliveryAttempts } from "./schema/attempts.ts";
import { rows, statement, value } from "./statement.ts";
import { waitForTurn, serverTime } from "./server.ts";

const DAY_MS = 86_400_000;
/** Days from today for which partitions exist at the least. */
const PARTITION_DAYS_AHEAD = 7;

/** Rows that one statement takes out of a default partition, and all that may be taken out to make one partition. */
const MOVED_AT_ONCE = 5_000;
export const MOVED_AT_MOST = 100_000;

/** The smallest ULID of an instant: ULIDs are ordered by time, so a day is a range of them. They know no time before 1970. */
export function ulidFloor(at: Date): string {
  return encodeTime(Math.max(0, at.getTime()), 10) + "0".repeat(16);
}

/** The daily partitions of delivery_attempts, the oldest first. */
const dailyPartitions = statement({
  name: "partitions.daily",
  // The catalog is not in the schema.
  columns: {
    name: value("text"),
    /** How many rows the server believes that it has; negative if it was never analysed. */
    estimate: value("double precision"),
    /** How long ago its day has ended, by Postgres' clock. */
    endedHours: value("double precision"),
    /** Whether it has the index by event value (`indexEndedDays`). */
    isIndexed: value("boolean"),
  },
  text: () => sql`
    select c.oid::regclass::text as name, c.reltuples::float8 as estimate,
           extract(epoch from now() - (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC')::float8
             / 3600 as "endedHours",
           coalesce(to_regclass(c.relname || '_of_value'), to_regclass(c.relname || '_of_event')) is not null as "isIndexed"
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'delivery_attempts'::regclass and c.relname ~ '_[0-9]{8}$'
     order by right(c.relname, 8), c.relname`,
});

type DayPartition = ReturnType<typeof partitionsAhead>[number];

/**
 * The daily partitions of delivery_attempts from the day of `now` on. Names end in the UTC day, `_20260601`. A partition
 * holds the ids from `from` on, below `to`.
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
 * Makes the partitions of the week ahead that are missing, and those of the last `pastDays` of which the default partition
 * holds rows; the rows move in. Each is made alone: the first failure is thrown when all were tried. A partition whose
 * locks are not to be had stays for the next time, and so does one with too many rows in the default partition, where
 * they are read, written and in the end removed as well. Answers the names of those made.
 */
export async function ensurePartitions(db: RawDb, now: Date, pastDays = 0): Promise<string[]> {
  const first = new Date(now.getTime() - pastDays * DAY_MS);
  const there = new Set((await db.run(dailyPartitions, {})).map(({ name }) => name));
  const missing = partitionsAhead(first, pastDays + PARTITION_DAYS_AHEAD).filter(
    ({ name }) => !there.has(name),
  );
  if (missing.length === 0) return [];
  const strayCounts = await countStrays(db, missing);
  const today = partitionsAhead(now, 0)[0]?.name.slice(-8) ?? "";
  const due = missing.filter(({ name }) => {
    const count = strayCounts.get(name) ?? 0;
    return count <= MOVED_AT_MOST && (count > 0 || name.slice(-8) >= today);
  });
  const made: string[] = [];
  const failures: unknown[] = [];
  for (const partition of due)
    try {
      if (await makePartition(db, partition)) made.push(partition.name);
    } catch (error) {
      failures.push(error);
    }
  if (failures.length > 0) throw failures[0];
  return made;
}

const strays = statement({
  name: "partitions.strays",
  // The builder knows the whole table, not its default partition.
  params: {
    days: rows({ name: value("text"), low: deliveryAttempts.id, high: deliveryAttempts.id }),
  },
  columns: { name: value("text"), count: value("bigint") },
  text: ({ days }) => sql`
    select days.name, count(*) as count
      from delivery_attempts_default d join ${days} on d.id >= days.low and d.id < days.high
     group by days.name`,
});

/** How many rows of each of these days are in the default partition, by the name of the partition that they belong in. */
async function countStrays(db: RawDb, partitions: readonly DayPartition[]) {
  const days = partitions.map(({ name, from, to }) => ({ name, low: from, high: to }));
  return new Map((await db.run(strays, { days })).map(({ name, count }) => [name, count]));
}

/**
 * Makes one partition, with what the default partition holds of its day; false if somebody else did, or if the locks are
 * not to be had. It is built and filled apart, which stops nobody; to everybody else the rows stay where they were until
 * the commit. To be attached it needs the default partition for itself, where those who read the whole table wait for it.
 */
async function makePartition(db: RawDb, partition: DayPartition): Promise<boolean> {
  const { name, from, to } = partition;
  const made = await underLocks(db, async (tx) => {
    // Several processes may look at the same time.
    await waitForTurn(tx, "partitions");
    if ((await tx.run(dailyPartitions, {})).some((one) => one.name === name)) return false;
    await tx.sql.unsafe(LOCK_LIMITS);
    // Names and bounds come from the clock, never from a caller.
    await tx.sql.unsafe(
      `create table if not exists ${name} (like delivery_attempts including all)`,
    );
    await moveStrays(tx, partition);
    await tx.sql.unsafe(
      patiently(`lock table only delivery_attempts in share update exclusive mode;
                 lock table delivery_attempts_default in access exclusive mode;`),
    );
    // What came in meanwhile.
    await moveStrays(tx, partition);
    await tx.sql.unsafe(
      `alter table delivery_attempts attach partition ${name} for values from ('${from}') to ('${to}')`,
    );
    return true;
  });
  return made ?? false;
}

/** Moves what the default partition holds of this day, statement by statement, in the transaction of the caller. */
async function moveStrays(tx: RawTx, { name, from, to }: DayPartition): Promise<void> {
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
 * Making or dropping a partition waits so long for a lock, and so often: whoever reads or writes the table meanwhile
 * waits behind it. Where a dump holds the table for minutes, the next pass tries again.
 */
const LOCK_MS = 100;
const LOCK_TRIES = 5;
const PAUSE_S = 0.05;
/** The longest of one statement here: one of a few thousand rows, on a loaded server. */
const STATEMENT_MS = 60_000;

const LOCK_WAIT = `set local lock_timeout = ${LOCK_MS}`;
/** Of a transaction that makes or drops a partition. */
const LOCK_LIMITS = `${LOCK_WAIT}; set local statement_timeout = ${STATEMENT_MS}`;

/** Runs `work` in a transaction; undefined if a lock that it needs is not to be had. */
async function underLocks<T>(db: RawDb, work: (tx: RawTx) => Promise<T>): Promise<T | undefined> {
  try {
    return await db.transaction(work);
  } catch (error) {
    if (isLockTimeout(error)) return undefined;
    throw error;
  }
}

/**
 * A statement that tries others again when they have waited for a lock for too long, without losing what was done before.
 * Between two tries those who had queued behind it get their turn.
 */
function patiently(statements: string): string {
  return `do $$ begin
    for tried in 1..${LOCK_TRIES} loop
      begin
        ${statements}
        return;
      exception when lock_not_available then
        if tried = ${LOCK_TRIES} then raise; end if;
      end;
      perform pg_sleep(${PAUSE_S});
    end loop;
  end $$`;
}

/** Where the server has no estimate of the rows of a partition, they are counted up to this. */
const COUNTED = 10_000;

/**
 * Drops the oldest of the daily partitions that ended more than `days` ago by Postgres' clock, if there is one. Only one:
 * should that clock be wrong, somebody has the time to see it. A partition whose locks are not to be had stays for the
 * next time.
 */
export function dropExpiredPartition(db: RawDb, days: number) {
  return underLocks(db, async (tx) => {
    const [oldest] = await tx.run(dailyPartitions, {});
    if (oldest === undefined || oldest.endedHours < days * 24) return undefined;
    await tx.sql.unsafe(LOCK_LIMITS);
    const { name, estimate } = oldest;
    const dropped =
      estimate < 0
        ? await countUpTo(tx, name)
        : { name, rows: Math.round(estimate), isCounted: false };
    await tx.sql.unsafe(patiently(`drop table ${name};`));
    return dropped;
  });
}

/** For a partition that was never analysed. `isCounted` is false if it has more rows than were counted. */
async function countUpTo(tx: RawTx, name: string) {
  const [found] = await tx.sql.unsafe<{ rows: number }[]>(
    `select count(*) as rows from (select from ${name} limit ${COUNTED}) counted`,
  );
  const counted = found?.rows ?? 0;
  return { name, rows: counted, isCounted: counted < COUNTED };
}

const expiredAttempts = statement({
  name: "partitions.deleteStrayAttempts",
  // The builder knows the whole table, not its default partition.
  params: { floor: deliveryAttempts.id, limit: value("bigint") },
  text: ({ floor, limit }) => sql`
    delete from delivery_attempts_default where ctid = any (array(
      select ctid from delivery_attempts_default where id < ${floor} limit ${limit}))`,
});

/**
 * Removes at most so many rows from the default partition that are older than `days` by Postgres' clock. They are there
 * because no partition of their day was made while they were young.
 */
export async function deleteExpiredStrays(db: RawDb, days: number, limit: number): Promise<number> {
  const now = await serverTime(db);
  const floor = ulidFloor(new Date(now.getTime() - days * DAY_MS));
  return (await db.run(expiredAttempts, { floor, limit })).count;
}

/** Days that one call indexes: one ends each day, and after an upgrade there are as many as are retained. */
const DAYS_AT_ONCE = 4;

/**
 * A hash of both texts takes the place of both, which would double the index (`hashOfValue` asks for it). The day is
 * written to no more, so pages need no room.
 */
const BY_VALUE = "(hashtext(subscription_id || event), id) with (fillfactor = 100)";

/**
 * An attempt is written after its start, which its day follows from: the margin is for those that end after midnight.
 * One that comes later still, because Postgres was away, waits until the index is there. A day that was given an index
 * with both texts (`_of_event`), as all were before, keeps it.
 */
const MARGIN_HOURS = 1;

/**
 * Makes the index by event value of the newest ended days that lack it; answers the names of their partitions. A day that
 * is written to right now stays for the next time.
 *
 * It is no `concurrently`: that would wait for every transaction that is older, a dump of hours among them, and would
 * leave an index that is not valid behind where it gave up. Here nobody waits but who writes to a day that has ended.
 */
export async function indexEndedDays(db: RawDb): Promise<string[]> {
  const made: string[] = [];
  const days = await db.run(dailyPartitions, {});
  const due = days.filter((one) => one.endedHours >= MARGIN_HOURS && !one.isIndexed).toReversed();
  for (const { name } of due.slice(0, DAYS_AT_ONCE))
    await underLocks(db, async (tx) => {
      await tx.sql.unsafe(LOCK_WAIT);
      // Stronger than an index needs: it also keeps out another process that makes the same one.
      await tx.sql.unsafe(patiently(`lock table ${name} in share row exclusive mode;`));
      await tx.sql.unsafe(`create index if not exists ${name}_of_value on ${name} ${BY_VALUE}`);
      made.push(name);
    });
  return made;
}
