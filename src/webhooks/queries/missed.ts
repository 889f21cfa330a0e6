import { and, eq, gt, gte, lt, lte, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { outbox, outboxOffsets, outboxSequences, recoveries } from "../../../db/schema/outbox.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, list, nullable, statement, value } from "../../../db/statement.ts";
import type { Subscription } from "../model.ts";
import { attemptsWithin } from "./attempts.ts";
import { NUMBER, roundsOf, SINCE, sinceOf } from "./events.ts";

/** The search for undelivered events in a window of the history. */
interface SearchWindow {
  readonly since: Date;
  readonly until: Date;
  /** No event of the window was settled before this instant, so earlier partitions need not be read. */
  readonly settledSince: Date;
  /** The event values that the subscription gets. */
  readonly events: readonly string[];
  readonly limit: number;
}

/**
 * The number of history rows that one statement reads. The number keeps a statement at some tens of milliseconds,
 * however long the window is and however many of its events were delivered.
 */
export const BATCH_ROWS = 10_000;

const batchStatement = statement({
  name: "events.piece",
  // Raw SQL, because the statement compares rows, which Drizzle's query builder cannot express, to continue in the
  // index after the last row of the previous statement.
  params: {
    id: webhookSubscriptions.id,
    partnerId: webhookSubscriptions.partnerId,
    until: instant,
    throughAt: instant,
    throughId: reviewHistory.id,
    events: list(reviewHistory.event),
  },
  columns: {
    id: reviewHistory.id,
    eventId: reviewHistory.eventId,
    recordedAt: reviewHistory.recordedAt,
    isWanted: value("boolean"),
    isSettled: value("boolean"),
  },
  text: ({ id, partnerId, until, throughAt, throughId, events }) => sql`
    with own as materialized (
      select s.number, f.skipped_through
        from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id where s.id = ${id}
    )
    select h.id, h.event_id as "eventId", h.recorded_at as "recordedAt", h.event = any(${events}::text[]) and not h.is_imported as "isWanted",
           -- True for an event of the log that no skip covers: it is queued, or an attempt has settled it.
           coalesce(h.subscription_number = own.number
             and (h.sequence > own.skipped_through
                  or not exists (select from outbox_skips where subscription_id = ${id} and first <= h.sequence
                                    and last >= h.sequence)
                     and not exists (select from outbox o where o.event_id = h.event_id)), false) as "isSettled"
      from own, (select id, event_id, recorded_at, event, subscription_number, sequence, is_imported from review_history
                  where partner_id = ${partnerId} and (recorded_at, id) > (${throughAt}, ${throughId}) and recorded_at < ${until}
                  order by recorded_at, id limit ${BATCH_ROWS}) h
     order by h.recorded_at, h.id`,
});

const missingStatement = statement({
  name: "events.missing",
  // Raw SQL, because the statement reads all rounds of each of many events.
  params: { id: webhookSubscriptions.id, ids: list(reviewHistory.id), ...SINCE },
  columns: {
    reviewHistoryId: reviewHistory.id,
    eventId: reviewHistory.eventId,
    event: reviewHistory.event,
    reviewId: reviewHistory.reviewId,
    /** The number of the event at the subscription; null if it has none. */
    number: nullable(outbox.sequence),
    round: outbox.round,
    payloadMode: nullable(outbox.payloadMode),
    batchJobId: outbox.batchJobId,
  },
  text: ({ id, ids, ...since }) => sql`
    select h.id as "reviewHistoryId", h.event_id as "eventId", h.event, h.review_id as "reviewId", had.round,
           case when h.subscription_number = (select number from webhook_subscriptions where id = ${id})
                then ${NUMBER} end as number,
           had.payload_modes[1] as "payloadMode", had.batch_job_ids[1] as "batchJobId"
      from unnest(${ids}::bigint[]) as given(id)
      join review_history h on h.id = given.id
     cross join lateral (
            select coalesce(max(round), 0::smallint) as round, array_agg(payload_mode order by round desc) as payload_modes,
                   array_agg(batch_job_id order by round desc) as batch_job_ids
              from (${roundsOf(id, sql`h.event_id`, since)}) rounds
            having bool_and(state in ('failed', 'skipped')) is not false) had
     where not exists (
             select from batch_entries b join outbox_sequences q on q.subscription_id = b.subscription_id
              where b.subscription_id = ${id} and b.review_history_id = h.id and h.id > q.batch_skipped_through)
     order by h.id`,
});

/**
 * Selects the events among `ids` that are not queued, do not wait for a batch and were not delivered, in the order of
 * the history. Each comes with the number, payload mode and batch job of its last round, if it had one.
 */
export function stillMissing(db: DbOrTx, id: string, ids: readonly number[], settledSince: Date) {
  return db.run(missingStatement, { id, ids, ...sinceOf(settledSince) });
}

/** A position in the history of a partner, which is ordered by time of recording and id. */
type HistoryCursor = Pick<typeof recoveries.$inferSelect, "throughAt" | "throughId">;

/**
 * Finds the oldest events of a window that were neither delivered nor are queued, up to `limit`, and the progress with
 * which the next recovery continues.
 *
 * The window is read in parts of `BATCH_ROWS` rows, because with many events one statement would exceed its time limit.
 * An event that the log shows as queued or settled is looked up only if a round of it has failed. The part of the
 * window that earlier recoveries have processed is not read again, except for events that have failed.
 */
export async function undelivered(
  db: DbOrTx,
  subscription: Pick<Subscription, "id" | "partnerId">,
  window: SearchWindow,
) {
  const { since, until, settledSince, events, limit } = window;
  const { id, partnerId } = subscription;
  const failed = await failedSince(db, id, settledSince);
  const { recovered, ...skips } = await recoveredBefore(db, id, window);
  let through: HistoryCursor = { throughAt: since, throughId: 0 };
  const missed: number[] = [];
  const addMissing = async (ids: readonly number[]) => {
    const rows = ids.length === 0 ? [] : await stillMissing(db, id, ids, settledSince);
    const found = new Set(rows.map((row) => row.reviewHistoryId));
    // The result is filtered from `ids`, because these are in the order of recording and the rows of the statement are
    // not.
    missed.push(...ids.filter((one) => found.has(one)));
  };
  if (recovered !== null && failed !== undefined) {
    through = recovered;
    const before = await failedBefore(db, partnerId, failed, { ...window, ...recovered });
    for (let from = 0; from < before.length && missed.length < limit; from += BATCH_ROWS)
      await addMissing(before.slice(from, from + BATCH_ROWS));
  }
  while (missed.length < limit) {
    const found = await db.run(batchStatement, { id, partnerId, until, events, ...through });
    const open = found.filter(
      ({ isWanted, isSettled, eventId }) =>
        isWanted && !(isSettled && failed !== undefined && !failed.has(eventId)),
    );
    await addMissing(open.map((one) => one.id));
    const last = found.at(-1);
    // If not all events of this part fit into the limit, the next recovery must read the part again.
    if (last === undefined || missed.length > limit) break;
    through = { throughAt: last.recordedAt, throughId: last.id };
    if (found.length < BATCH_ROWS) break;
  }
  return {
    ids: missed.slice(0, limit).toSorted((a, b) => a - b),
    /**
     * Every event up to the position `through…` was delivered or is queued, unless it fails later, or `skippedThrough`
     * or `batchSkippedThrough` changes.
     */
    progress: { since, events: [...events], ...through, ...skips },
  };
}

/**
 * Reads the progress of earlier recoveries, if it is valid for this window, and the present `skippedThrough` and
 * `batchSkippedThrough`.
 */
async function recoveredBefore(db: DbOrTx, id: string, { since, events }: SearchWindow) {
  const { skippedThrough } = outboxOffsets;
  const { batchSkippedThrough } = outboxSequences;
  const [row] = await db
    .select({
      skippedThrough,
      batchSkippedThrough,
      recovered: { throughAt: recoveries.throughAt, throughId: recoveries.throughId },
    })
    .from(outboxSequences)
    .innerJoin(outboxOffsets, eq(outboxOffsets.subscriptionId, outboxSequences.subscriptionId))
    .leftJoin(
      recoveries,
      and(
        eq(recoveries.subscriptionId, outboxSequences.subscriptionId),
        lte(recoveries.since, since),
        gt(recoveries.throughAt, since),
        eq(recoveries.events, [...events]),
        eq(recoveries.skippedThrough, skippedThrough),
        eq(recoveries.batchSkippedThrough, batchSkippedThrough),
      ),
    )
    .where(eq(outboxSequences.subscriptionId, id));
  return row ?? { skippedThrough: 0, batchSkippedThrough: 0, recovered: null };
}

/** Finds the failed events of the window up to a position, in the order of recording. */
async function failedBefore(
  db: DbOrTx,
  partnerId: number,
  failed: ReadonlySet<string>,
  { since, until, events, throughAt, throughId }: SearchWindow & HistoryCursor,
): Promise<number[]> {
  const { id, recordedAt, eventId, event } = reviewHistory;
  const eventIds = [...failed];
  const found: { id: number; at: Date }[] = [];
  for (let from = 0; from < eventIds.length; from += BATCH_ROWS)
    found.push(
      ...(await db
        .select({ id, at: recordedAt })
        .from(reviewHistory)
        .where(
          and(
            anyOf(eventId, eventIds.slice(from, from + BATCH_ROWS)),
            eq(reviewHistory.partnerId, partnerId),
            anyOf(event, events),
            gte(recordedAt, since),
            lt(recordedAt, until),
            lte(recordedAt, throughAt),
          ),
        )),
    );
  return found
    .filter((one) => one.at < throughAt || one.id <= throughId)
    .toSorted((a, b) => a.at.getTime() - b.at.getTime() || a.id - b.id)
    .map((one) => one.id);
}

/** Saves the progress of a recovery, from which the next one continues. */
export async function saveRecovered(
  tx: DbOrTx,
  subscriptionId: string,
  progress: Omit<typeof recoveries.$inferInsert, "subscriptionId">,
): Promise<void> {
  await tx
    .insert(recoveries)
    .values({ subscriptionId, ...progress })
    .onConflictDoUpdate({ target: recoveries.subscriptionId, set: progress });
}

/** The most failed events that are kept in memory. If there are more, every settled event is looked up. */
const MAX_FAILED = 100_000;

/**
 * Reads the events of which a round has failed or was skipped individually since an instant; undefined if there are more
 * than `MAX_FAILED`. For such events the log shows only that they were queued.
 */
async function failedSince(db: DbOrTx, subscription: string, since: Date) {
  const { eventId } = deliveryAttempts;
  const range = { outcome: "failed", firstId: ulidFloor(since) } as const;
  const most = MAX_FAILED + 1;
  const failed = await attemptsWithin(db, { eventId }, subscription, range).limit(most);
  const isSkipped = and(gte(outbox.skippedAt, since), eq(outbox.isHeld, false));
  const skipped = await db
    .select({ eventId: outbox.eventId })
    .from(webhookSubscriptions)
    .innerJoin(
      outbox,
      and(
        // Without the shard, PostgreSQL before 18 reads the whole index.
        eq(outbox.shard, webhookSubscriptions.shard),
        eq(outbox.subscriptionId, webhookSubscriptions.id),
      ),
    )
    .where(and(eq(webhookSubscriptions.id, subscription), isSkipped))
    .limit(most);
  const rows = [...failed, ...skipped];
  return rows.length > MAX_FAILED ? undefined : new Set(rows.map((row) => row.eventId));
}
