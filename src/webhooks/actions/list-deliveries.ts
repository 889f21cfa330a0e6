import { decodeTime } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { readOneInstant } from "../../../db/server.ts";
import type { Page } from "../../http/list.ts";
import { fromMs } from "../../lib/clock.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { unavailable } from "../../lib/problem.ts";
import { deliveryState } from "../decide.ts";
import type { AttemptSummary } from "../delivery-model.ts";
import {
  ATTEMPTS_LISTED,
  type AttemptCondition,
  attemptConditionOf,
  FIRST_CURSOR,
  type ListedDelivery,
  type DeliveryCursor,
  deliveryCursorText,
  type DeliveryFilter,
  type DeliveryPage,
  readDeliveryCursor,
  WAITING_FOR_BATCH,
} from "../delivery-list-model.ts";
import type { Subscription } from "../model.ts";
import {
  eventsOfNumbers,
  eventsOfReviews,
  lastRoundsOf,
  waitingBehind,
} from "../queries/events.ts";
import {
  attemptsOfEvents,
  type Candidate,
  type EntryKind,
  type IdRange,
  nextCandidates,
} from "../queries/delivery-walks.ts";
import { listForBatch } from "./list-for-batch.ts";

/*
 * The list contains a delivery once: at its newest matching attempt, or at its queue entry. The list walks attempts and
 * entries from the newest on and loads the delivery of each row. It drops a delivery that is listed at another row than
 * the one that led to it.
 */

/** A page reads at most this many attempts and this many entries, and then ends even if it is not full. */
const MAX_ROWS_READ = 5_000;
const ROWS_PER_WALK = 1_000;
/** A page loads at most about this many deliveries, and then ends even if it is not full. */
const MAX_DELIVERIES_LOADED = 500;
/** The number of deliveries that one statement loads. */
const DELIVERIES_PER_LOAD = 20;
const DAY_MS = 86_400_000;

interface ListQuery {
  readonly tx: Tx;
  readonly subscription: Subscription;
  readonly filter: DeliveryFilter;
  /** The condition that an attempt of a delivery has to meet; undefined if a delivery needs no attempt. */
  readonly condition: AttemptCondition | undefined;
  /** The ids of attempts that started between `since` and `until`. */
  readonly range: IdRange;
  /**
   * The row at which a delivery is listed. `either` is the delivery's entry as long as it has no attempt, and its
   * newest matching attempt from then on.
   */
  readonly listedAt: "attempt" | "entry" | "either";
}

/** Lists a page of the deliveries of a subscription. Throws `unavailable` if too many pages wait. */
export type ListDeliveries = (
  subscription: Subscription,
  filter: DeliveryFilter,
  page: Page,
) => Promise<DeliveryPage>;

/**
 * Makes the function that lists the deliveries that match a filter, by their newest attempt or entry in descending
 * order.
 *
 * It limits how many pages are read at the same time, in total and for one partner. A page holds a database connection
 * for up to about 85 statements. Of the default of eight database connections (`API_CONNECTIONS`), four stay free for
 * sign-ins and other reads.
 */
export function createDeliveryList({ db }: { readonly db: Db }): ListDeliveries {
  const pages = new FairQueue({ running: 4, share: 2, waiting: 200, rejection: unavailable });
  return (subscription, filter, page) =>
    pages.take([String(subscription.partnerId)], () =>
      // All statements read the state of the database at the same instant. Otherwise, a delivery whose first attempt is
      // committed between two statements could be found neither by its entry nor by its attempt.
      db.transaction(
        async (tx) => {
          await readOneInstant(tx);
          return readPage(tx, subscription, filter, page);
        },
        { readsFirst: true },
      ),
    );
}

