// Raw (db/statement.ts): partitions, which the query builder has no words for.
import { sql } from "drizzle-orm";
import { encodeTime } from "ulid";

import type { DbOrTx, RawDb } from "./client.ts";
import { isLockTimeout } from "./errors.ts";
import { instant, statement, value } from "./statement.ts";

const DAY_MS = 86_400_000;
/** Days from today for which partitions exist at the least. */
const PARTITION_DAYS_AHEAD = 7;

/** The smallest ULID of an instant: ULIDs are ordered by time, so a day is a range of them. */
export function ulidFloor(at: Date): string {
  return encodeTime(at.getTime(), 10) + "0".repeat(16);
}

/** How long dropping a partition may wait for a lock: whoever inserts meanwhile waits behind it. */
const DROP_LOCK_MS = 200;

interface DayPartition {
  readonly name: string;
  readonly parent: "settled_entries" | "delivery_attempts";
  readonly from: string;
  readonly to: string;
}

/** The daily partitions of both records from the day of `now` on; names end in the UTC day, `_20260601`. */
export function partitionsAhead(now: Date, days: number): DayPartition[] {
  const today = now.getTime() - (now.getTime() % DAY_MS);
  return Array.from({ length: days + 1 }, (_, i) => [today + i * DAY_MS, today + (i + 1) * DAY_MS])
    .map(([from = 0, to = 0]) => [new Date(from), new Date(to)] as const)
    .flatMap(([from, to]) => {
      const day = from.toISOString().slice(0, 10).replaceAll("-", "");
      return [
        {
          name: `settled_entries_${day}`,
          parent: "settled_entries",
          from: from.toISOString(),
          to: to.toISOString(),
        },
        {
          name: `delivery_attempts_${day}`,
          parent: "delivery_attempts",
          from: ulidFloor(from),
          to: ulidFloor(to),
        },
      ] as const;
    });
}

/**
 * Makes the partitions that are missing. Each is built apart and attached, which takes no lock that stops readers or
 * writers of the parent; the default partitions, there for a clock that jumps, stay empty otherwise.
 */
export async function ensurePartitions(db: RawDb, now: Date): Promise<string[]> {
  const made: string[] = [];
  for (const partition of partitionsAhead(now, PARTITION_DAYS_AHEAD))
    if (await ensurePartition(db, partition)) made.push(partition.name);
  return made;
}

async function ensurePartition(
  db: RawDb,
  { name, parent, from, to }: DayPartition,
): Promise<boolean> {
  if (await isAttached(db, name)) return false;
  return db.transaction(async (tx) => {
    // Several dispatchers may look at the same time.
    await tx.run(turn, {});
    if (await isAttached(tx, name)) return false;
    // Names and bounds come from the clock, never from a caller.
    await tx.sql.unsafe(`create table if not exists ${name} (like ${parent} including all)`);
    await tx.sql.unsafe(
      `alter table ${parent} attach partition ${name} for values from ('${from}') to ('${to}')`,
    );
    return true;
  });
}

const turn = statement({
  name: "partitionTurn",
  reason: "The builder selects from tables; an advisory lock is in none.",
  params: {},
  columns: {},
  text: () => sql`select from pg_advisory_xact_lock(hashtext('reviewrelay:partitions'))`,
});

const attached = statement({
  name: "findPartition",
  reason: "The catalog is not in the schema.",
  params: { name: value("text") },
  columns: {},
  text: ({ name }) => sql`select from pg_inherits where inhrelid = to_regclass(${name})`,
});

async function isAttached(db: DbOrTx, name: string): Promise<boolean> {
  const rows = await db.run(attached, { name });
  return rows.length > 0;
}

const dailyPartitions = statement({
  name: "dailyPartitions",
  reason: "The catalog is not in the schema.",
  params: {},
  columns: { name: value("text") },
  text: () => sql`
    select inhrelid::regclass::text as name from pg_inherits
     where inhparent in ('settled_entries'::regclass, 'delivery_attempts'::regclass)
       and inhrelid::regclass::text ~ '_[0-9]{8}$'`,
});

const strayReason = "The builder knows the whole table, not its default partition.";
const straySettledEntries = statement({
  name: "deleteStraySettledEntries",
  reason: strayReason,
  params: { cutoff: instant },
  columns: {},
  text: ({ cutoff }) => sql`delete from settled_entries_default where settled_at < ${cutoff}`,
});
const strayAttempts = statement({
  name: "deleteStrayAttempts",
  reason: strayReason,
  params: { floor: value("text") },
  columns: {},
  text: ({ floor }) => sql`delete from delivery_attempts_default where id < ${floor}`,
});

/**
 * Drops the daily partitions that ended more than `days` ago. A partition whose lock is not to be had at once stays for
 * the next time, because writers would queue behind the wait. What a jumped clock left in the default partitions goes
 * with them, row by row: it is next to nothing.
 */
export async function dropExpiredPartitions(db: RawDb, now: Date, days: number): Promise<string[]> {
  const cutoff = new Date(now.getTime() - days * DAY_MS);
  const last = cutoff.toISOString().slice(0, 10).replaceAll("-", "");
  const partitions = await db.run(dailyPartitions, {});
  const dropped: string[] = [];
  for (const { name } of partitions)
    if (name.slice(-8) < last && (await dropPartition(db, name))) dropped.push(name);
  await db.run(straySettledEntries, { cutoff });
  await db.run(strayAttempts, { floor: ulidFloor(cutoff) });
  return dropped;
}

async function dropPartition(db: RawDb, name: string): Promise<boolean> {
  try {
    await db.transaction(async (tx) => {
      await tx.sql.unsafe(`set local lock_timeout = ${DROP_LOCK_MS}`);
      await tx.sql.unsafe(`drop table if exists ${name}`);
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}
