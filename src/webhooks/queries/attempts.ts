import { and, asc, desc, eq, getTableColumns, gte, inArray, lt, sql, type SQL } from "drizzle-orm";
import type { SelectedFields } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../../db/client.ts";
import { isAttemptOf } from "../../../db/conditions.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import {
  bytesOf,
  type FirstRows,
  FITS,
  fitting,
  READ_BYTES,
  readFitting,
  type SortedQuery,
} from "../../../db/measure.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { EVENT_JSON, reviewHistory } from "../../../db/schema/reviews.ts";
import { nullable, selected, statement, value } from "../../../db/statement.ts";
import { endingEarly, type Found, type Page } from "../../http/list.ts";
import { addMs } from "../../lib/clock.ts";
import {
  digestOf,
  framed,
  payloadFormatOf,
  standardTimestamp,
} from "../../outbox/payload-format.ts";
import { CATALOG, type EventFacts } from "../../outbox/event.ts";
import { hiddenHeaders } from "../../outbox/own-headers.ts";
import { fieldsShown } from "../../http/shown.ts";
import { type Attempt, type AttemptFilter, AttemptSummaryObject } from "../delivery-model.ts";

/**
 * The most milliseconds by which the time in an attempt's id may be ahead of its start. Ids of attempts never
 * decrease, so after the clock was set back they are ahead. Queries by time do not find an attempt with an id that is
 * ahead by more than this.
 */
export const ID_AHEAD_MS = 60_000;

/** All columns of an attempt. */
const WHOLE = getTableColumns(deliveryAttempts);

/** Columns of an attempt without its request and response, which may be long. */
export const SUMMARY = fieldsShown(AttemptSummaryObject, WHOLE);

/**
 * A selection of attempts of a subscription. Ids are ULIDs of the start, so that `firstId` and `endId` are also
 * bounds of time.
 */
interface AttemptRange extends Partial<Pick<AttemptFilter, "event" | "eventId" | "outcome">> {
  readonly firstId?: string | undefined;
  readonly endId?: string | undefined;
  readonly more?: SQL | undefined;
}

const { id, subscriptionId, eventId, event, outcome, startedAt } = deliveryAttempts;

/** Selects attempts of a subscription within a range. The caller adds the order and the limit. */
export function attemptsWithin<C extends SelectedFields>(
  db: DbOrTx,
  columns: C,
  subscription: string,
  { firstId, endId, more, ...range }: AttemptRange,
) {
  const literal = range.event === undefined ? undefined : literalOf(range.event);
  const isOwn =
    range.eventId === undefined
      ? and(eq(subscriptionId, subscription), literal && hashOfValue(subscription, literal))
      : // This form of the comparison matches no index. Otherwise the planner might read all attempts of the subscription
        // instead of the few attempts of this event.
        and(
          sql`${subscriptionId} || '' = ${subscription}`,
          isAttemptOf(eventId, sql`${range.eventId}::text`),
        );
  return db
    .select(columns)
    .from(deliveryAttempts)
    .where(
      and(
        isOwn,
        literal && sql`${event} = ${literal}`,
        range.outcome && eq(outcome, range.outcome),
        // The literal selects the partial index. Without it, the plan would read all attempts to find a rare outcome.
        range.outcome && range.outcome !== "delivered" ? sql`${outcome} <> 'delivered'` : undefined,
        firstId === undefined ? undefined : gte(id, firstId),
        endId === undefined ? undefined : lt(id, endId),
        more,
      ),
    );
}

/**
 * Merges lists of attempts that are each sorted from the newest attempt on, and returns the newest attempts of all
 * lists, up to a limit.
 */
export async function newestFirst<T extends { readonly id: string }>(
  walks: readonly PromiseLike<readonly T[]>[],
  limit: number,
): Promise<T[]> {
  const found = (await Promise.all(walks)).flat();
  return found.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
}

/**
 * Renders an event value as an SQL literal. The planner knows from statistics how rare a literal is. With a parameter
 * it would read all attempts of a past day, although these partitions have an index by event.
 */
function literalOf(wanted: string): SQL {
  const known = CATALOG.find((one) => one.value === wanted);
  if (known === undefined) throw new Error("The catalog has no such event.");
  return sql.raw(`'${known.value}'`);
}

/**
 * Lists attempts with their requests, the newest first by id. Only the partitions between `since` and `until` are read.
 * The page ends early if the requests are large.
 */
