// The entries that a load has read: their texts are decoded, and those of the log and of `outbox` are merged.
import { fromMs } from "../../src/lib/clock.ts";
import type { EventFacts } from "../../src/outbox/event.ts";
import type { Entry, LoadRequest } from "../actor/event.ts";
import { fills, fitting } from "../actor/load.ts";
import { BETWEEN_FIELDS } from "./attempt-queries.ts";

/** The most log events that one load searches for entries of reviews that it does not exclude. */
export const WINDOW = 1_000;

const PLACEHOLDER = {
  isLogged: true,
  isHeld: false,
  eventId: "",
  event: "",
  isTest: false,
  payloadMode: "full",
  reviewId: null,
  batchJobId: null,
  recordedAt: fromMs(0),
  round: 1,
  attempt: 1,
  dueAt: null,
  bytes: 0,
  isFirstOnly: false,
  number: null,
  settledBefore: 0,
  facts: undefined,
} as const;

type AskedLoad = Pick<LoadRequest, "after" | "limit" | "maxBytes" | "exceptReviews">;

/** The bounds of the log of a subscription for a load; see `SubscriptionRow`. */
interface LogBounds {
  readonly settledThrough: number;
  readonly lastLogged: number;
  readonly lastFound: number | null;
}

/**
 * Merges the entries of the log and of `outbox` in the order of their sequence. Each of the two lists either fills the
 * request or was read to its end.
 *
 * An event that was removed from the log before the offset has passed it has a placeholder entry, which is the last one
 * of the load (contract 7.3). Nobody knows its review, so the events after it wait in both orderings.
 */
export function nextOf(found: readonly ReadEntry[], request: AskedLoad, bounds: LogBounds) {
  const logged = loggedOf(found);
  const begin = Math.max(request.after, bounds.settledThrough);
  const seen = logged.at(-1)?.sequence ?? begin;
  const isLogEndMissing = !fills(request, logged) && bounds.lastLogged > seen;
  const gap = gapIn(logged, (_, i) => logged[i - 1]?.sequence ?? begin);
  const missing = gap ?? (isLogEndMissing ? bounds.lastLogged : undefined);
  const entries = fitting(request, inOrder(found, missing ?? Number.POSITIVE_INFINITY, missing));
  return { ...answerOf(found, entries), isFull: false };
}

/**
 * Merges the entries for lanes by review. The due entries of reviews that have waited for a retry take turns with the
 * other entries, so that neither list delays the other. Each list keeps its order, and they have no review in common.
 *
 * If the window of the log ends before its last event, rows after the window are left out: an event of the same review
 * may precede them.
 */
export function nextByReview(found: readonly ReadEntry[], request: AskedLoad, bounds: LogBounds) {
  const { exceptReviews } = request;
  const { settledThrough, lastLogged, lastFound } = bounds;
  const logged = loggedOf(found);
  const isLogEndMissing =
    request.limit > 0 && lastLogged > Math.max(lastFound ?? 0, settledThrough);
  const gap = gapIn(logged, ({ previous }) => previous);
  const missing = gap ?? (isLogEndMissing ? lastLogged : undefined);
  const isCut = !fills(request, logged) && lastLogged - settledThrough > WINDOW;
  const windowEnd = isCut ? (logged.at(-1)?.sequence ?? settledThrough) : Number.POSITIVE_INFINITY;
  const end = missing ?? windowEnd;
  const placeholder = exceptReviews.includes(PLACEHOLDER.reviewId) ? undefined : missing;
  const ordered = inOrder(found, end, placeholder);
  // The due entries stay in the order of their due times, in which they were read.
  const due = found.filter(({ isFirstOnly, sequence }) => isFirstOnly && sequence <= end);
  const others = fitting(
    request,
    ordered.filter(({ isFirstOnly }) => !isFirstOnly),
  );
  return {
    ...answerOf(found, fitting(request, inTurns(due, others))),
    /** True if more entries may follow the window, because left-out reviews fill it. */
    isFull: request.limit > 0 && isCut && missing === undefined && !fills(request, others),
  };
}

function loggedOf(found: readonly ReadEntry[]): ReadEntry[] {
  return found.filter(({ isLogged }) => isLogged).toSorted(bySequence);
}

const bySequence = (a: Entry, b: Entry) => a.sequence - b.sequence;

