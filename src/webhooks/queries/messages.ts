import { desc, sql, type SQL } from "drizzle-orm";

import { isAttemptOf } from "../../../db/conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { list, selected, statement, value, type ValuesOf } from "../../../db/statement.ts";
import { OUTCOMES, type AttemptSummary } from "../delivery-model.ts";
import { LANE_LOOKED_AT, type AttemptTest } from "../message-model.ts";
import type { Subscription } from "../model.ts";
import { attemptsWithin, newestFirst, SUMMARY, type AttemptRange } from "./attempts.ts";

// What is looked at for a page of messages. Each walk takes a number of rows from where the last one ended, whether they
// fit or not, so that no filter can make a request read more.

/** From `firstId` on, before `endId`. */
export interface IdRange {
  readonly firstId: string;
  readonly endId: string;
}

interface AttemptWalk extends AttemptRange {
  readonly test: AttemptTest | undefined;
  readonly limit: number;
}

const ANY: AttemptTest = { outcomes: OUTCOMES, status: "%", text: "" };

/** Whether an attempt passes a test, of which these are the parts. */
function passes({ outcomes, status, text }: Readonly<Record<keyof AttemptTest, SQL>>): SQL {
  const { outcome, statusCode, errorCode, responseExcerpt } = deliveryAttempts;
  return sql`(${outcome} = any(${outcomes}::text[])
    and coalesce(${statusCode}::text, 'none') like ${status}::text
    and (${text}::text = ''
         or strpos(lower(coalesce(${errorCode}, '') || ' ' || coalesce(${responseExcerpt}, '')), lower(${text}::text)) > 0))`;
}

/**
 * The next attempts of a subscription from the newest on. Those that were not delivered have an index by outcome, of
 * which each is walked alone; all others are among the newest of any.
 */
export function walkAttempts(
  db: DbOrTx,
  subscriptionId: string,
  { test = ANY, limit, ...range }: AttemptWalk,
) {
  const { id, eventId, startedAt } = deliveryAttempts;
  const isMatch = passes({
    outcomes: sql`${sql.param(test.outcomes)}`,
    status: sql`${test.status}`,
    text: sql`${test.text}`,
  }).mapWith(Boolean);
  const columns = { id, eventId, startedAt, isMatch };
  const rare = test.outcomes.includes("delivered") ? [undefined] : test.outcomes;
  const walks = rare.map((outcome) =>
    attemptsWithin(db, columns, subscriptionId, { ...range, outcome })
      .orderBy(desc(id))
      .limit(limit),
  );
  return newestFirst(walks, limit);
}

export type WalkedAttempt = Awaited<ReturnType<typeof walkAttempts>>[number];

/** Which entries: the queued ones, those that wait for a retry, those that were or are to be skipped, or all. */
export type EntryKind = "queued" | "waiting" | "skipped" | "any";

const EVENT = sql`h.sequence, h.event_id, h.event, h.recorded_at`;

const WALKED = {
  sequence: outbox.sequence,
  eventId: outbox.eventId,
  event: outbox.event,
  recordedAt: outbox.recordedAt,
};
export type WalkedEntry = ValuesOf<typeof WALKED>;

/** Queued and skipped events `h` of the log; `s` is the subscription, and `f` its offset. */
const QUEUED_EVENTS = (below: SQL, limit: SQL) => sql` union all
           (select ${EVENT} from review_history h
             where h.subscription_number = s.number and h.sequence > f.settled_through and h.sequence < ${below}
             order by h.sequence desc limit ${limit})`;
const SKIPPED_EVENTS = (below: SQL, limit: SQL) => sql` union all
           (select e.* from (select first, last from outbox_skips where subscription_id = s.id
                              order by last desc) k
             cross join lateral (
                   select ${EVENT} from review_history h
                    where h.subscription_number = s.number and h.sequence between k.first and k.last
                      and h.sequence < ${below}
                    order by h.sequence desc limit ${limit}) e
             limit ${limit})`;

/** A walk of the rows `o` of `outbox` for which something holds, and of events of the log. */
const walking = (kind: EntryKind, isRow: SQL, ...events: (typeof QUEUED_EVENTS)[]) =>
  statement({
    name: `messages.walk.${kind}`,
    // Merges bounded walks of the log and of what has rows.
    params: { id: outbox.subscriptionId, below: outbox.sequence, limit: value("bigint") },
    columns: WALKED,
    text: ({ id, below, limit }) => sql`
    select e.sequence, e.event_id as "eventId", e.event, e.recorded_at as "recordedAt"
      from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id
     cross join lateral (
           (select o.sequence, o.event_id, o.event, o.recorded_at from outbox o
             where o.shard = s.shard and o.subscription_id = s.id and o.sequence < ${below} and ${isRow}
             order by o.sequence desc limit ${limit})${sql.join(events.map((each) => each(below, limit)))}) e
     where s.id = ${id}
     order by e.sequence desc limit ${limit}`,
  });