export async function attemptsOf(
  db: DbOrTx,
  subscription: string,
  { since, until, ...filter }: AttemptFilter,
  page: Page,
): Promise<Found<Attempt>> {
  const firstId = since && ulidFloor(since);
  const endId = until && ulidFloor(addMs(until, ID_AHEAD_MS));
  const more = and(
    since && gte(startedAt, since),
    until && lt(startedAt, until),
    page.after === undefined ? undefined : lt(id, page.after),
  );
  const listed = attemptsWithin(db, WHOLE, subscription, { ...filter, firstId, endId, more })
    .orderBy(desc(id))
    .limit(page.limit + 1);
  return endingEarly(await readFirst(db, listed, sql`id desc`), (one) => one.id);
}

/** Reads the newest attempts of one event with their requests, in ascending order; fewer if the requests are large. */
export async function attemptsOfEvent(
  db: DbOrTx,
  subscription: string,
  wanted: string,
  limit: number,
): Promise<Attempt[]> {
  const listed = attemptsWithin(db, WHOLE, subscription, { eventId: wanted })
    .orderBy(desc(id))
    .limit(limit);
  return (await readFirst(db, listed, sql`id desc`)).rows.toReversed();
}

/** The columns of an attempt that may be large. */
const LARGE_COLUMNS = [
  deliveryAttempts.requestHeaders,
  deliveryAttempts.requestBody,
  deliveryAttempts.responseHeaders,
  deliveryAttempts.responseExcerpt,
];

/**
 * Reads the first attempts of a query with their requests. `readFitting` and `withRequests` end the result early if the
 * attempts are large.
 */
async function readFirst(
  db: DbOrTx,
  listed: SortedQuery<StoredAttempt>,
  order: SQL,
): Promise<FirstRows<Attempt>> {
  const { rows, isCut } = await readFitting(db, listed, { large: LARGE_COLUMNS, order });
  const shown = await withRequests(db, rows);
  return { rows: shown, isCut: isCut || shown.length < rows.length };
}

/** Reads the first ids of attempts from `firstId` on, in ascending order. */
export async function attemptIdsFrom(
  db: DbOrTx,
  subscription: string,
  firstId: string,
  limit: number,
): Promise<string[]> {
  const rows = await attemptsWithin(db, { id }, subscription, { firstId })
    .orderBy(asc(id))
    .limit(limit);
  return rows.map((row) => row.id);
}

/** Reads attempts by id, in ascending order. */
export function attemptsById(db: DbOrTx, subscription: string, ids: readonly string[]) {
  return attemptsWithin(db, WHOLE, subscription, { more: inArray(id, [...ids]) }).orderBy(asc(id));
}

/** Reads attempts by id with their requests, in ascending order; only the first ones if the requests are large. */
export const firstById = (db: DbOrTx, subscription: string, ids: readonly string[]) =>
  readFirst(db, attemptsById(db, subscription, ids), sql`id`);

/** Finds the first of the newest `count` permanent failures of a subscription; undefined if there are fewer. */
export async function firstOfFailures(db: DbOrTx, subscription: string, count: number) {
  const { statusCode, errorCode, tlsReason } = deliveryAttempts;
  const columns = { eventId, at: startedAt, statusCode, errorCode, tlsReason };
  const [row] = await attemptsWithin(db, columns, subscription, { outcome: "failed" })
    .orderBy(desc(id))
    .limit(1)
    .offset(count - 1);
  return row;
}

const FACT_COLUMNS = {
  eventId: reviewHistory.eventId,
  reviewHistoryId: reviewHistory.id,
  partnerId: reviewHistory.partnerId,
  storeId: reviewHistory.storeId,
  storeReviewSiteId: reviewHistory.storeReviewSiteId,
  reviewId: reviewHistory.reviewId,
  event: reviewHistory.event,
  axis: reviewHistory.axis,
  occurredAt: reviewHistory.occurredAt,
  recordedAt: reviewHistory.recordedAt,
  erasedAt: reviewHistory.erasedAt,
};
const nullableText = nullable(value("text"));

