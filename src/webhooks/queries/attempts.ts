import { and, asc, desc, eq, gte, inArray, lt, sql, type SQL } from "drizzle-orm";

import { hashOfValue, isAttemptOf } from "../../../db/attempt-conditions.ts";
import type { DbOrTx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import type { Page } from "../../http/list.ts";
import { addMs } from "../../lib/clock.ts";
import { CATALOG } from "../../outbox/event.ts";
import type { Attempt, AttemptFilter, AttemptSummary } from "../delivery-model.ts";
import type { FirstFailure } from "../stats-model.ts";
import { ID_AHEAD_MS } from "./buckets.ts";
import { withRequests } from "./requests.ts";

/** Without what was sent and answered, which may be long. */
export const SUMMARY = {
  id: deliveryAttempts.id,
  eventId: deliveryAttempts.eventId,
  event: deliveryAttempts.event,
  attempt: deliveryAttempts.attempt,
  round: deliveryAttempts.round,
  sequence: deliveryAttempts.sequence,
  startedAt: deliveryAttempts.startedAt,
  durationMs: deliveryAttempts.durationMs,
  outcome: deliveryAttempts.outcome,
  statusCode: deliveryAttempts.statusCode,
  errorCode: deliveryAttempts.errorCode,
  nextAttemptAt: deliveryAttempts.nextAttemptAt,
  possiblyRepeated: deliveryAttempts.possiblyRepeated,
  resent: deliveryAttempts.resent,
};

const WHOLE = {
  ...SUMMARY,
  requestHeaders: deliveryAttempts.requestHeaders,
  requestBody: deliveryAttempts.requestBody,
  composer: deliveryAttempts.composer,
  host: deliveryAttempts.host,
  signature: deliveryAttempts.signature,
  previousSignature: deliveryAttempts.previousSignature,
  bodyDigest: deliveryAttempts.bodyDigest,
  responseHeaders: deliveryAttempts.responseHeaders,
  responseExcerpt: deliveryAttempts.responseExcerpt,
  responseTruncated: deliveryAttempts.responseTruncated,
};

/**
 * Newest first by id. The ids are ULIDs of the start, or of up to `ID_AHEAD_MS` later, so a time is a bound on them, and
 * only the partitions between the bounds are read.
 */
export async function attemptsOf(
  db: DbOrTx,
  subscriptionId: string,
  filter: AttemptFilter,
  page: Page,
): Promise<Attempt[]> {
  const { event, eventId, outcome, since, until } = filter;
  const rows = await db
    .select(WHOLE)
    .from(deliveryAttempts)
    .where(
      and(
        eventId === undefined
          ? isOfSubscription(subscriptionId, event)
          : and(isAmongFew(subscriptionId), isOfEvent(eventId), isOfValue(event)),
        outcome === undefined ? undefined : eq(deliveryAttempts.outcome, outcome),
        // A literal, for the partial index: the plan for any outcome would walk all attempts to find those that are rare.
        outcome === undefined || outcome === "delivered"
          ? undefined
          : sql`${deliveryAttempts.outcome} <> 'delivered'`,
        ...(since === undefined
          ? []
          : [gte(deliveryAttempts.id, idAt(since)), gte(deliveryAttempts.startedAt, since)]),
        ...(until === undefined
          ? []
          : [
              lt(deliveryAttempts.id, idAt(addMs(until, ID_AHEAD_MS))),
              lt(deliveryAttempts.startedAt, until),
            ]),
        page.after === undefined ? undefined : lt(deliveryAttempts.id, page.after),
      ),
    )
    .orderBy(desc(deliveryAttempts.id))
    .limit(page.limit + 1);
  return withRequests(db, rows);
}

/**
 * A literal, for the planner: it knows how rare a value is, but not how rare a parameter will be, for which it would walk
 * all attempts of days that have an index by it.
 */
function literalOf(value: string): SQL {
  const known = CATALOG.find((one) => one.value === value);
  if (known === undefined) throw new Error("The catalog has no such event.");
  return sql.raw(`'${known.value}'`);
}

function isOfValue(value: string | undefined): SQL | undefined {
  return value === undefined ? undefined : sql`${deliveryAttempts.event} = ${literalOf(value)}`;
}

/** A subscription's attempts, of an event value if there is one. */
export function isOfSubscription(
  subscriptionId: string,
  value: string | undefined,
): SQL | undefined {
  return and(
    eq(deliveryAttempts.subscriptionId, subscriptionId),
    isOfValue(value),
    value === undefined ? undefined : hashOfValue(subscriptionId, literalOf(value)),
  );
}

const isOfEvent = (id: string): SQL => isAttemptOf(deliveryAttempts.eventId, sql`${id}::text`);

/**
 * Of the attempts of one event, which are few. No index knows it in this form: where the planner expects many attempts of
 * an event, it would also read the index of all that the subscription has.
 */
function isAmongFew(subscriptionId: string): SQL {
  return sql`${deliveryAttempts.subscriptionId} || '' = ${subscriptionId}`;
}

/** The smallest id of an attempt that started at `at`. ULIDs know no time before 1970. */
export function idAt(at: Date): string {
  return ulidFloor(addMs(at, Math.max(0, -at.getTime())));
}

/** The newest attempts of one event, the oldest of them first. */
export async function attemptsOfEvent(
  db: DbOrTx,
  subscriptionId: string,
  eventId: string,
  limit: number,
): Promise<Attempt[]> {
  const rows = await db
    .select(WHOLE)
    .from(deliveryAttempts)
    .where(and(isOfEvent(eventId), isAmongFew(subscriptionId)))
    .orderBy(desc(deliveryAttempts.id))
    .limit(limit);
  return withRequests(db, rows.toReversed());
}

/** The first ids of a subscription's attempts from this one or this instant on, oldest first. */
export async function attemptIdsFrom(
  db: DbOrTx,
  subscriptionId: string,
  from: Date | string,
  limit: number,
): Promise<string[]> {
  const { id } = deliveryAttempts;
  const firstId = typeof from === "string" ? from : idAt(from);
  const rows = await db
    .select({ id })
    .from(deliveryAttempts)
    .where(and(eq(deliveryAttempts.subscriptionId, subscriptionId), gte(id, firstId)))
    .orderBy(asc(id))
    .limit(limit);
  return rows.map((row) => row.id);
}

/** These attempts with what was sent and answered, oldest first. */
export async function attemptsById(
  db: DbOrTx,
  subscriptionId: string,
  ids: readonly string[],
): Promise<Attempt[]> {
  const rows = await db
    .select(WHOLE)
    .from(deliveryAttempts)
    .where(areThese(subscriptionId, ids))
    .orderBy(asc(deliveryAttempts.id));
  return withRequests(db, rows);
}

/** The same without what may be long. */
export function attemptSummariesById(
  db: DbOrTx,
  subscriptionId: string,
  ids: readonly string[],
): Promise<AttemptSummary[]> {
  return db
    .select(SUMMARY)
    .from(deliveryAttempts)
    .where(areThese(subscriptionId, ids))
    .orderBy(asc(deliveryAttempts.id));
}

function areThese(subscriptionId: string, ids: readonly string[]): SQL | undefined {
  const { id } = deliveryAttempts;
  return and(eq(deliveryAttempts.subscriptionId, subscriptionId), inArray(id, [...ids]));
}

/** Of the newest `count` permanent failures the first; undefined if there are fewer. */
export async function firstOfFailures(
  db: DbOrTx,
  subscriptionId: string,
  count: number,
): Promise<FirstFailure | undefined> {
  const { id, eventId, startedAt, statusCode, errorCode, outcome } = deliveryAttempts;
  const [row] = await db
    .select({ eventId, at: startedAt, statusCode, errorCode })
    .from(deliveryAttempts)
    .where(
      and(
        eq(deliveryAttempts.subscriptionId, subscriptionId),
        // Literals, for the partial index.
        sql`${outcome} = 'failed' and ${outcome} <> 'delivered'`,
      ),
    )
    .orderBy(desc(id))
    .limit(1)
    .offset(count - 1);
  return row;
}
