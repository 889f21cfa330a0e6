// Raw (db/statement.ts): partitions and their indexes, which the query builder has no words for.
import { sql } from "drizzle-orm";

import type { RawDb, RawTx } from "./client.ts";
import { isLockTimeout } from "./errors.ts";
import { LOCK_WAIT, patiently, underLocks } from "./lock-limits.ts";
import { statement, value } from "./statement.ts";

/** Days that one call indexes: one ends each day, and after an upgrade there are as many as are retained. */
const DAYS_AT_ONCE = 4;
/** The week ahead is empty, and takes no time. */
const PREFIXES_AT_ONCE = 12;

/**
 * A hash of both texts takes the place of both, which would double the index (`hashOfValue` asks for it). The day is
 * written to no more, so pages need no room.
 */
const BY_VALUE = "(hashtext(subscription_id || event), id) with (fillfactor = 100)";

/**
 * An attempt is written after its start, which its day follows from: the margin is for those that end after midnight.
 * One that comes later still, because Postgres was away, waits until the index is there.
 */
const ENDED = sql.raw(`
  i.inhparent = 'delivery_attempts'::regclass and c.relname ~ '_[0-9]{8}$'
  and (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= now() - interval '1 hour'`);

/** A day that was given an index with both texts (`_of_event`), as all were before, keeps it. */
const withoutIndex = statement({
  name: "partitions.withoutEventIndex",
  reason: "The catalog is not in the schema.",
  params: { limit: value("bigint") },
  columns: { name: value("text") },
  text: ({ limit }) => sql`
    select c.oid::regclass::text as name
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where ${ENDED}
       and to_regclass(c.relname || '_of_value') is null and to_regclass(c.relname || '_of_event') is null
     order by c.relname desc limit ${limit}`,
});

/**
 * Makes the index by event value of the newest ended days that lack it; answers the names of their partitions. A day that
 * is written to right now stays for the next time.
 *
 * It is no `concurrently`: that would wait for every transaction that is older, a dump of hours among them, and would
 * leave an index that is not valid behind where it gave up. Here nobody waits but who writes to a day that has ended.
 */
export async function indexEndedDays(db: RawDb): Promise<string[]> {
  const due = await db.run(withoutIndex, { limit: DAYS_AT_ONCE });
  const made: string[] = [];
  for (const { name } of due) if (await indexDay(db, name)) made.push(name);
  return made;
}

function indexDay(db: RawDb, name: string): Promise<boolean> {
  return whileUnwritten(db, name, (tx) =>
    tx.sql.unsafe(`create index if not exists ${name}_of_value on ${name} ${BY_VALUE}`),
  );
}

/** Does something to a partition that nobody writes to meanwhile; false if somebody does right now. */
async function whileUnwritten(
  db: RawDb,
  name: string,
  work: (tx: RawTx) => Promise<unknown>,
): Promise<boolean> {
  const done = await underLocks(db, async (tx) => {
    await tx.sql.unsafe(LOCK_WAIT);
    // Stronger than an index needs: it also keeps out another process that makes the same one.
    await tx.sql.unsafe(patiently(`lock table ${name} in share row exclusive mode;`));
    await work(tx);
    return true;
  });
  return done ?? false;
}

/**
 * Days whose primary key is more than twice their index by event value: rebuilt it would be 1.6 times as large. The
 * subscriptions of a day write it at as many places, each of which fills its pages by half.
 */
const loose = statement({
  name: "partitions.loosePrimaryKeys",
  reason: "The catalog is not in the schema.",
  params: { limit: value("bigint") },
  columns: { name: value("text"), key: value("text") },
  text: ({ limit }) => sql`
    select c.oid::regclass::text as name, x.indexrelid::regclass::text as key
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      join pg_index x on x.indrelid = c.oid and x.indisprimary
     where ${ENDED}
       and pg_relation_size(x.indexrelid) > 2 * pg_relation_size(to_regclass(c.relname || '_of_value'))
     order by c.relname desc limit ${limit}`,
});

