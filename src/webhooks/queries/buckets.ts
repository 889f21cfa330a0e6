import { sql, type SQL } from "drizzle-orm";

import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { instant, value } from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import { EXACT_MS, GROWTH, type Range } from "../stats.ts";

// What the statements that read stats and those that count them have in common.

/** The bin of an attempt's duration, as src/webhooks/stats.ts spans them. */
export const BIN = sql`
  case when duration_ms < ${EXACT_MS}::int then duration_ms
       else ${EXACT_MS}::int + floor(ln(duration_ms / ${EXACT_MS}::float8) / ln(${GROWTH}::float8))::int end`;

/** The step that an instant falls into. */
export const binned = (stepMs: SQL, at: SQL, origin: SQL): SQL =>
  sql`date_bin(${stepMs} * interval '1 millisecond', ${at}, ${origin})`;

export const STEP = { stepMs: value("double precision"), origin: instant };

/** Of attempts that started within a range. Their ids are near their instants, and bound the partitions that are read. */
export const WITHIN = {
  since: deliveryAttempts.startedAt,
  until: deliveryAttempts.startedAt,
  firstId: deliveryAttempts.id,
  endId: deliveryAttempts.id,
};

export function idsWithin({ since, until }: Pick<Range, "since" | "until">) {
  return { firstId: ulidFloor(since), endId: ulidFloor(addMs(until, ID_AHEAD_MS)) };
}

/** Ids never run backwards, so after the clock did they are ahead of their instant; by more than this is lost to stats. */
export const ID_AHEAD_MS = 60_000;
