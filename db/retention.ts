// Raw (db/statement.ts): partitions and their indexes, which the query builder has no words for.
import { sql } from "drizzle-orm";

import type { RawDb, RawTx } from "./client.ts";
import {
  dailyPartitions,
  LOCK_LIMITS,
  LOCK_WAIT,
  patiently,
  ulidFloor,
  underLocks,
} from "./partitions.ts";
import { deliveryAttempts } from "./schema/attempts.ts";
import { serverTime } from "./server.ts";
import { statement, value } from "./statement.ts";

const DAY_MS = 86_400_000;
/** Where the server has no estimate of the rows of a partition, they are counted up to this. */
const COUNTED = 10_000;

export interface DroppedPartition {
  readonly name: string;
  readonly rows: number;
  /** False: `rows` is the server's estimate, or the least that there were. */
  readonly isCounted: boolean;
}

/**
 * Drops the oldest of the daily partitions that ended more than `days` ago by Postgres' clock, if there is one. Only one:
 * should that clock be wrong, somebody has the time to see it. A partition whose locks are not to be had stays for the
 * next time.
 */
export async function dropExpiredPartition(
  db: RawDb,
  days: number,
): Promise<DroppedPartition | undefined> {
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

/** For a partition that was never analysed. */
async function countUpTo(tx: RawTx, name: string): Promise<DroppedPartition> {
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