async function readPage(
  tx: Tx,
  subscription: Subscription,
  filter: DeliveryFilter,
  page: Page,
): Promise<DeliveryPage> {
  if (filter.state === WAITING_FOR_BATCH) return listForBatch(tx, subscription, filter, page);
  const condition = attemptConditionOf(filter) ?? conditionOfState(filter.state);
  const range = {
    firstId: ulidFloor(filter.since ?? fromMs(0)),
    endId: filter.until === undefined ? FIRST_CURSOR.attempt : ulidFloor(filter.until),
  };
  const listedAt = rowOfDeliveries(filter.state, condition);
  const cursor = readDeliveryCursor(page.after ?? "") ?? FIRST_CURSOR;
  const query = { tx, subscription, filter, condition, range, listedAt };
  const eventIds = await eventsNamedBy(query);
  return eventIds === undefined
    ? walkDeliveries(query, cursor, page.limit)
    : listNamedDeliveries(query, eventIds, cursor, page.limit);
}

/**
 * Derives the condition on attempts from a final state of a delivery: the last attempt of a failed delivery failed, and
 * the last attempt of a delivered one succeeded.
 */
function conditionOfState(state: DeliveryFilter["state"]): AttemptCondition | undefined {
  if (state !== "failed" && state !== "delivered") return undefined;
  return attemptConditionOf({ outcome: state });
}

function rowOfDeliveries(
  state: DeliveryFilter["state"],
  condition: AttemptCondition | undefined,
): ListQuery["listedAt"] {
  if (state === "delivered" || state === "failed") return "attempt";
  if (state !== undefined) return "entry";
  return condition === undefined ? "either" : "attempt";
}

/** Returns the events that the filter names by id, by number or by review; undefined if the filter names none. */
async function eventsNamedBy({ tx, subscription, filter }: ListQuery) {
  const { eventId, numbers, reviewId, externalReviewId } = filter;
  const named = eventId === undefined ? [] : [[eventId]];
  if (numbers !== undefined) named.push(await eventsNumbered(tx, subscription.id, numbers));
  if (reviewId !== undefined || externalReviewId !== undefined) {
    const review = { reviewId: reviewId ?? null, externalId: externalReviewId ?? null };
    named.push(await eventsOfReviews(tx, subscription.partnerId, review));
  }
  const [first, ...others] = named;
  return first?.filter((one) => others.every((other) => other.includes(one)));
}

/** Finds the events with these numbers: one range by one search, and several ranges number by number. */
function eventsNumbered(
  tx: Tx,
  id: string,
  ranges: NonNullable<DeliveryFilter["numbers"]>,
): Promise<string[]> {
  const [{ first, last } = { first: 0, last: 0 }] = ranges;
  if (ranges.length === 1) return eventsOfNumbers(tx, id, [first], last - first + 1);
  const numbers = ranges.flatMap((one) =>
    Array.from({ length: one.last - one.first + 1 }, (_, i) => one.first + i),
  );
  return eventsOfNumbers(tx, id, [...new Set(numbers)]);
}

/**
 * Lists the deliveries of a few events. All of them are loaded, because that costs less than a walk that searches them.
 */
async function listNamedDeliveries(
  query: ListQuery,
  eventIds: readonly string[],
  cursor: DeliveryCursor,
  limit: number,
): Promise<DeliveryPage> {
  const loaded: LoadedDelivery[] = [];
  for (let from = 0; from < eventIds.length; from += DELIVERIES_PER_LOAD) {
    const some = eventIds.slice(from, from + DELIVERIES_PER_LOAD);
    loaded.push(...(await loadDeliveries(query, some, fromMs(0))).values());
  }
  const listed = loaded
    .flatMap((one) => rowOf(query, one).map((row) => ({ row, delivery: one.delivery })))
    .filter(({ row, delivery }) => isAfter(row, cursor) && passesFilter(query, delivery))
    .toSorted(
      (a, b) =>
        b.row.at.getTime() - a.row.at.getTime() ||
        (a.delivery.eventId < b.delivery.eventId ? 1 : -1),
    );
  const shown = listed.slice(0, limit);
  const end = shown.reduce((at, { row }) => cursorAfter(at, row), cursor);
  return {
    rows: shown.map(({ delivery }) => delivery),
    next: listed.length > limit ? deliveryCursorText(end) : undefined,
  };
}

