import { sql } from "drizzle-orm";

import { isAttemptOf } from "../../../db/conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { skippedThrough, firstQueued, queueLength } from "../../../db/log.ts";
import { onlyRow, asTable, nullable, statement, table, value } from "../../../db/statement.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { outbox, outboxSkips } from "../../../db/schema/outbox.ts";
import { COUNTED } from "./counting.ts";
import { COUNT_COLUMNS, COUNT_PARAMS, counts, type whereCounted } from "./stats.ts";

// The literals of states, outcomes and reasons are for the partial indexes: the plan for any of them would not use one.

const health = statement({
  name: "stats.health",
  // All figures are of one moment, and each is bounded whatever the planner thinks of the tables.
  params: { ...COUNT_PARAMS, expiredSince: outboxSkips.skippedAt },
  columns: {
    queued: value("integer"),
    oldestRecordedAt: nullable(outbox.recordedAt),
    blockedBy: nullable(outbox.eventId),
    blockedSince: nullable(deliveryAttempts.startedAt),
    blockedAttempts: value("integer"),
    lastStartedAt: nullable(deliveryAttempts.startedAt),
    lastDurationMs: nullable(deliveryAttempts.durationMs),
    expired: value("integer"),
    counts: table(COUNT_COLUMNS),
  },
  text: ({ expiredSince, ...where }) => sql`
    select ${queueLength(COUNTED)}::int as queued, first.recorded_at as "oldestRecordedAt",
           head.event_id as "blockedBy", head.started_at as "blockedSince",
           coalesce(head.attempts, 0)::int as "blockedAttempts",
           success.started_at as "lastStartedAt", success.duration_ms as "lastDurationMs",
           (select coalesce(sum(entries), 0)::int from outbox_skips
             where subscription_id = s.id and reason = 'expired' and skipped_at >= ${expiredSince}) as expired,
           ${asTable(counts(where))} as counts
      from webhook_subscriptions s
      left join lateral (${firstQueued()}) first on true
      left join lateral (
             select o.event_id, a.started_at, o.attempt - 1 as attempts
               from (select event_id, round, attempt from outbox
                      where subscription_id = s.id and shard = s.shard and state = 'waiting' and not is_test
                        and skipped_at is null
                        -- One that was never tried waits for the answer to a test.
                        and attempt > 1 and sequence > ${skippedThrough(sql`s.id`)}
                      order by sequence limit 1) o
               left join lateral (
                      select started_at from delivery_attempts
                       where ${isAttemptOf(sql`delivery_attempts.event_id`, sql`o.event_id`)}
                         and subscription_id || '' = s.id and round = o.round
                       order by id limit 1) a on true) head on true
      left join lateral (
             select started_at, duration_ms from delivery_attempts
              where subscription_id = s.id and outcome = 'delivered'
              order by id desc limit 1) success on true
     where s.id = ${where.id}`,
});

/**
 * How much is queued, and since when; the first entry that waits for a retry, with whatever stands behind it in its lane,
 * when the first attempt of its round failed and how many have; when a 2xx was last received; what expired; and the counts.
 */
export async function healthOf(
  db: DbOrTx,
  where: ReturnType<typeof whereCounted>,
  expiredSince: Date,
) {
  return onlyRow(await db.run(health, { ...where, expiredSince }));
}
