import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { markedThrough } from "../../../db/marks.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { outboxSequences } from "../../../db/schema/outbox.ts";
import { reviewHistory } from "../../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { instant, list, statement, value } from "../../../db/statement.ts";
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
    not exists (select from outbox o where o.event_id = h.event_id and o.subscription_id = ${id}
                   and o.sequence > ${markedThrough(id)})
    and not exists (select from batch_entries b where b.subscription_id = ${id} and b.review_history_id = h.id)
    and not exists (select from (${endedOf(id, sql`h.event_id`, ended)}) d where d.state = 'delivered')`;
}

const missing = statement({
  name: "webhooks.undelivered",
  reason: "Built on the SQL of ended rounds, which entries.ts shares.",
  params: {
    id: webhookSubscriptions.id,
    partnerId: webhookSubscriptions.partnerId,
    since: instant,
    until: instant,
    ...ENDED,
    events: list(reviewHistory.event),
    limit: value("bigint"),
  },
  columns: { id: reviewHistory.id },
  text: ({ id, partnerId, since, until, events, limit, ...ended }) => sql`
    select h.id from review_history h
     where h.partner_id = ${partnerId} and h.recorded_at >= ${since} and h.recorded_at < ${until}
       and h.event = any(${events}::text[]) and ${isMissed(id, ended)}
     order by h.id limit ${limit}`,
});

/** The events of a window that were neither delivered nor are queued, the oldest first, and at most so many. */
export async function undelivered(
  db: DbOrTx,
  subscription: Pick<Subscription, "id" | "partnerId">,
  { limit, ...window }: Recovery & { readonly limit: number },
): Promise<number[]> {
  const firstAttempt = ulidFloor(window.settledSince);
  const rows = await db.run(missing, { ...subscription, ...window, limit, firstAttempt });
  return rows.map(({ id }) => id);
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
       cross join lateral (select * from review_history where id = m.id offset 0) h
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