/**
 * Finds the row at which a delivery is listed. Returns an empty list if the delivery has no matching attempt, or if it
 * is listed at an entry that was recorded outside of the time range of the filter.
 */
function rowOf({ listedAt, filter, condition }: ListQuery, loaded: LoadedDelivery): Candidate[] {
  const { delivery, position, newestMatch, isAttempted } = loaded;
  const { eventId, listedAt: at } = delivery;
  if (listedAt === "attempt" || (listedAt === "either" && isAttempted))
    return newestMatch === undefined
      ? []
      : [{ attempt: newestMatch.id, eventId, at, isMatch: true }];
  if (condition !== undefined && newestMatch === undefined) return [];
  const { since, until } = filter;
  const isWithin = (since === undefined || at >= since) && (until === undefined || at < until);
  return isWithin ? [{ entry: position, eventId, at, isMatch: true }] : [];
}

function isAfter(row: Candidate, cursor: DeliveryCursor): boolean {
  return "attempt" in row ? row.attempt < cursor.attempt : row.entry < cursor.entry;
}

function cursorAfter(cursor: DeliveryCursor, row: Candidate): DeliveryCursor {
  return "attempt" in row ? { ...cursor, attempt: row.attempt } : { ...cursor, entry: row.entry };
}

function passesFilter({ filter }: ListQuery, { state, event }: ListedDelivery): boolean {
  return (
    (filter.state === undefined || filter.state === state) &&
    (filter.event === undefined || filter.event === event)
  );
}

/**
 * Lists deliveries of all events: walks attempts and entries until the page is full, or until as many rows were read as
 * one request may read.
 */
async function walkDeliveries(
  query: ListQuery,
  start: DeliveryCursor,
  limit: number,
): Promise<DeliveryPage> {
  const { tx, subscription, filter, condition, range, listedAt } = query;
  const { event, since, until } = filter;
  const attempts = listedAt === "entry" ? undefined : { ...range, condition };
  const walk = { attempts, entries: entryKind(query), event, since, until };
  const rows: ListedDelivery[] = [];
  let cursor = start;
  let loadedCount = 0;
  let size = Math.min(2 * limit, ROWS_PER_WALK);
  for (let read = 0; read < MAX_ROWS_READ; read += size, size = ROWS_PER_WALK) {
    const found = await nextCandidates(tx, subscription.id, { ...walk, cursor, limit: size });
    for (let from = 0; from < found.rows.length; from += DELIVERIES_PER_LOAD) {
      const candidates = found.rows.slice(from, from + DELIVERIES_PER_LOAD);
      const loaded = await loadCandidates(query, candidates);
      loadedCount += loaded.size;
      for (const [i, candidate] of candidates.entries()) {
        cursor = cursorAfter(cursor, candidate);
        const delivery = deliveryAt(query, candidate, loaded.get(candidate.eventId));
        if (delivery === undefined) continue;
        rows.push(delivery);
        const isLast = found.isEnd && from + i === found.rows.length - 1;
        if (rows.length === limit)
          return { rows, next: isLast ? undefined : deliveryCursorText(cursor) };
      }
      const isLast = found.isEnd && from + DELIVERIES_PER_LOAD >= found.rows.length;
      if (loadedCount >= MAX_DELIVERIES_LOADED && !isLast)
        return { rows, next: deliveryCursorText(cursor) };
    }
    if (found.isEnd) return { rows, next: undefined };
  }
  return { rows, next: deliveryCursorText(cursor) };
}

/**
 * Chooses the kind of entries to walk; undefined for none. While the subscription is disabled, its queued events are
 * `held` and none is `pending` or `waiting`. While it is active, only the events of inactive accounts are `held`.
 */
