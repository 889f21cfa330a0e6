import { decodeTime } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { readOneInstant } from "../../../db/server.ts";
import type { Page } from "../../http/list.ts";
import { fromMs } from "../../lib/clock.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { unavailable } from "../../lib/problem.ts";
import { deliveryState } from "../decide.ts";
import type { AttemptSummary, DeliveryState } from "../delivery-model.ts";
import {
  ATTEMPTS_OF_MESSAGE,
  type AttemptCondition,
  attemptConditionOf,
  FIRST_CURSOR,
  type Message,
  type MessageCursor,
  messageCursorText,
  type MessageFilter,
  readMessageCursor,
} from "../message-model.ts";
import type { Subscription } from "../model.ts";
import { eventsOfReviews, standingOf, waitingBehind } from "../queries/events.ts";
import {
  attemptsOfEvents,
  type Candidate,
  type EntryKind,
  type IdRange,
  nextCandidates,
} from "../queries/messages.ts";

/*
 * A message is listed once, at its newest matching attempt or at its queue entry. The list walks attempts and entries
 * from the newest on, loads the messages that they belong to, and keeps those that are listed at the row that led to
 * them.
 */

/** A page reads at most this many attempts and this many entries, and then ends even if it is not full. */
const MAX_ROWS_READ = 5_000;
const ROWS_PER_WALK = 1_000;
/** A page loads at most about this many messages, and then ends even if it is not full. */
const MAX_MESSAGES_LOADED = 500;
/** The number of messages that one statement loads. */
const MESSAGES_PER_LOAD = 20;
const DAY_MS = 86_400_000;

/**
 * Limits how many pages are read at the same time, in total and for one partner. A page holds a connection for up to
 * about 85 statements; of the default of eight connections (`API_CONNECTIONS`), four stay free for sign-ins and other
 * reads.
 */
const pages = new FairQueue({ running: 4, share: 2, waiting: 200, rejection: unavailable });

interface MessagePage {
  readonly rows: readonly Message[];
  /** The cursor of the next page; undefined at the end of the list. */
  readonly next: string | undefined;
}

interface ListQuery {
  readonly tx: Tx;
  readonly subscription: Subscription;
  readonly filter: MessageFilter;
  /** The condition that an attempt of a message has to meet; undefined if a message needs no attempt. */
  readonly condition: AttemptCondition | undefined;
  /** The ids of attempts that started between `since` and `until`. */
  readonly range: IdRange;
  /**
   * The row that a message is listed at. `either` is the message's entry as long as it has no attempt, and its newest
   * matching attempt from then on.
   */
  readonly listedAt: "attempt" | "entry" | "either";
}

/**
 * Lists the messages of a subscription that match the filter, by their newest attempt or entry in descending order.
 * Throws 503 if too many pages wait.
 */
export async function listMessages(
  { db }: { readonly db: Db },
  subscription: Subscription,
  filter: MessageFilter,
  page: Page,
): Promise<MessagePage> {
  const condition = attemptConditionOf(filter) ?? conditionOfState(filter.state);
  const range = {
    firstId: ulidFloor(filter.since ?? fromMs(0)),
    endId: filter.until === undefined ? FIRST_CURSOR.attempt : ulidFloor(filter.until),
  };
  const listedAt = rowOfMessages(filter.state, condition);
  const cursor = readMessageCursor(page.after ?? "") ?? FIRST_CURSOR;
  const list = async (tx: Tx) => {
    // A message that is attempted between two statements would be in neither place of the list.
    await readOneInstant(tx);
    const query = { tx, subscription, filter, condition, range, listedAt };
    const eventIds = await eventsNamedBy(query);
    return eventIds === undefined
      ? walkMessages(query, cursor, page.limit)
      : listNamedMessages(query, eventIds, cursor, page.limit);
  };
  return pages.take([String(subscription.partnerId)], () =>
    db.transaction(list, { readsFirst: true }),
  );
}

/**
 * Derives a condition from a final state: the last attempt of a failed message failed, and that of a delivered one
 * succeeded.
 */
function conditionOfState(state: DeliveryState | undefined): AttemptCondition | undefined {
  if (state !== "failed" && state !== "delivered") return undefined;
  return attemptConditionOf({ outcome: state });
}

