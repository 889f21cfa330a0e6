import { sql } from "drizzle-orm";

import { isAttemptOf } from "../../db/attempt-conditions.ts";
import type { Db } from "../../db/client.ts";
import { reviewHistory } from "../../db/schema/reviews.ts";
import { nullable, statement, value } from "../../db/statement.ts";
import { RECORDS_AT_MOST, RECORDS_AT_ONCE } from "./records-queries.ts";

const history = statement({
  name: "upkeep.removeOldHistory",
  reason:
    "Walks on behind those that stay, and asks of each by a probe of an index who still needs it.",
  params: { after: reviewHistory.id, days: value("integer"), limit: value("bigint") },
  columns: { last: nullable(reviewHistory.id), removed: value("bigint") },
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
                                  'response_post_disconnected')))
         and not exists (select from outbox o where o.event_id = l.event_id)
         and not exists (
               select from webhook_subscriptions s cross join lateral (
                        select from batch_entries b
                         where b.subscription_id = s.id and b.review_history_id = l.id) b
                where s.partner_id = l.partner_id)
         and not exists (
               select from delivery_attempts a where ${isAttemptOf(sql`a.event_id`, sql`l.event_id`)})
         and not exists (
               select from webhook_subscriptions s
                cross join lateral (select settled_through from outbox_offsets where subscription_id = s.id) f
                 left join lateral (
                      select first from outbox_skips where subscription_id = s.id and last >= l.sequence
                       order by last limit 1) k on true
                where s.number = l.subscription_number
                  and (l.sequence > f.settled_through or l.sequence >= k.first))
    ), gone as (
      delete from review_history where id = any (array(select id from old)) returning id
    )
    select (select max(id) from looked where exists (
             select from looked where recorded_at < now() - make_interval(days => ${days}))) as last,
           (select count(*) from gone) as removed`,
});

/**
 * Removes what is older from the history, of which no entry, queued or skipped, no event that waits for a batch and no
 * attempt is left: bodies are composed from it. So many rows a pass; answers how many. Ids follow the time, so it ends
 * where nothing that it looks at is old; what is old and needed is passed by once in each pass.
 */
export async function removeOldHistory(db: Db, days: number): Promise<number> {
  let removed = 0;
  for (let after = 0; removed < RECORDS_AT_MOST;) {
    const [chunk] = await db.run(history, { after, days, limit: RECORDS_AT_ONCE });
    if (chunk === undefined || chunk.last === null) break;
    removed += chunk.removed;
    after = chunk.last;
  }
  return removed;
}
