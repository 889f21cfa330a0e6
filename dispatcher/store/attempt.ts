import { getTableColumns } from "drizzle-orm";
import { types } from "node:util";

import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { value, type ValuesOf } from "../../db/statement.ts";
import type { Decision } from "../actor/decide.ts";

/*
 * What is hot goes to Postgres and comes from it as lines of text: the driver has one value to make or read for a row,
 * instead of one for each column. An empty field is null.
 */

/** No value contains it: what receivers send is cleaned of it, and JSON has it escaped. */
export const BETWEEN_RECORDS = "\x1e";
export const BETWEEN_FIELDS = "\x1f";

/**
 * What a commit writes about an attempt, or finds its entry by: every field of a record and its column. The statement
 * numbers them in this order.
 */
export const ATTEMPT_FIELDS = {
  shard: outbox.shard,
  /** Read from the log: with its outcome the offset moves on, unless it has passed the entry already. */
  isLogged: value("boolean"),
  ...getTableColumns(deliveryAttempts),
};

type Decided = "outcome" | "nextAttemptAt";
/** Bytes, of which a record has the hex digits: as such they were made, and as such they go to Postgres. */
type HexField = "signature" | "previousSignature" | "bodyDigest";

/** One POST and what it means for its entry: everything that one commit writes about it. */
export interface AttemptRecord
  extends
    Omit<ValuesOf<typeof ATTEMPT_FIELDS>, Decided | HexField>,
    Readonly<Record<HexField, string | null>> {
  readonly decision: Decision;
  /** When the POST ended, by the monotonic clock of the process: a retry is due so long after it as is decided. */
  readonly endedMs: number;
}

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
  const held = record[field];
  if (field === "responseExcerpt") return storable(record.responseExcerpt ?? "");
  if (held === null) return "";
  if (typeof held !== "object") return `${held}`;
  return types.isDate(held) ? held.toISOString() : JSON.stringify(held);
}

const UNSTORABLE = new RegExp(`[\\0${BETWEEN_RECORDS}${BETWEEN_FIELDS}]`, "g");

/**
 * What a receiver sent, without NUL and halves of surrogate pairs, which Postgres text cannot hold, and without our
 * separators. In JSON all of these are escaped already.
 */
function storable(text: string): string {
  return text.replaceAll(UNSTORABLE, "\uFFFD").toWellFormed();
}