function rowOfMessages(
  state: DeliveryState | undefined,
  condition: AttemptCondition | undefined,
): ListQuery["listedAt"] {
  if (state === "delivered" || state === "failed") return "attempt";
  if (state !== undefined) return "entry";
  return condition === undefined ? "either" : "attempt";
}

/** Returns the events that the filter names by id or by review; undefined if the filter names none. */
async function eventsNamedBy({ tx, subscription, filter }: ListQuery) {
  const { eventId, reviewId, externalReviewId } = filter;
  if (reviewId === undefined && externalReviewId === undefined)
    return eventId === undefined ? undefined : [eventId];
  const review = { reviewId: reviewId ?? null, externalId: externalReviewId ?? null };
  const found = await eventsOfReviews(tx, subscription.partnerId, review);
  return eventId === undefined ? found : found.filter((one) => one === eventId);
}

/**
 * Lists the messages of a few events. All of them are loaded, because that costs less than a walk that searches them.
 */
async function listNamedMessages(
  query: ListQuery,
  eventIds: readonly string[],
  cursor: MessageCursor,
  limit: number,
): Promise<MessagePage> {
  const loaded: LoadedMessage[] = [];
  for (let from = 0; from < eventIds.length; from += MESSAGES_PER_LOAD) {
    const some = eventIds.slice(from, from + MESSAGES_PER_LOAD);
    loaded.push(...(await loadMessages(query, some, fromMs(0))).values());
  }
  const listed = loaded
    .flatMap((one) => rowOf(query, one).map((row) => ({ row, message: one.message })))
    .filter(({ row, message }) => isAfter(row, cursor) && passesFilter(query, message))
    .toSorted(
      (a, b) =>
        b.row.at.getTime() - a.row.at.getTime() || (a.message.eventId < b.message.eventId ? 1 : -1),
    );
  const shown = listed.slice(0, limit);
  const end = shown.reduce((at, { row }) => cursorAfter(at, row), cursor);
  return {
    rows: shown.map(({ message }) => message),
    next: listed.length > limit ? messageCursorText(end) : undefined,
  };
}

/**
 * Finds the row that a message is listed at; returns none if the message has no matching attempt, or was recorded
 * outside the range.
 */
function rowOf({ listedAt, filter, condition }: ListQuery, loaded: LoadedMessage): Candidate[] {
  const { message, newestMatch, isAttempted } = loaded;
  const { eventId, sequence } = message;
  if (listedAt === "attempt" || (listedAt === "either" && isAttempted))
    return newestMatch === undefined
      ? []
      : [{ attempt: newestMatch.id, eventId, at: newestMatch.startedAt, isMatch: true }];
  if (condition !== undefined && newestMatch === undefined) return [];
  const at = message.createdAt;
  const { since, until } = filter;
  const isWithin = (since === undefined || at >= since) && (until === undefined || at < until);
  return isWithin ? [{ entry: sequence, eventId, at, isMatch: true }] : [];
}

function isAfter(row: Candidate, cursor: MessageCursor): boolean {
  return "attempt" in row ? row.attempt < cursor.attempt : row.entry < cursor.entry;
}

function cursorAfter(cursor: MessageCursor, row: Candidate): MessageCursor {
  return "attempt" in row ? { ...cursor, attempt: row.attempt } : { ...cursor, entry: row.entry };
}

function passesFilter({ filter }: ListQuery, { state, event }: Message): boolean {
  return (
    (filter.state === undefined || filter.state === state) &&
    (filter.event === undefined || filter.event === event)
  );
}

/**
 * Lists messages of all events: walks attempts and entries until the page is full, or until as many rows were read as
 * one request may read.
 */
