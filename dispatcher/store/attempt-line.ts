import { ATTEMPT_FIELDS, type AttemptRecord } from "./attempt.ts";
import { BETWEEN_FIELDS, BETWEEN_RECORDS } from "./lines.ts";

export type Field = keyof typeof ATTEMPT_FIELDS;
// Object.keys does not say that it answers the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const FIELDS = Object.keys(ATTEMPT_FIELDS) as Field[];

/** The records as one text; `nowMs` is by the monotonic clock. */
export function linesOf(records: readonly AttemptRecord[], nowMs: number): string {
  const lineOf = (record: AttemptRecord) =>
    FIELDS.map((field) => textOf(record, field, nowMs)).join(BETWEEN_FIELDS);
  return records.map(lineOf).join(BETWEEN_RECORDS);
}

function textOf(record: AttemptRecord, field: Field, nowMs: number): string {
  const { decision, endedMs } = record;
  if (field === "outcome") return decision.kind;
  if (field === "nextAttemptAt")
    return decision.kind === "retry" ? `${endedMs + decision.delayMs - nowMs}` : "";
  const value = record[field];
  if (field === "responseExcerpt") return storable(record.responseExcerpt ?? "");
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value) : `${value}`;
}

const UNSTORABLE = new RegExp(`[\\0${BETWEEN_RECORDS}${BETWEEN_FIELDS}]`, "g");

/**
 * What a receiver sent, without NUL and halves of surrogate pairs, which Postgres text cannot hold, and without our
 * separators. In JSON all of these are escaped already.
 */
function storable(text: string): string {
  return text.replaceAll(UNSTORABLE, "\uFFFD").toWellFormed();
}