const factsOfEvents = statement({
  name: "attempts.facts",
  // Raw SQL, because the statement looks up the events in the given order, and stops after a number of bytes.
  params: { given: value("text[]") },
  columns: {
    ...FACT_COLUMNS,
    // JSON is read as the stored text, because the body contains it unchanged.
    actorJson: value("text"),
    reviewJson: nullableText,
    siteJson: nullableText,
    metadataJson: value("text"),
    nth: value("bigint"),
    follows: value("boolean"),
  },
  text: ({ given }) => sql`
    select ${selected(FACT_COLUMNS)}, actor::text as "actorJson", review::text as "reviewJson", site::text as "siteJson",
           metadata::text as "metadataJson", nth, follows
      from (select review_history.*, nth, ${fitting(bytesOf("review_history", EVENT_JSON), sql`nth`)}
              from unnest(${given}::text[]) with ordinality as given(wanted, nth)
             cross join lateral (select * from review_history
                                  where event_id = wanted collate "C" offset 0) review_history) review_history
     where ${FITS} order by nth`,
});

type KnownEvent = EventFacts & { readonly erasedAt: Date | null };

/**
 * Adds the exact request to each attempt, with one query of the history for all of them. Returns the first attempts
 * only, at least one, if the bodies of all are too large to be read together.
 */
export async function withRequests(
  db: DbOrTx,
  attempts: readonly StoredAttempt[],
): Promise<Attempt[]> {
  const composed = attempts.filter(({ payloadFormat }) => payloadFormat !== null);
  const eventIds = [...new Set(composed.map((one) => one.eventId))];
  const found = eventIds.length === 0 ? [] : await db.run(factsOfEvents, { given: eventIds });
  const known = new Map<string, KnownEvent>(found.map((one) => [one.eventId, one]));
  const last = found.at(-1);
  const unread = new Set(last?.follows === true ? eventIds.slice(last.nth) : []);
  const shown: Attempt[] = [];
  let bytes = 0;
  for (const one of attempts) {
    if (bytes >= READ_BYTES || (one.payloadFormat !== null && unread.has(one.eventId))) break;
    const request = requestOf(one, known.get(one.eventId));
    shown.push({ ...one, ...request });
    bytes += Buffer.byteLength(request.requestBody ?? "");
  }
  return shown;
}

/**
 * An attempt with the stored parts of its request: the request itself, or the values from which it is composed again.
 */
type StoredAttempt = typeof deliveryAttempts.$inferSelect;

/**
 * Restores the exact headers and body of an attempt, without the values of own headers (contract 7.13). If the body is composed again, both are null
 * unless its digest equals the stored digest of the sent body. So bytes that were not sent are never shown. An erasure
 * (contract 10.8) removes a stored body or changes the event, but it keeps the stored digest.
 */
function requestOf(kept: StoredAttempt, facts: KnownEvent | undefined) {
  const { payloadFormat: number, host, signature, previousSignature, bodyDigest } = kept;
  const { requestHeaders, requestBody, standardSignatures } = kept;
  const requestDigest = bodyDigest?.toHex() ?? null;
  if (number === null)
    return { requestHeaders, requestBody, requestDigest, requestErased: requestBody === null };
  const requestErased = facts !== undefined && facts.erasedAt !== null;
  const lost = { requestHeaders: null, requestBody: null, requestDigest, requestErased };
  const format = payloadFormatOf(number);
  if (format === undefined || facts === undefined || host === null || signature === null)
    return lost;
  const body = format.body(facts, kept.startedAt);
  if (digestOf(body) !== requestDigest) return lost;
  const headers = format.headers({
    ...kept,
    signature: signature.toHex(),
    previousSignature: previousSignature?.toHex() ?? null,
    place:
      kept.sentNumber === null ? null : { number: kept.sentNumber, settled: kept.sentSettled ?? 0 },
    standard: standardSignatures && {
      timestamp: standardTimestamp(kept.startedAt),
      signatures: standardSignatures.toHex(),
    },
  });
  const sent = framed(host, { ...headers, ...hiddenHeaders(kept.headerNames) }, body);
  return { requestHeaders: sent, requestBody: body, requestDigest, requestErased: false };
}

/**
 * Matches the hash of subscription id and event value. The index of the partitions of past days contains this hash.
 * Different values may have the same hash, so the caller also compares both values.
 */
function hashOfValue(ofSubscription: string, ofEvent: SQL): SQL {
  const wanted = sql`hashtext(${ofSubscription}::text || ${ofEvent})`;
  return sql`hashtext(${subscriptionId} || ${event}) = ${wanted}`;
}
