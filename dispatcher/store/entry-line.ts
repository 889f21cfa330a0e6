import { fromMs } from "../../src/lib/clock.ts";
import type { Entry, EventIdentity } from "../actor/entry.ts";
import { BETWEEN_FIELDS } from "./attempt.ts";

const ms = (instant: string) => `(extract(epoch from ${instant}) * 1000)::bigint`;

/**
 * The parts of a line in the order in which `readEntry` takes them: of a row `e` of `outbox` with its history `h`, and of an
 * event `h` of the log. A test has no history: it occurred when it was asked for.
 */
const PARTS = [
  ["e.sequence", "h.sequence"],
  ["false", "true"],
  ["e.event_id", "h.event_id"],
  ["e.event", "h.event"],
  ["e.is_test", "false"],
  ["e.payload_mode = 'minimal'", "h.is_minimal"],
  ["e.review_id", "h.review_id"],
  ["e.batch_job_id", "''"],
  [ms("e.recorded_at"), ms("h.recorded_at")],
  ["e.round", "1"],
  ["e.attempt", "1"],
  [ms("e.due_at"), "''"],
  [ms("coalesce(h.occurred_at, e.recorded_at)"), ms("h.occurred_at")],
  ["''", "h.gap"],
] as const;
/** The rest of both. JSON is read as the text that was stored, because it goes into the body as it is. */
const HISTORY =
  "h.id, h.store_id, h.store_review_site_id, h.axis, h.actor, h.review, h.site, h.metadata";

const line = (own: readonly string[]) =>
  `concat(${[...own, ...HISTORY.split(", ")].join(", chr(31), ")})`;
export const ROW_LINE = line(PARTS.map(([ofRow]) => ofRow));
export const LOG_LINE = line(PARTS.map(([, ofEvent]) => ofEvent));

/** An entry as it was read; `gap` of an event of the log says how many numbers before its own are not in the log. */
export type ReadEntry = Entry & { readonly gap: number };

/** Reads the line of an entry of this partner. */
export function readEntry(text: string, partnerId: number): ReadEntry {
  const fields = text.split(BETWEEN_FIELDS);
  const [sequence, isLogged, eventId = "", event = "", isTest, isMinimal, ...rest] = fields;
  const [reviewId, batchJobId, recordedMs, round, attempt, dueMs, occurredMs, gap, ...history] =
    rest;
  const occurredAt = fromMs(Number(occurredMs));
  const id = { eventId, event, partnerId, occurredAt };
  const review = reviewId ? Number(reviewId) : null;
  return {
    sequence: Number(sequence),
    gap: Number(gap),
    isLogged: isLogged === "t",
    eventId,
    event,
    isTest: isTest === "t",
    payloadMode: isMinimal === "t" ? "minimal" : "full",
    reviewId: review,
    batchJobId: batchJobId || null,
    recordedAt: fromMs(Number(recordedMs)),
    round: Number(round),
    attempt: Number(attempt),
    dueAt: dueMs ? fromMs(Number(dueMs)) : null,
    // A missing history row does not make an entry a test: only `is_test` does.
    source: isTest === "t" ? { kind: "test", ...id } : recorded(history, id, review),
  };
}

function recorded(
  history: readonly string[],
  id: EventIdentity,
  reviewId: number | null,
): Entry["source"] {
  const [historyId, storeId, connectionId, axis, ...json] = history;
  if (!historyId) return { kind: "missing" };
  const [actorJson = "null", reviewJson, siteJson, metadataJson = "{}"] = json;
  return {
    kind: "recorded",
    facts: {
      ...id,
      reviewHistoryId: Number(historyId),
      reviewId,
      storeId: Number(storeId),
      storeReviewSiteId: Number(connectionId),
      axis: axis === "pull" || axis === "post" ? axis : null,
      actorJson,
      reviewJson: reviewJson || null,
      siteJson: siteJson || null,
      metadataJson,
    },
  };
}
