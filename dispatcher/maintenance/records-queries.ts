// Removal of records by age, one chunk a call. Postgres' clock decides what is old: no statement is told the time.
import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import { isAttemptOf } from "../../db/conditions.ts";
import type { RawDb } from "../../db/client.ts";
import { onlyRow, nullable, statement, value } from "../../db/statement.ts";
import { ulidFloor } from "../../db/partitions.ts";
import { incidents, mails } from "../../db/schema/alerts.ts";
import { auditLog } from "../../db/schema/companies.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { authenticationEvents } from "../../db/schema/tokens.ts";
import { serverTime } from "../../db/server.ts";
import { addMs } from "../../src/lib/clock.ts";
import type { Done } from "./loop.ts";

/** Rows that one statement removes, or looks at, so that it holds no lock for long. */
export const CHUNK_ROWS = 1_000;

const DAY_MS = 86_400_000;

/** What is older than so many days, from where the chunk before has come to. */
export interface Old {
  readonly days: number;
  readonly reached: string;
}

function oldest(
  name: string,
  { key, at, where }: { readonly key: PgColumn; readonly at: PgColumn; readonly where: SQL },
) {
  const removing = statement({
    name,
    // A bounded delete, the oldest first, of rows that nobody holds.
    params: { days: value("integer"), limit: value("bigint") },
    text: ({ days, limit }) => sql`
      delete from ${key.table} where ${key} = any (array(
        select ${key} from ${key.table} where ${where} and ${at} < now() - make_interval(days => ${days})
         order by ${at} limit ${limit} for update skip locked))`,
  });
  return async (db: RawDb, { days }: Pick<Old, "days">): Promise<Done> =>
    again((await db.run(removing, { days, limit: CHUNK_ROWS })).count);
}

/** A full chunk may not have been the last one. */
export function again(rows: number): Done {
  return rows < CHUNK_ROWS ? { rows } : { rows, next: "" };
}

export const removeOldAudit = oldest("maintenance.removeOldAudit", {
  key: auditLog.id,
  at: auditLog.at,
  where: sql`true`,
});

// The conditions are those of partial indexes.
export const removeOldMails = oldest("maintenance.removeOldMails", {
  key: mails.id,
  at: mails.settledAt,
  where: sql`${mails.state} <> 'queued'`,
});

/** Removes incidents that have ended, with their alerts. */
export const removeOldIncidents = oldest("maintenance.removeOldIncidents", {
  key: incidents.id,
  at: incidents.endedAt,
  where: sql`${incidents.endedAt} is not null`,
});

const WALKED = { next: nullable(value("text")), rows: value("bigint") };

const signIns = statement({
  name: "maintenance.removeOldSignIns",
  // Walks on behind those that stay, and says how far it came and what it removed.
  params: {
    after: authenticationEvents.id,
    before: authenticationEvents.id,
    limit: value("bigint"),
  },
  columns: WALKED,
  text: ({ after, before, limit }) => sql`
    with old as materialized (
      select id from authentication_events where id > ${after} and id < ${before} order by id limit ${limit}
         for update skip locked
    ), gone as (
      delete from authentication_events e where e.id = any (array(select id from old))
         and not exists (select from tokens where family_id = e.id offset 0)
         and not exists (select from authorization_codes where family_id = e.id offset 0)
      returning e.id
    )
    select (select max(id) from old) as next, (select count(*) from gone) as rows`,
});

/**
 * Removes sign-ins that are older, of which neither a token nor a code is left. Their ids are ULIDs, so the age is a range
 * of them. A living sign-in that is as old is passed by once in each run.
 */
export async function removeOldSignIns(db: RawDb, { days, reached }: Old): Promise<Done> {
  const before = ulidFloor(addMs(await serverTime(db), -days * DAY_MS));
  return onlyRow(await db.run(signIns, { after: reached, before, limit: CHUNK_ROWS }));
}

const history = statement({
  name: "maintenance.removeOldHistory",
  // Walks on behind those that stay, and asks of each by a probe of an index (`offset 0`) who still needs it. A join
  // would go through all rows for each where a table was analysed while it was empty.
  params: { after: reviewHistory.id, days: value("integer"), limit: value("bigint") },
  columns: WALKED,
  text: ({ after, days, limit }) => sql`
    with looked as materialized (
      select id, event_id, partner_id, store_review_site_id, axis, event, recorded_at, subscription_number, sequence
        from review_history
       where id > ${after} order by id limit ${limit}
    ), old as materialized (
      select l.* from looked l
       where l.recorded_at < now() - make_interval(days => ${days})
         -- The last change of an axis says since when it is as it is.
         and (l.axis is null or exists (
               select from review_history n
                where n.store_review_site_id = l.store_review_site_id and n.axis = l.axis and n.id > l.id
                  and n.event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                                  'response_post_disconnected') offset 0))
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
 * Removes what is older from the history, of which no entry, queued or skipped, no event that waits for a batch and no
 * attempt is left: bodies are composed from it. Ids follow the time, so it ends where nothing that it looks at is old; what
 * is old and needed is passed by once in each run.
 */
export async function removeOldHistory(db: RawDb, { days, reached }: Old): Promise<Done> {
  return onlyRow(await db.run(history, { after: Number(reached), days, limit: CHUNK_ROWS }));
}
