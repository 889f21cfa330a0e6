import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { allQueued, queuesOf } from "../../db/queue.ts";
import { oneOf, statement, value } from "../../db/statement.ts";

/** Rows that are counted at the most, so that asking costs the same whatever waits. */
export const FIGURES_AT_MOST = 20_000;

/** What the whole database holds, for whoever runs it. */
export interface Figures {
  readonly backlog: readonly {
    readonly state: "pending" | "waiting" | "held";
    readonly entries: number;
    /** Of the oldest of them. */
    readonly ageS: number;
  }[];
  readonly mails: number;
  /** For how long the mail that is due first could have been sent. */
  readonly mailOverdueS: number;
  readonly upkeepAgeS: number;
}

const backlog = statement({
  name: "figures.backlog",
  reason: "Built on the SQL of queues, of which it walks a bounded part.",
  params: { limit: value("integer") },
  columns: {
    state: oneOf(["pending", "waiting", "held"]),
    entries: value("bigint"),
    ageS: value("double precision"),
  },
  text: ({ limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}, counted as materialized (
      select case when s.state = 'disabled' then 'held' else e.state end as state, e.recorded_at
        from queues q
       cross join lateral (
              select id, shard, number, state from webhook_subscriptions where id = q.subscription_id) s
       cross join lateral (${allQueued}) e
       limit ${limit}::integer
    )
    select names.state, count(c.recorded_at) as entries,
           greatest(coalesce(extract(epoch from now() - min(c.recorded_at)), 0), 0)::float8 as "ageS"
      from unnest(array['pending', 'waiting', 'held']) as names(state)
      left join counted c on c.state = names.state
     group by names.state`,
});

const others = statement({
  name: "figures.others",
  reason: "A bounded count beside two times, in one round trip.",
  params: { limit: value("bigint") },
  columns: {
    mails: value("bigint"),
    mailOverdueS: value("double precision"),
    upkeepAgeS: value("double precision"),
  },
  text: ({ limit }) => sql`
    select (select count(*) from (select from mails where state = 'queued' limit ${limit}) part) as mails,
           greatest(coalesce(extract(epoch from now() - (
             select due_at from mails where state = 'queued' order by due_at, id limit 1)), 0), 0)::float8
             as "mailOverdueS",
           greatest(extract(epoch from now() - passed_at), 0)::float8 as "upkeepAgeS"
      from upkeep_progress`,
});

/** Two statements, bounded by `FIGURES_AT_MOST` and by the limits of the pool. */
export async function readFigures(db: Db): Promise<Figures> {
  const limit = FIGURES_AT_MOST;
  const [counted, [other]] = [await db.run(backlog, { limit }), await db.run(others, { limit })];
  if (other === undefined) throw new Error("upkeep_progress has no row.");
  return { backlog: counted, ...other };
}