/** What a rebuilding that was given up has left behind, which every write to the day would pay for. */
const leftOver = statement({
  name: "partitions.leftOverIndexes",
  reason: "The catalog is not in the schema.",
  params: {},
  columns: { name: value("text") },
  text: () => sql`
    select x.indexrelid::regclass::text as name
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      join pg_index x on x.indrelid = c.oid and not x.indisvalid
      join pg_class xc on xc.oid = x.indexrelid and xc.relname ~ '_cc(new|old)[0-9]*$'
     where ${ENDED}`,
});

/**
 * Rebuilds the primary key of the newest ended days where that halves it; answers the names of their partitions. Nobody
 * waits for it. It waits for every transaction that is older, so behind a dump it is given up after the `lock_timeout` of
 * the pool, and is begun anew the next time.
 */
export async function rebuildEndedDays(db: RawDb): Promise<string[]> {
  for (const { name } of await db.run(leftOver, {})) await dropLeftOver(db, name);
  const made: string[] = [];
  for (const { name, key } of await db.run(loose, { limit: DAYS_AT_ONCE }))
    try {
      await db.sql.unsafe(`alter index ${key} set (fillfactor = 100)`);
      await db.sql.unsafe(`reindex index concurrently ${key}`);
      made.push(name);
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      // What holds one day up holds up all of them.
      break;
    }
  return made;
}

/** What another process is rebuilding right now is not valid yet either, but that process holds the lock of the day. */
async function dropLeftOver(db: RawDb, name: string): Promise<void> {
  await underLocks(db, async (tx) => {
    await tx.sql.unsafe(LOCK_WAIT);
    await tx.sql.unsafe(patiently(`drop index if exists ${name};`));
  });
}

const withoutPrefix = statement({
  name: "partitions.withoutEventPrefix",
  reason: "The catalog is not in the schema.",
  params: {},
  columns: { name: value("text"), isDue: value("boolean") },
  // Today's partition waits for its end, because building keeps its writers out. The default partition is not waited for:
  // it holds next to nothing.
  text: () => sql`
    select c.oid::regclass::text as name,
           (${ENDED}) or c.relname !~ '_[0-9]{8}$' or to_date(right(c.relname, 8), 'YYYYMMDD') > now() as "isDue"
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'delivery_attempts'::regclass
       and to_regclass('delivery_attempts_event') is not null
       and not exists (
             select from pg_inherits own join pg_index x on x.indexrelid = own.inhrelid and x.indrelid = c.oid
              where own.inhparent = 'delivery_attempts_event_prefix'::regclass)
     order by c.relname desc`,
});

/**
 * Puts the index by the beginning of an event's id (`eventPrefix`) in the place of the one by all of it, which a database
 * that had attempts when the former came still has: day by day, and then the other goes. Answers the partitions that got
 * theirs.
 */
export async function replaceEventIndex(db: RawDb): Promise<string[]> {
  const lacking = await db.run(withoutPrefix, {});
  const made: string[] = [];
  for (const { name } of lacking.filter((one) => one.isDue).slice(0, PREFIXES_AT_ONCE))
    if (await addPrefix(db, name)) made.push(name);
  if (made.length === lacking.length)
    await underLocks(db, async (tx) => {
      await tx.sql.unsafe(LOCK_WAIT);
      await tx.sql.unsafe(patiently("drop index if exists delivery_attempts_event;"));
    });
  return made;
}

function addPrefix(db: RawDb, name: string): Promise<boolean> {
  return whileUnwritten(db, name, async (tx) => {
    await tx.sql.unsafe(
      `create index if not exists ${name}_event_prefix on ${name} (left(event_id, 15))`,
    );
    await tx.sql.unsafe(
      `alter index delivery_attempts_event_prefix attach partition ${name}_event_prefix`,
    );
  });
}
