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
import { roundsOf, SINCE, sinceOf } from "./events.ts";

// Which events of a window a subscription has missed, for their recovery.

/** A window of the history. */
interface Window {
  readonly since: Date;
  readonly until: Date;
  /** Nothing of the window was settled earlier: spares a look at the days before. */
  readonly settledSince: Date;
  /** The event values that the subscription is to get. */
  readonly events: readonly string[];
  readonly limit: number;
}

/**
 * Rows of the history that one statement looks at, so that each takes some tens of milliseconds, however long the window
 * is and however many of its events were delivered.
 */
export const PIECE = 10_000;

const piece = statement({
  name: "events.piece",
  // Compares rows, for which the builder has no words, to go on in the index where the last piece ended.
  params: {
    id: webhookSubscriptions.id,
    partnerId: webhookSubscriptions.partnerId,
    until: instant,
    afterAt: instant,
    afterId: reviewHistory.id,
    events: list(reviewHistory.event),
    limit: value("bigint"),
  },
  columns: {
    id: reviewHistory.id,
    eventId: reviewHistory.eventId,
    recordedAt: reviewHistory.recordedAt,
    isWanted: value("boolean"),
    isSettled: value("boolean"),
  },
  text: ({ id, partnerId, until, afterAt, afterId, events, limit }) => sql`
    with own as materialized (
      select s.number, f.skipped_through
        from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id where s.id = ${id}
    )
    select h.id, h.event_id as "eventId", h.recorded_at as "recordedAt", h.event = any(${events}::text[]) as "isWanted",
           -- Queued, or settled by an attempt: in the log, and in nothing that was skipped.
           coalesce(h.subscription_number = own.number
             and (h.sequence > own.skipped_through
                  or not exists (select from outbox_skips where subscription_id = ${id} and first <= h.sequence
                                    and last >= h.sequence)
                     and not exists (select from outbox o where o.event_id = h.event_id)), false) as "isSettled"
      from own, (select id, event_id, recorded_at, event, subscription_number, sequence from review_history
                  where partner_id = ${partnerId} and (recorded_at, id) > (${afterAt}, ${afterId}) and recorded_at < ${until}
                  order by recorded_at, id limit ${limit}) h
     order by h.recorded_at, h.id`,
});

