import { sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { firstQueued, queueLength, queuesOf } from "../../../db/log.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { companies } from "../../../db/schema/companies.ts";
import { shards } from "../../../db/schema/dispatchers.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { nullable, statement, value } from "../../../db/statement.ts";
import { BACKLOG_LIMITS, type Backlog } from "../backlog-model.ts";

/** As a rank an age must rise with what is older: so many ms before the year 10000. */
const LAST_MS = sql.raw("253402300800000");

const ranked = statement({
  name: "backlogs.ranked",
  // The builder has no recursion.
  params: {
    byAge: value("boolean"),
    afterRank: nullable(value("bigint")),
    afterId: nullable(webhookSubscriptions.id),
    limit: value("bigint"),
    ranked: value("integer"),
    attempts: value("bigint"),
  },
  columns: {
    rank: value("bigint"),
    subscriptionId: webhookSubscriptions.id,
    label: webhookSubscriptions.label,
    partnerId: webhookSubscriptions.partnerId,
    partnerName: companies.name,
    isActive: value("boolean"),
    queued: value("integer"),
    oldestRecordedAt: outbox.recordedAt,
    dueAt: outbox.dueAt,
    shard: webhookSubscriptions.shard,
    dispatcherId: shards.dispatcherId,
    errorAt: nullable(deliveryAttempts.startedAt),
    statusCode: deliveryAttempts.statusCode,
    errorCode: deliveryAttempts.errorCode,
  },
  text: ({ byAge, afterRank, afterId, limit, ranked: most, attempts }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(most)}, sized as materialized (
      select s.shard, s.id as subscription_id, first.recorded_at, first.due_at,
             ${queueLength(BACKLOG_LIMITS.counted)} as queued
        from (select subscription_id from queues limit ${most}::integer) f
       cross join lateral (
               select id, shard, number from webhook_subscriptions where id = f.subscription_id offset 0) s
       cross join lateral (${firstQueued()}) first
    ), page as materialized (
      select * from (
        select *, case when ${byAge}::boolean
                       then ${LAST_MS}::bigint - (extract(epoch from recorded_at) * 1000)::bigint
                       else queued end as rank from sized) r
       where ${afterRank}::bigint is null or (rank, subscription_id) < (${afterRank}::bigint, ${afterId}::text collate "C")
       order by rank desc, subscription_id desc limit ${limit}
    )
    select p.rank, p.subscription_id as "subscriptionId", s.label, s.partner_id as "partnerId",
           c.name as "partnerName", s.state = 'active' as "isActive", p.queued::int as queued,
           p.recorded_at as "oldestRecordedAt", p.due_at as "dueAt", p.shard, h.dispatcher_id as "dispatcherId",
           error.started_at as "errorAt", error.status_code as "statusCode", error.error_code as "errorCode"
      from page p
      join webhook_subscriptions s on s.id = p.subscription_id
      join companies c on c.id = s.partner_id
      join shards h on h.id = p.shard
      left join lateral (
             select started_at, status_code, error_code
               from (select id, outcome, started_at, status_code, error_code from delivery_attempts
                      where subscription_id = p.subscription_id order by id desc limit ${attempts}) a
              where outcome <> 'delivered' order by id desc limit 1) error on true
     order by p.rank desc, p.subscription_id desc`,
});

interface Wanted {
  readonly byAge: boolean;
  readonly afterRank: number | null;
  readonly afterId: string | null;
  readonly limit: number;
}

/** Subscriptions by the depth or the age of their queues, the worst first. */
export function backlogsOf(db: DbOrTx, wanted: Wanted): Promise<Backlog[]> {
  const { ranked: most, attempts } = BACKLOG_LIMITS;
  return db.run(ranked, { ...wanted, ranked: most, attempts });
}
