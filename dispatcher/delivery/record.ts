import type { Decision } from "../actor/decide.ts";
import type { Entry } from "../actor/entry.ts";
import type { AttemptRecord } from "../store/attempt.ts";
import type { DeliveryRequest, Outcome } from "./deliver.ts";

/** A POST as it was made. */
interface Posted {
  readonly entry: Entry;
  readonly host: string;
  readonly startedAt: Date;
  /** By the monotonic clock. */
  readonly endedMs: number;
  readonly possiblyRepeated: boolean;
  readonly request: DeliveryRequest & { readonly body: string };
}

type Identity = Pick<AttemptRecord, "id" | "shard" | "subscriptionId">;

/** Makes the record of a POST that ended with this outcome, for which this was decided. */
export function recordAttempt(
  { id, shard, subscriptionId }: Identity,
  { entry, host, startedAt, endedMs, request, possiblyRepeated }: Posted,
  outcome: Outcome,
  decision: Decision,
): AttemptRecord {
  const answer = "statusCode" in outcome ? outcome : undefined;
  return {
    id,
    shard,
    subscriptionId,
    sequence: entry.sequence,
    eventId: entry.eventId,
    event: entry.event,
    round: entry.round,
    attempt: entry.attempt,
    startedAt,
    endedMs,
    durationMs: outcome.durationMs,
    statusCode: answer?.statusCode ?? null,
    errorCode: "errorCode" in outcome ? outcome.errorCode : null,
    requestHeaders: {
      Host: host,
      ...request.headers,
      "Content-Length": String(Buffer.byteLength(request.body)),
    },
    requestBody: request.body,
    responseHeaders: answer?.responseHeaders ?? null,
    responseExcerpt: answer?.responseExcerpt ?? null,
    responseTruncated: answer?.responseTruncated ?? false,
    resent: outcome.resent,
    possiblyRepeated,
    decision,
  };
}