function entryKind({
  listedAt,
  filter: { state },
  subscription,
}: ListQuery): EntryKind | undefined {
  if (listedAt === "attempt") return undefined;
  if (state === undefined) return "any";
  if (state === "skipped") return "skipped";
  const isDisabled = subscription.state === "disabled";
  if (state === "held") return isDisabled ? "queued" : "held";
  if (isDisabled) return undefined;
  return state === "waiting" ? "waiting" : "queued";
}

/**
 * Returns the delivery of a candidate row; undefined if the delivery is listed at another row or does not match the
 * filter.
 */
function deliveryAt(
  query: ListQuery,
  candidate: Candidate,
  loaded: LoadedDelivery | undefined,
): ListedDelivery | undefined {
  if (!candidate.isMatch || loaded === undefined) return undefined;
  const { delivery, position, newestMatch, isAttempted } = loaded;
  if (!passesFilter(query, delivery)) return undefined;
  if ("attempt" in candidate) return newestMatch?.id === candidate.attempt ? delivery : undefined;
  if (candidate.entry !== position) return undefined;
  if (query.listedAt === "either") return isAttempted ? undefined : delivery;
  return query.condition === undefined || newestMatch !== undefined ? delivery : undefined;
}

interface LoadedDelivery {
  readonly delivery: ListedDelivery;
  /** The position of its last round in the queue. */
  readonly position: number;
  readonly isAttempted: boolean;
  /** The newest attempt of the delivery within the range that meets the condition. */
  readonly newestMatch: Pick<AttemptSummary, "id" | "startedAt"> | undefined;
}

/**
 * Loads the deliveries of candidate rows. The search begins a day before the oldest candidate: rows of these deliveries
 * can be older than that candidate only by the difference between the clocks of processes.
 */
function loadCandidates(
  query: ListQuery,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<string, LoadedDelivery>> {
  const matching = candidates.filter(({ isMatch }) => isMatch);
  const [first = FIRST_CURSOR.attempt] = matching
    .flatMap(({ at, eventId }) => [ulidFloor(at), eventId])
    .toSorted();
  const since = fromMs(Math.max(0, decodeTime(first) - DAY_MS));
  const eventIds = [...new Set(matching.map(({ eventId }) => eventId))];
  return loadDeliveries(query, eventIds, since);
}

/**
 * Loads the deliveries of these events by event id: their states, their newest attempts, and the number of entries that
 * each of them blocks.
 */
async function loadDeliveries(
  { tx, subscription, range, condition, listedAt }: ListQuery,
  eventIds: readonly string[],
  since: Date,
): Promise<ReadonlyMap<string, LoadedDelivery>> {
  if (eventIds.length === 0) return new Map();
  const lastRounds = await lastRoundsOf(tx, subscription.id, eventIds, since);
  const retrying = lastRounds.flatMap((row) => (row.state === "waiting" ? [row.position] : []));
  const blocked = await waitingBehind(tx, subscription, retrying);
  const wanted = { ...range, firstAttempt: ulidFloor(since), condition };
  const attempts = await attemptsOfEvents(tx, subscription.id, eventIds, wanted);
  const byEvent = Map.groupBy(attempts, ({ eventId }) => eventId);
  return new Map(
    lastRounds.map((row) => {
      const own = byEvent.get(row.eventId) ?? [];
      const newestMatch = own.find(({ isMatch }) => isMatch);
      const isAttempted = own.length > 0;
      const isAtAttempt = listedAt === "attempt" || (listedAt === "either" && isAttempted);
      const delivery = {
        ...row,
        // The queue time of an entry is that of its round: an event that was queued again is listed at that time.
        listedAt: (isAtAttempt ? newestMatch?.startedAt : undefined) ?? row.recordedAt,
        state: deliveryState(row.state, subscription),
        waitingBehind: blocked.get(row.eventId) ?? null,
        attempts: own.slice(0, ATTEMPTS_LISTED).toReversed(),
      };
      const { position } = row;
      return [row.eventId, { delivery, position, isAttempted, newestMatch }];
    }),
  );
}
