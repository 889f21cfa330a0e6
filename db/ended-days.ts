// Raw (db/statement.ts): partitions and their indexes, which the query builder has no words for.
import { sql } from "drizzle-orm";

import type { RawDb } from "./client.ts";
import { LOCK_WAIT, patiently, underLocks } from "./lock-limits.ts";
import { statement, value } from "./statement.ts";

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
const withoutIndex = statement({
  name: "partitions.withoutEventIndex",
  reason: "The catalog is not in the schema.",
  params: { limit: value("bigint") },
  columns: { name: value("text") },
  text: ({ limit }) => sql`
    select c.oid::regclass::text as name
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'delivery_attempts'::regclass and c.relname ~ '_[0-9]{8}$'
       and (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= now() - interval '1 hour'
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
  const made: string[] = [];
  for (const { name } of await db.run(withoutIndex, { limit: DAYS_AT_ONCE }))
    await underLocks(db, async (tx) => {
      await tx.sql.unsafe(LOCK_WAIT);
      // Stronger than an index needs: it also keeps out another process that makes the same one.
      await tx.sql.unsafe(patiently(`lock table ${name} in share row exclusive mode;`));
      await tx.sql.unsafe(`create index if not exists ${name}_of_value on ${name} ${BY_VALUE}`);
      made.push(name);
    });
  return made;
}
