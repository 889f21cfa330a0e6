// Raw (db/statement.ts): partitions, which the query builder has no words for.
import { sql } from "drizzle-orm";

import type { RawDb, RawTx } from "./client.ts";
import { LOCK_LIMITS, patiently, underLocks } from "./lock-limits.ts";
import { ulidFloor } from "./partitions.ts";
import { deliveryAttempts } from "./schema/attempts.ts";
import { serverTime } from "./server-time.ts";
import { statement, value } from "./statement.ts";

const DAY_MS = 86_400_000;
/** Where the server has no estimate of the rows of a partition, they are counted up to this. */
const COUNTED = 10_000;

const oldestExpired = statement({
  name: "partitions.oldestExpired",
  reason: "The catalog is not in the schema.",
  params: { days: value("integer") },
  columns: { name: value("text"), estimate: value("double precision") },
  text: ({ days }) => sql`
    select c.oid::regclass::text as name, c.reltuples::float8 as estimate
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'delivery_attempts'::regclass
       and c.relname ~ '_[0-9]{8}$'
       and (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC'
           <= now() - make_interval(days => ${days})
     order by right(c.relname, 8), c.relname limit 1`,
});

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
    const [oldest] = await tx.run(oldestExpired, { days });
    if (oldest === undefined) return undefined;
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
  reason: "The builder knows the whole table, not its default partition.",
  params: { floor: deliveryAttempts.id, limit: value("bigint") },
  columns: {},
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
