import { sql, type SQL } from "drizzle-orm";

import { markedThrough } from "./marks.ts";

interface Queue {
  readonly shard: SQL;
  readonly id: SQL;
}

/**
 * The length of a subscription's queue, as a scalar subquery: exact up to `limit` entries. Behind that many each sequence
 * number counts as an entry, so that a million entries cost as much as `limit` do. Test events and the parallel lanes of
 * order by review leave gaps in the numbers, mostly at the front of the queue, where entries are counted.
 */
export function queueLength({ shard, id }: Queue, limit: number): SQL {
  const queue = sql`from outbox where shard = ${shard} and subscription_id = ${id}`;
  const most = sql.raw(String(limit));
  // The planner does not know the limit of a subquery, so it walks the primary key instead of sorting the whole queue.
  return sql`(
    select counted.entries + case when counted.entries < ${most} then 0
             else (select sequence ${queue} order by sequence desc limit 1) - counted.last end
      from (select count(*) as entries, max(sequence) as last
              from (select sequence ${queue} and sequence > ${markedThrough(id)}
                     order by sequence limit (select ${most}::bigint)) e) counted)`;
}