/** Returns the sequence number of the first event that is missing between events of the log. */
function gapIn(
  logged: readonly ReadEntry[],
  previousOf: (entry: ReadEntry, i: number) => number,
): number | undefined {
  const behind = logged.find((entry, i) => entry.sequence - entry.gap - 1 > previousOf(entry, i));
  return behind && behind.sequence - behind.gap - 1;
}

/** Returns the entries up to a sequence in their order, without tests, and with the placeholder of a missing event. */
function inOrder(found: readonly ReadEntry[], end: number, missing: number | undefined) {
  const placeholder =
    missing === undefined ? [] : [{ ...PLACEHOLDER, sequence: missing, gap: 0, previous: 0 }];
  return [...found, ...placeholder]
    .filter(({ isTest, sequence }) => !isTest && sequence <= end)
    .toSorted(bySequence);
}

/** Merges two lists alternately. */
function inTurns<T>(one: readonly T[], other: readonly T[]): T[] {
  const length = Math.max(one.length, other.length);
  return Array.from({ length }, (_, i) => [one[i], other[i]])
    .flat()
    .filter((item) => item !== undefined);
}

function answerOf(found: readonly ReadEntry[], entries: readonly ReadEntry[]) {
  const held = entries.findIndex(({ isHeld }) => isHeld);
  return {
    /** The fitting entries, without the first held one and those after it. */
    entries: held === -1 ? entries : entries.slice(0, held),
    /** True if an entry belongs to an account that is not active. */
    isHeld: held !== -1,
    tests: found.filter(({ isTest }) => isTest).toSorted(bySequence),
  };
}

/**
 * An entry as read. For a log event, `gap` is the count of sequence numbers right before its own that were never in the
 * log, and, in a load by review, `previous` is the sequence number of the log event before it, or the number after
 * which the load began.
 */
export type ReadEntry = Entry & {
  readonly gap: number;
  readonly previous: number;
  /** True if the account of the event is not active, so that the event is held (contract 10.1). */
  readonly isHeld: boolean;
};

/** Decodes the text of an entry that belongs to this partner. */
export function readEntry(text: string, partnerId: number): ReadEntry {
  const fields = text.split(BETWEEN_FIELDS);
  const [sequence, isLogged, eventId = "", event = "", isTest, isMinimal, ...rest] = fields;
  const [reviewId, batchJobId, recordedMs, round, attempt, dueMs, occurredMs, ...source] = rest;
  const [gap, previous, held, bytes, isFirstOnly, written, before, ...history] = source;
  const number = written ? Number(written) : null;
  const id = { eventId, event, reviewId: reviewId ? Number(reviewId) : null };
  return {
    sequence: Number(sequence),
    gap: Number(gap),
    previous: Number(previous),
    isLogged: isLogged === "t",
    isHeld: held === "t",
    ...id,
    isTest: isTest === "t",
    payloadMode: isMinimal === "t" ? "minimal" : "full",
    batchJobId: batchJobId || null,
    recordedAt: fromMs(Number(recordedMs)),
    round: Number(round),
    attempt: Number(attempt),
    dueAt: dueMs ? fromMs(Number(dueMs)) : null,
    bytes: Number(bytes),
    isFirstOnly: isFirstOnly === "t",
    number,
    // A later round has a place of its own in the queue, behind events whose rows may have been deleted.
    settledBefore: before ? Number(before) : (number ?? 1) - 1,
    facts: factsIn(history, { ...id, partnerId, occurredAt: fromMs(Number(occurredMs)) }),
  };
}

type FactsOutsideHistory = "eventId" | "event" | "partnerId" | "occurredAt" | "reviewId";

/** Decodes the facts of an event; returns undefined if there is no row of the history. */
function factsIn(
  history: readonly string[],
  known: Pick<EventFacts, FactsOutsideHistory>,
): EventFacts | undefined {
  const [historyId, storeId, connectionId, axis, ...json] = history;
  if (!historyId) return undefined;
  const [actorJson = "null", reviewJson, siteJson, metadataJson = "{}"] = json;
  return {
    ...known,
    reviewHistoryId: Number(historyId),
    storeId: Number(storeId),
    storeReviewSiteId: Number(connectionId),
    axis: axis === "pull" || axis === "post" ? axis : null,
    actorJson,
    reviewJson: reviewJson || null,
    siteJson: siteJson || null,
    metadataJson,
  };
}
