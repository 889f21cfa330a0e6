import { and, desc, eq, gte, isNull, or, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { alerts, incidents } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { rows, statement, value } from "../../../db/statement.ts";
import { addMs, parseInstant } from "../../lib/clock.ts";

/** The most incidents that the history reads. */
const MAX_INCIDENTS = 50;
/** The most failed attempts of each outcome that are counted for an incident. */
const MAX_COUNTED = 1_000;

/**
 * Reads the incidents of a subscription that have not ended before `since`, the newest first. `failedAt` is the time of the
 * first failed attempt that an alert named.
 */
export function incidentsOf(db: DbOrTx, subscriptionId: string, since: Date) {
  const { id, openedAt, endedAt, endedBy, disabledAt } = incidents;
  const firstOf = db
    .select({ at: sql`min(${alerts.cause} #>> '{first_failure,at}')`.as("at") })
    .from(alerts)
    .where(eq(alerts.incidentId, id))
    .as("first");
  const failedAt = sql`${firstOf.at}`.mapWith((at: string) => parseInstant(at));
  return db
    .select({ id, openedAt, endedAt, endedBy, disabledAt, failedAt })
    .from(incidents)
    .crossJoinLateral(firstOf)
    .where(
      and(eq(incidents.subscriptionId, subscriptionId), or(isNull(endedAt), gte(endedAt, since))),
    )
    .orderBy(desc(id))
    .limit(MAX_INCIDENTS);
}

const failures = statement({
  name: "incidents.failures",
  // Raw SQL, because one statement walks a bounded part of the index of failures for each of many ranges.
  params: {
    id: deliveryAttempts.subscriptionId,
    ranges: rows({
      ord: value("integer"),
      first_id: deliveryAttempts.id,
      end_id: deliveryAttempts.id,
    }),
    limit: value("bigint"),
  },
  columns: {
    ord: value("integer"),
    statusCode: deliveryAttempts.statusCode,
    errorCode: deliveryAttempts.errorCode,
    attempts: value("integer"),
  },
  text: ({ id, ranges, limit }) => sql`
    select r.ord, a.status_code as "statusCode", a.error_code as "errorCode", count(*)::int as attempts
      from (select * from ${ranges}) r cross join lateral (
             (select status_code, error_code from delivery_attempts
               where subscription_id = ${id} and outcome = 'failed' and outcome <> 'delivered'
                 and id >= r.first_id and id < r.end_id order by id limit (select ${limit}::bigint))
             union all
             (select status_code, error_code from delivery_attempts
               where subscription_id = ${id} and outcome = 'retry' and outcome <> 'delivered'
                 and id >= r.first_id and id < r.end_id order by id limit (select ${limit}::bigint))) a
     group by 1, 2, 3 order by 1, 4 desc`,
});

/** Counts the failed attempts of each range by cause, the most frequent cause first. `ord` is the index of the range. */
export function failuresWithin(
  db: DbOrTx,
  id: string,
  ranges: readonly { readonly beganAt: Date; readonly endedAt: Date }[],
) {
  const given = ranges.map(({ beganAt, endedAt }, ord) => ({
    ord,
    first_id: ulidFloor(beganAt),
    end_id: ulidFloor(addMs(endedAt, 1)),
  }));
  return db.run(failures, { id, ranges: given, limit: MAX_COUNTED });
}
