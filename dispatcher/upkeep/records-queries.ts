import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { ulidFloor } from "../../db/partitions.ts";
import { authenticationEvents } from "../../db/schema/tokens.ts";
import { serverTime } from "../../db/server-time.ts";
import { nullable, statement, value } from "../../db/statement.ts";
import { addMs } from "../../src/lib/clock.ts";

/** Rows that one statement looks at, and one pass of each kind. */
export const RECORDS_AT_ONCE = 1_000;
export const RECORDS_AT_MOST = 100_000;

const DAY_MS = 86_400_000;

const audit = statement({
  name: "upkeep.removeOldAudit",
  reason: "A bounded delete, the oldest first, by Postgres' clock.",
  params: { days: value("integer"), limit: value("bigint") },
  columns: {},
  text: ({ days, limit }) => sql`
    delete from audit_log where id = any (array(
      select id from audit_log where at < now() - make_interval(days => ${days}) order by at limit ${limit}))`,
});

/** Removes what is older from the audit log, so many rows a pass; answers how many. */
export async function removeOldAudit(db: Db, days: number): Promise<number> {
  let removed = 0;
  while (removed < RECORDS_AT_MOST) {
    const { count } = await db.run(audit, { days, limit: RECORDS_AT_ONCE });
    removed += count;
    if (count < RECORDS_AT_ONCE) break;
  }
  return removed;
}

const signIns = statement({
  name: "upkeep.removeOldSignIns",
  reason: "Walks on behind those that stay, and says how far it came and what it removed.",
  params: {
    after: authenticationEvents.id,
    before: authenticationEvents.id,
    limit: value("bigint"),
  },
  columns: { last: nullable(authenticationEvents.id), removed: value("bigint") },
  text: ({ after, before, limit }) => sql`
    with old as materialized (
      select id from authentication_events where id > ${after} and id < ${before} order by id limit ${limit}
         for update skip locked
    ), gone as (
      delete from authentication_events e where e.id = any (array(select id from old))
         and not exists (select from tokens where family_id = e.id)
         and not exists (select from authorization_codes where family_id = e.id)
      returning e.id
    )
    select (select max(id) from old) as last, (select count(*) from gone) as removed`,
});

/**
 * Removes sign-ins that are older, of which neither a token nor a code is left; answers how many. Their ids are ULIDs, so
 * the age is a range of them. A living sign-in that is as old is passed by once in each pass.
 */
export async function removeOldSignIns(db: Db, days: number): Promise<number> {
  const now = await serverTime(db);
  const before = ulidFloor(addMs(now, -days * DAY_MS));
  let removed = 0;
  for (let after = ""; removed < RECORDS_AT_MOST;) {
    const [chunk] = await db.run(signIns, { after, before, limit: RECORDS_AT_ONCE });
    if (chunk === undefined || chunk.last === null) break;
    removed += chunk.removed;
    after = chunk.last;
  }
  return removed;
}
