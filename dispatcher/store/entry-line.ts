import { fromMs } from "../../src/lib/clock.ts";
import type { Entry } from "../actor/entry.ts";
import { BETWEEN_FIELDS } from "./lines.ts";

const ms = (instant: string) => `(extract(epoch from ${instant}) * 1000)::bigint`;

/** In the order in which `readEntry` takes them: of an entry `e` of the outbox and its history `h`. */
const FIELDS = [
  "e.sequence",
  "e.event_id",
  "e.event",
  "e.is_test",
  "e.payload_mode",
  "e.review_id",
  "e.round",
  "e.attempt",
  ms("e.due_at"),
  // A test event has no history: it occurred when it was asked for.
  ms("coalesce(h.occurred_at, e.recorded_at)"),
  "h.id",
  "h.store_id",
  "h.store_review_site_id",
  "h.axis",
  // JSON is read as the text that was stored, because it goes into the body as it is.
  "h.actor",
  "h.review",
  "h.site",
  "h.metadata",
];
const BEFORE_HISTORY = FIELDS.indexOf("h.id");

/** The line as SQL. */
export const ENTRY_LINE = `concat(${FIELDS.join(", chr(31), ")})`;

/** Reads the line of an entry of this partner. */
export function readEntry(line: string, partnerId: number): Entry {
  const fields = line.split(BETWEEN_FIELDS);
  const [sequence, eventId = "", event = "", isTest, mode, reviewId, round, attempt, dueAt] =
    fields;
  return {
    sequence: Number(sequence),
    eventId,
    event,
    isTest: isTest === "t",
    payloadMode: mode === "minimal" ? "minimal" : "full",
    reviewId: numberOrNull(reviewId),
    round: Number(round),
    attempt: Number(attempt),
    dueAt: dueAt ? fromMs(Number(dueAt)) : null,
    source: readSource(fields, partnerId),
  };
}

function readSource(fields: readonly string[], partnerId: number): Entry["source"] {
  const [, eventId = "", event = "", isTest, , reviewId, , , , occurredMs] = fields;
  const [historyId, storeId, connectionId, axis, ...json] = fields.slice(BEFORE_HISTORY);
  const occurredAt = fromMs(Number(occurredMs));
  // A missing history row does not make an entry a test: only `is_test` does.
  if (isTest === "t") return { kind: "test", event, eventId, partnerId, occurredAt };
  if (!historyId) return { kind: "missing" };
  const [actorJson = "null", reviewJson, siteJson, metadataJson = "{}"] = json;
  return {
    kind: "recorded",
    facts: {
      eventId,
      event,
      occurredAt,
      partnerId,
      reviewHistoryId: Number(historyId),
      reviewId: numberOrNull(reviewId),
      storeId: Number(storeId),
      storeReviewSiteId: Number(connectionId),
      axis: axis === "pull" || axis === "post" ? axis : null,
      actorJson,
      reviewJson: textOrNull(reviewJson),
      siteJson: textOrNull(siteJson),
      metadataJson,
    },
  };
}

function numberOrNull(text: string | undefined): number | null {
  return text ? Number(text) : null;
}

function textOrNull(text: string | undefined): string | null {
  return text || null;
}
