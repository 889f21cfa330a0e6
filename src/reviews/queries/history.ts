import { and, asc, desc, eq, getTableColumns, lt, lte, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { idAfter } from "../../../db/conditions.ts";
import { readFitting } from "../../../db/measure.ts";
import { EVENT_JSON, reviewHistory } from "../../../db/schema/reviews.ts";
import { endingEarly, type Found } from "../../http/list.ts";
import { fieldsShown } from "../../http/shown.ts";
import { PartnerHistoryObject, type PartnerHistoryRow } from "../model.ts";

/** The rows of a partner's history for one page: those after a row, up to `through`, in the order of their ids. */
interface Slice {
  readonly partnerId: number;
  readonly after: string | undefined;
  readonly since: Date | undefined;
  readonly through: number;
  readonly limit: number;
}

/**
 * The longest time in milliseconds between the instant that a row is recorded at and the moment when it takes its id,
 * including the difference between the clocks of the processes.
 */
const RECORDING_MS = 60_000;

/** Returns the id before the first row that may have been recorded at `since` or later; undefined if there is none. */
async function idBeforeInstant(
  db: DbOrTx,
  partnerId: number,
  since: Date,
): Promise<string | undefined> {
  const { id, recordedAt } = reviewHistory;
  // PostgreSQL subtracts, because the driver cannot write instants before the year 1.
  const before = sql`${sql.param(since, recordedAt)}::timestamptz - ${RECORDING_MS} * interval '1 millisecond'`;
  const [row] = await db
    .select({ id })
    .from(reviewHistory)
    .where(and(eq(reviewHistory.partnerId, partnerId), lt(recordedAt, before)))
    .orderBy(desc(recordedAt), desc(id))
    .limit(1);
  return row && String(row.id);
}

/**
 * Lists a slice, which ends early if its rows are large. With `since` it begins up to `RECORDING_MS` earlier, because a
 * filter would need another index.
 */
export async function partnerHistory(
  db: DbOrTx,
  { partnerId, since, through, limit, ...slice }: Slice,
): Promise<Found<PartnerHistoryRow>> {
  const { id } = reviewHistory;
  const after = slice.after ?? (since && (await idBeforeInstant(db, partnerId, since)));
  const listed = db
    .select(fieldsShown(PartnerHistoryObject, getTableColumns(reviewHistory)))
    .from(reviewHistory)
    .where(and(eq(reviewHistory.partnerId, partnerId), idAfter(id, after), lte(id, through)))
    .orderBy(asc(id))
    .limit(limit);
  const found = await readFitting(db, listed, { large: EVENT_JSON, order: sql`id` });
  return endingEarly(found, (row) => String(row.id));
}
