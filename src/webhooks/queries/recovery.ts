import { and, asc, eq, gte, lt, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { outboxSequences } from "../../../db/schema/outbox.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, list, statement, value } from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import type { Subscription } from "../model.ts";
import { endedRounds } from "./entries.ts";

// What a window lost, which takes the rounds of events that ended and what is queued.

export interface Recovery {
  readonly since: Date;
  readonly until: Date;
  /** Nothing of the window was settled earlier: spares a look at the days before. */
  readonly settledSince: Date;
  /** The event values that the subscription is to get. */
  readonly events: readonly string[];
}

const ENDED = { settledSince: instant, firstAttempt: deliveryAttempts.id };
type Ended = Record<keyof typeof ENDED, SQL>;

function endedOf(id: SQL, eventId: SQL, { settledSince: since, firstAttempt }: Ended): SQL {
  return endedRounds(id, eventId, { since, firstAttempt });
}

/** Neither queued, nor waiting for a batch, nor delivered: `h` is the row of the history. */
function isMissed(id: SQL, ended: Ended): SQL {
  return sql`
    not exists (select from queued_entries o where o.event_id = h.event_id and o.subscription_id || '' = ${id})
    and not exists (select from batch_entries b join outbox_sequences q on q.subscription_id = b.subscription_id
                     where b.subscription_id = ${id} and b.review_history_id = h.id
                       and h.id > q.batch_skipped_through)
    and not exists (select from (${endedOf(id, sql`h.event_id`, ended)}) d where d.state = 'delivered')`;
}

/**
 * Rows of the history that one statement looks at, so that each takes some tens of milliseconds, however long the window
 * is and however many of its events were delivered.
 */
export const PIECE = 10_000;
/** An event is mostly delivered within so long of its record: one range of attempts then shows a piece as delivered. */
const SOON_MS = 600_000;

const piece = statement({
  name: "webhooks.historyPiece",
  reason:
    "Compares rows, for which the builder has no words, to go on in the index where the last piece ended.",
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
      select s.number, f.settled_through, f.skipped_through
        from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id where s.id = ${id}
    )
    select h.id, h.event_id as "eventId", h.recorded_at as "recordedAt", h.event = any(${events}::text[]) as "isWanted",
           -- Settled by an attempt, or still queued: behind the offset of the log, and in nothing that was skipped.
           coalesce(h.subscription_number = own.number and h.sequence <= own.settled_through
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
  name: "webhooks.undelivered",
  reason: "Built on the SQL of ended rounds, which entries.ts shares.",
  params: { id: webhookSubscriptions.id, ids: list(reviewHistory.id), ...ENDED },
  columns: { id: reviewHistory.id },
  text: ({ id, ids, ...ended }) => sql`
    select h.id
      from unnest(${ids}::bigint[]) as given(id)
     cross join lateral (select * from review_history where id = given.id) h
     where ${isMissed(id, ended)}`,
});

/**
 * The events of a window that were neither delivered nor are queued, the oldest first, and at most so many. Walks the
 * window in pieces: a partner of many events would exceed the time of a statement otherwise.
 */
export async function undelivered(
  db: DbOrTx,
  { id, partnerId }: Pick<Subscription, "id" | "partnerId">,
  { since, until, settledSince, events, limit }: Recovery & { readonly limit: number },
): Promise<number[]> {
  const firstAttempt = ulidFloor(settledSince);
  const failed = await failedSince(db, id, firstAttempt);
  const missed: number[] = [];
  let [afterAt, afterId] = [since, 0];
  while (missed.length < limit) {
    const found = await db.run(piece, {
      id,
      partnerId,
      until,
      afterAt,
      afterId,
      events,
      limit: PIECE,
    });
    const [first, last] = [found[0], found.at(-1)];
    if (first === undefined || last === undefined) break;
    const open = found.filter(
      ({ isWanted, isSettled, eventId }) =>
        isWanted && !(isSettled && failed !== undefined && !failed.has(eventId)),
    );
    const soon =
      open.length === 0
        ? new Set()
        : await deliveredBetween(db, id, first.recordedAt, addMs(last.recordedAt, SOON_MS));
    const ids = open.flatMap((one) => (soon.has(one.eventId) ? [] : [one.id]));
    const rows =
      ids.length === 0 ? [] : await db.run(missing, { id, ids, settledSince, firstAttempt });
    missed.push(...rows.map((row) => row.id));
    if (found.length < PIECE) break;
    [afterAt, afterId] = [last.recordedAt, last.id];
  }
  return missed.toSorted((a, b) => a - b).slice(0, limit);
}

/** More are not kept in memory: then each settled event is looked up. */
const FAILED_AT_MOST = 100_000;

/** Events of which a round failed since then; undefined if they are too many. */
async function failedSince(
  db: DbOrTx,
  subscription: string,
  firstAttempt: string,
): Promise<ReadonlySet<string> | undefined> {
  const { id, subscriptionId, eventId, outcome } = deliveryAttempts;
  const rows = await db
    .select({ eventId })
    .from(deliveryAttempts)
    .where(
      and(
        eq(subscriptionId, subscription),
        // Literals, for the partial index.
        sql`${outcome} = 'failed' and ${outcome} <> 'delivered'`,
        gte(id, firstAttempt),
      ),
    )
    .limit(FAILED_AT_MOST + 1);
  if (rows.length > FAILED_AT_MOST) return undefined;
  return new Set(rows.map((row) => row.eventId));
}

/** Events delivered by attempts that began in this time: of many attempts the first ones, because they only save look-ups. */
async function deliveredBetween(
  db: DbOrTx,
  subscription: string,
  from: Date,
  until: Date,
): Promise<ReadonlySet<string>> {
  const { id, subscriptionId, eventId, outcome } = deliveryAttempts;
  const rows = await db
    .select({ eventId, outcome })
    .from(deliveryAttempts)
    .where(
      and(eq(subscriptionId, subscription), gte(id, ulidFloor(from)), lt(id, ulidFloor(until))),
    )
    .orderBy(asc(id))
    .limit(2 * PIECE);
  return new Set(rows.flatMap((row) => (row.outcome === "delivered" ? [row.eventId] : [])));
}

const recovery = statement({
  name: "webhooks.appendUndelivered",
  reason: "Numbers many events while the sequence is held, from a join of what is still missing.",
  params: {
    id: webhookSubscriptions.id,
    shard: webhookSubscriptions.shard,
    payloadMode: webhookSubscriptions.payloadMode,
    missed: list(reviewHistory.id),
    ...ENDED,
    lastSequence: outboxSequences.lastSequence,
    now: instant,
  },
  columns: { queued: value("integer") },
  text: ({ id, shard, payloadMode, missed, lastSequence, now, ...ended }) => sql`
    with missed as materialized (
      select h.id, h.event_id, h.event, h.review_id
        from unnest(${missed}::bigint[]) as m(id)
       cross join lateral (select * from review_history where id = m.id) h
       where ${isMissed(id, ended)}
    ), entries as (
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id,
                          review_id, batch_job_id, round, recorded_at)
      select ${shard}, ${id}, ${lastSequence}::bigint + row_number() over (order by m.id), m.event_id, m.event,
             coalesce(s.payload_mode, ${payloadMode}), m.id, m.review_id, s.batch_job_id, coalesce(s.round, 0) + 1,
             ${now}
        from missed m
        left join lateral (
               select payload_mode, batch_job_id, round
                 from (${endedOf(id, sql`m.event_id`, ended)}) d
                order by round desc limit 1) s on true
      returning 1
    ), counted as (
      update outbox_sequences set last_sequence = last_sequence + (select count(*) from entries)
       where subscription_id = ${id}
    )
    select count(*)::int as queued from entries`,
});

/**
 * Queues those of these events that are still missing, in the order of the audit trail; answers how many. An event that
 * was tried before is queued as its next round, with the body that it had. Under the lock of the sequence.
 */
export async function appendUndelivered(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "shard" | "payloadMode">,
  given: {
    readonly missed: readonly number[];
    readonly settledSince: Date;
    readonly lastSequence: number;
    readonly now: Date;
  },
): Promise<number> {
  const firstAttempt = ulidFloor(given.settledSince);
  const [row] = await tx.run(recovery, { ...subscription, ...given, firstAttempt });
  return row?.queued ?? 0;
}