const isQueued = sql`o.sequence > f.skipped_through and o.skipped_at is null`;
const WALKS: Readonly<Record<EntryKind, ReturnType<typeof walking>>> = {
  any: walking("any", sql`true`, QUEUED_EVENTS, SKIPPED_EVENTS),
  queued: walking("queued", isQueued, QUEUED_EVENTS),
  // The literal is for the partial index. An event that waits has left the log.
  waiting: walking("waiting", sql`${isQueued} and o.state = 'waiting'`),
  skipped: walking("skipped", sql`not (${isQueued})`, SKIPPED_EVENTS),
};

/** The next entries of a subscription below a sequence, the last first, queued or skipped. */
export function walkEntries(
  db: DbOrTx,
  id: string,
  { kind, ...range }: { readonly kind: EntryKind; readonly below: number; readonly limit: number },
) {
  return db.run(WALKS[kind], { id, ...range });
}

const attempts = statement({
  name: "messages.attempts",
  // The newest attempts of each of many events alone.
  params: {
    id: deliveryAttempts.subscriptionId,
    eventIds: list(deliveryAttempts.eventId),
    firstAttempt: deliveryAttempts.id,
    firstId: deliveryAttempts.id,
    endId: deliveryAttempts.id,
    outcomes: list(deliveryAttempts.outcome),
    status: value("text"),
    text: value("text"),
    limit: value("bigint"),
  },
  columns: { ...SUMMARY, isMatch: value("boolean") },
  text: ({ id, eventIds, firstAttempt, firstId, endId, limit, ...test }) => sql`
    select found.* from unnest(${eventIds}::text[]) as given(event_id)
     cross join lateral (
            select ${selected(SUMMARY)}, id >= ${firstId} and id < ${endId} and ${passes(test)} as "isMatch"
              from delivery_attempts
             where ${isAttemptOf(sql`delivery_attempts.event_id`, sql`given.event_id`)}
               and subscription_id || '' = ${id} and id >= ${firstAttempt}
             order by id desc limit ${limit}) found`,
});

/** Of one event more attempts than this are not told apart: it was redelivered dozens of times. */
const ATTEMPTS_LOOKED_AT = 200;

/** The newest attempts of these events, the newest of each first; `isMatch` of those that pass within the range. */
export function attemptsOfEvents(
  db: DbOrTx,
  id: string,
  eventIds: readonly string[],
  {
    since,
    test = ANY,
    ...range
  }: IdRange & { readonly since: Date; readonly test: AttemptTest | undefined },
): Promise<(AttemptSummary & { readonly isMatch: boolean })[]> {
  const firstAttempt = ulidFloor(since);
  const limit = ATTEMPTS_LOOKED_AT;
  return db.run(attempts, { id, eventIds, firstAttempt, limit, ...range, ...test });
}

const lanes = statement({
  name: "messages.lanes",
  // Joins what is queued to itself, of which it looks at a bounded number.
  params: {
    id: outbox.subscriptionId,
    heads: list(outbox.sequence),
    byReview: value("boolean"),
    limit: value("bigint"),
  },
  columns: { eventId: outbox.eventId, behind: value("integer") },
  text: ({ id, heads, byReview, limit }) => sql`
    with queued as materialized (
      select e.sequence, e.event_id, case when ${byReview}::boolean then coalesce(e.review_id, 0) else 0 end as lane
        from webhook_subscriptions s join outbox_offsets f on f.subscription_id = s.id
       cross join lateral (
              (select sequence, event_id, review_id from outbox
                where shard = s.shard and subscription_id = s.id and not is_test and skipped_at is null
                  and sequence > f.skipped_through order by sequence limit ${limit})
               union all
              (select sequence, event_id, review_id from review_history
                where subscription_number = s.number and sequence > f.settled_through order by sequence limit ${limit})) e
       where s.id = ${id}
       order by e.sequence limit ${limit})
    select h.event_id as "eventId", count(q.sequence)::int as behind
      from queued h left join queued q on q.lane = h.lane and q.sequence > h.sequence
     where h.sequence = any(${heads}::bigint[])
     group by h.event_id`,
});

/** How many entries wait behind each of these, which wait for a retry; of those that are queued first. */
export async function waitingBehind(
  db: DbOrTx,
  { id, ordering }: Pick<Subscription, "id" | "ordering">,
  heads: readonly number[],
): Promise<ReadonlyMap<string, number>> {
  if (heads.length === 0) return new Map();
  const byReview = ordering === "review";
  const found = await db.run(lanes, { id, heads, byReview, limit: LANE_LOOKED_AT });
  return new Map(found.map(({ eventId, behind }) => [eventId, behind]));
}
