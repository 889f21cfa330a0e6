import { ATTEMPT_FIELDS, type AttemptRecord } from "./attempt.ts";
import { BETWEEN_FIELDS, BETWEEN_RECORDS } from "./lines.ts";

export type Field = keyof typeof ATTEMPT_FIELDS;
// Object.keys does not say that it answers the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const FIELDS = Object.keys(ATTEMPT_FIELDS) as Field[];

/**
 * Each field of a line. A function for each, because reading a field by a name that changes costs as much as all the rest
 * of a line.
 */
const TEXT_OF: { readonly [F in Field]: (record: AttemptRecord, nowMs: number) => string } = {
  id: ({ id }) => id,
  shard: ({ shard }) => `${shard}`,
  subscriptionId: ({ subscriptionId }) => subscriptionId,
  sequence: ({ sequence }) => `${sequence}`,
  isLogged: ({ isLogged }) => `${isLogged}`,
  eventId: ({ eventId }) => eventId,
  event: ({ event }) => event,
  round: ({ round }) => `${round}`,
  attempt: ({ attempt }) => `${attempt}`,
  startedAt: ({ startedAt }) => startedAt.toISOString(),
  durationMs: ({ durationMs }) => `${durationMs}`,
  outcome: ({ decision }) => decision.kind,
  nextAttemptAt: ({ decision, endedMs }, nowMs) =>
    decision.kind === "retry" ? `${endedMs + decision.delayMs - nowMs}` : "",
  statusCode: ({ statusCode }) => `${statusCode ?? ""}`,
  errorCode: ({ errorCode }) => errorCode ?? "",
  resent: ({ resent }) => `${resent}`,
  possiblyRepeated: ({ possiblyRepeated }) => `${possiblyRepeated}`,
  responseTruncated: ({ responseTruncated }) => `${responseTruncated}`,
  composer: ({ composer }) => `${composer ?? ""}`,
  host: ({ host }) => host ?? "",
  signature: ({ signature }) => byteaOf(signature),
  previousSignature: ({ previousSignature }) => byteaOf(previousSignature),
  bodyDigest: ({ bodyDigest }) => byteaOf(bodyDigest),
  requestHeaders: ({ requestHeaders }) => jsonOf(requestHeaders),
  requestBody: ({ requestBody }) => requestBody ?? "",
  payloadMode: ({ payloadMode }) => payloadMode ?? "",
  batchJobId: ({ batchJobId }) => batchJobId ?? "",
  recordedAt: ({ recordedAt }) => recordedAt?.toISOString() ?? "",
  responseHeaders: ({ responseHeaders }) => jsonOf(responseHeaders),
  responseExcerpt: ({ responseExcerpt }) => storable(responseExcerpt),
};

const TEXTS = FIELDS.map((field) => TEXT_OF[field]);

function lineOf(record: AttemptRecord, nowMs: number): string {
  let line = "";
  for (const text of TEXTS) line += text(record, nowMs) + BETWEEN_FIELDS;
  return line.slice(0, -1);
}

function byteaOf(hex: string | null): string {
  return hex === null ? "" : `\\x${hex}`;
}

function jsonOf(headers: object | null): string {
  return headers === null ? "" : JSON.stringify(headers);
}

const UNSTORABLE = new RegExp(`[\\0${BETWEEN_RECORDS}${BETWEEN_FIELDS}]`, "g");

/**
 * What a receiver sent, without NUL and halves of surrogate pairs, which Postgres text cannot hold, and without our
 * separators. In JSON all of these are escaped already.
 */
function storable(text: string | null): string {
  if (text === null || text === "") return "";
  return text.replaceAll(UNSTORABLE, "\uFFFD").toWellFormed();
}

/** The records as one text. */
export function linesOf(records: readonly AttemptRecord[], monotonicMs: number): string {
  return records.map((record) => lineOf(record, monotonicMs)).join(BETWEEN_RECORDS);
}