async function walkMessages(
  query: ListQuery,
  start: MessageCursor,
  limit: number,
): Promise<MessagePage> {
  const { tx, subscription, filter, condition, range, listedAt } = query;
  const { event, since, until } = filter;
  const attempts = listedAt === "entry" ? undefined : { ...range, condition };
  const walk = { attempts, entries: entryKind(query), event, since, until };
  const rows: Message[] = [];
  let cursor = start;
  let loadedCount = 0;
  let size = Math.min(2 * limit, ROWS_PER_WALK);
  for (let read = 0; read < MAX_ROWS_READ; read += size, size = ROWS_PER_WALK) {
    const found = await nextCandidates(tx, subscription.id, { ...walk, cursor, limit: size });
    for (let from = 0; from < found.rows.length; from += MESSAGES_PER_LOAD) {
      const candidates = found.rows.slice(from, from + MESSAGES_PER_LOAD);
      const loaded = await loadCandidates(query, candidates);
      loadedCount += loaded.size;
      for (const [i, candidate] of candidates.entries()) {
        cursor = cursorAfter(cursor, candidate);
        const message = messageAt(query, candidate, loaded.get(candidate.eventId));
        if (message === undefined) continue;
        rows.push(message);
        const isLast = found.isEnd && from + i === found.rows.length - 1;
        if (rows.length === limit)
          return { rows, next: isLast ? undefined : messageCursorText(cursor) };
      }
      const isLast = found.isEnd && from + MESSAGES_PER_LOAD >= found.rows.length;
      if (loadedCount >= MAX_MESSAGES_LOADED && !isLast)
        return { rows, next: messageCursorText(cursor) };
    }
    if (found.isEnd) return { rows, next: undefined };
  }
  return { rows, next: messageCursorText(cursor) };
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
 * Returns the message of a candidate row; undefined if the message is listed at another row or does not match the
 * filter.
 */
function messageAt(
  query: ListQuery,
  candidate: Candidate,
  loaded: LoadedMessage | undefined,
): Message | undefined {
  if (!candidate.isMatch || loaded === undefined) return undefined;
  const { message, newestMatch, isAttempted } = loaded;
  if (!passesFilter(query, message)) return undefined;
  if ("attempt" in candidate) return newestMatch?.id === candidate.attempt ? message : undefined;
  if (candidate.entry !== message.sequence) return undefined;
  if (query.listedAt === "either") return isAttempted ? undefined : message;
  return query.condition === undefined || newestMatch !== undefined ? message : undefined;
}

interface LoadedMessage {
  readonly message: Message;
  readonly isAttempted: boolean;
  /** The newest attempt of the message within the range that meets the condition. */
  readonly newestMatch: Pick<AttemptSummary, "id" | "startedAt"> | undefined;
}

/**
 * Loads the messages of candidate rows. No row of these messages is older than the oldest candidate, except for the
 * difference between the clocks of processes, for which a day is more than enough.
 */
function loadCandidates(
  query: ListQuery,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<string, LoadedMessage>> {
  const matching = candidates.filter(({ isMatch }) => isMatch);
  const [first = FIRST_CURSOR.attempt] = matching
    .flatMap(({ at, eventId }) => [ulidFloor(at), eventId])
    .toSorted();
  const since = fromMs(Math.max(0, decodeTime(first) - DAY_MS));
  const eventIds = [...new Set(matching.map(({ eventId }) => eventId))];
  return loadMessages(query, eventIds, since);
}

/**
 * Loads the messages of these events by event id: their states, their newest attempts and the entries that they
 * block.
 */
async function loadMessages(
  { tx, subscription, range, condition }: ListQuery,
  eventIds: readonly string[],
  since: Date,
): Promise<ReadonlyMap<string, LoadedMessage>> {
  if (eventIds.length === 0) return new Map();
  const standing = await standingOf(tx, subscription.id, eventIds, since);
  const retrying = standing.flatMap((row) => (row.state === "waiting" ? [row.sequence] : []));
  const blocked = await waitingBehind(tx, subscription, retrying);
  const wanted = { ...range, firstAttempt: ulidFloor(since), condition };
  const attempts = await attemptsOfEvents(tx, subscription.id, eventIds, wanted);
  const byEvent = Map.groupBy(attempts, ({ eventId }) => eventId);
  return new Map(
    standing.map((row) => {
      const own = byEvent.get(row.eventId) ?? [];
      const message = {
        ...row,
        state: deliveryState(row.state, subscription),
        waitingBehind: blocked.get(row.eventId) ?? null,
        attempts: own.slice(0, ATTEMPTS_OF_MESSAGE).toReversed(),
      };
      const newestMatch = own.find(({ isMatch }) => isMatch);
      return [row.eventId, { message, isAttempted: own.length > 0, newestMatch }];
    }),
  );
}