const missing = statement({
  name: "events.missing",
  // Looks at all rounds of each of many events.
  params: { id: webhookSubscriptions.id, ids: list(reviewHistory.id), ...SINCE },
  columns: {
    reviewHistoryId: reviewHistory.id,
    eventId: reviewHistory.eventId,
    event: reviewHistory.event,
    reviewId: reviewHistory.reviewId,
    round: outbox.round,
    payloadMode: nullable(outbox.payloadMode),
    batchJobId: outbox.batchJobId,
  },
  text: ({ id, ids, ...since }) => sql`
    select h.id as "reviewHistoryId", h.event_id as "eventId", h.event, h.review_id as "reviewId", had.round,
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
 * Those of these events that are neither queued, nor wait for a batch, nor were delivered, in the order of the audit
 * trail; each with what its next round takes from the last one, if it was tried before.
 */
export function stillMissing(db: DbOrTx, id: string, ids: readonly number[], settledSince: Date) {
  return db.run(missing, { id, ids, ...sinceOf(settledSince) });
}

/** A place in the history of a partner, in the order in which it was recorded. */
interface Place {
  readonly at: Date;
  readonly id: number;
}

/** The events that a call queues, and where the next call goes on once they are queued. */
export interface Missed {
  readonly ids: readonly number[];
  readonly through: Place;
  readonly skips: Pick<typeof recoveries.$inferSelect, "skippedThrough" | "batchSkippedThrough">;
}

/**
 * The events of a window that were neither delivered nor are queued, the oldest first, and at most so many. Walks the
 * window in pieces: a partner of many events would exceed the time of a statement otherwise. What the log says is settled
 * is not looked up, but for what has failed; and of what earlier calls have queued, only what has failed.
 */
export async function undelivered(
  db: DbOrTx,
  subscription: Pick<Subscription, "id" | "partnerId">,
  window: Window,
): Promise<Missed> {
  const { since, until, settledSince, events, limit } = window;
  const { id, partnerId } = subscription;
  const failed = await failedSince(db, id, settledSince);
  const { recovered, ...skips } = await recoveredBefore(db, id, window);
  let through: Place = { at: since, id: 0 };
  const missed: number[] = [];
  if (recovered !== undefined && failed !== undefined) {
    through = recovered;
    const before = await failedBefore(db, partnerId, { ...window, failed, through });
    for (let from = 0; from < before.length && missed.length < limit; from += PIECE)
      missed.push(...(await missingOf(db, id, before.slice(from, from + PIECE), settledSince)));
  }
  while (missed.length < limit) {
    const place = { id, partnerId, until, afterAt: through.at, afterId: through.id };
    const found = await db.run(piece, { ...place, events, limit: PIECE });
    const open = found.filter(
      ({ isWanted, isSettled, eventId }) =>
        isWanted && !(isSettled && failed !== undefined && !failed.has(eventId)),
    );
    const ids = open.map((one) => one.id);
    missed.push(...(await missingOf(db, id, ids, settledSince)));
    const last = found.at(-1);
    // The next call looks again at a piece of which this one leaves some.
    if (last === undefined || missed.length > limit) break;
    through = { at: last.recordedAt, id: last.id };
    if (found.length < PIECE) break;
  }
  return { ids: missed.slice(0, limit).toSorted((a, b) => a - b), through, skips };
}

async function missingOf(db: DbOrTx, id: string, ids: readonly number[], settledSince: Date) {
  const rows = ids.length === 0 ? [] : await stillMissing(db, id, ids, settledSince);
  const found = new Set(rows.map((row) => row.reviewHistoryId));
  // In the order in which they were recorded.
  return ids.filter((one) => found.has(one));
}

/** How far earlier calls for such a window have come, if that still counts, and what of the subscription is skipped now. */
async function recoveredBefore(db: DbOrTx, id: string, { since, events }: Window) {
  const { skippedThrough } = outboxOffsets;
  const { batchSkippedThrough } = outboxSequences;
  const [row] = await db
    .select({
      skippedThrough,
      batchSkippedThrough,
      recovered: { at: recoveries.throughAt, id: recoveries.throughId },
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
  const { recovered = null, ...skips } = row ?? { skippedThrough: 0, batchSkippedThrough: 0 };
  return { ...skips, recovered: recovered ?? undefined };
}

/** Of the events that have failed those of the window up to a place, in the order in which they were recorded. */
async function failedBefore(
  db: DbOrTx,
  partnerId: number,
  {
    since,
    until,
    events,
    failed,
    through,
  }: Window & { readonly failed: ReadonlySet<string>; readonly through: Place },
): Promise<number[]> {
  const { id, recordedAt, eventId, event } = reviewHistory;
  const eventIds = [...failed];
  const found: { id: number; at: Date }[] = [];
  for (let from = 0; from < eventIds.length; from += PIECE)
    found.push(
      ...(await db
        .select({ id, at: recordedAt })
        .from(reviewHistory)
        .where(
          and(
            anyOf(eventId, eventIds.slice(from, from + PIECE)),
            eq(reviewHistory.partnerId, partnerId),
            anyOf(event, events),
            gte(recordedAt, since),
            lt(recordedAt, until),
            lte(recordedAt, through.at),
          ),
        )),
    );
  return found
    .filter((one) => one.at < through.at || one.id <= through.id)
    .toSorted((a, b) => a.at.getTime() - b.at.getTime() || a.id - b.id)
    .map((one) => one.id);
}

/** Notes that everything which a call has found is queued. If something was skipped meanwhile, the note does not count. */
export async function saveRecovered(
  tx: DbOrTx,
  id: string,
  { since, events }: Pick<Window, "since" | "events">,
  { through, skips }: Missed,
): Promise<void> {
  const how = {
    since,
    events: [...events],
    throughAt: through.at,
    throughId: through.id,
    ...skips,
  };
  await tx
    .insert(recoveries)
    .values({ subscriptionId: id, ...how })
    .onConflictDoUpdate({ target: recoveries.subscriptionId, set: how });
}

/** More are not kept in memory: then each settled event is looked up. */
const FAILED_AT_MOST = 100_000;

/** Events of which a round failed since then; undefined if they are too many. */
async function failedSince(db: DbOrTx, subscription: string, since: Date) {
  const { eventId } = deliveryAttempts;
  const range = { outcome: "failed", firstId: ulidFloor(since) } as const;
  const rows = await attemptsWithin(db, { eventId }, subscription, range).limit(FAILED_AT_MOST + 1);
  return rows.length > FAILED_AT_MOST ? undefined : new Set(rows.map((row) => row.eventId));
}
