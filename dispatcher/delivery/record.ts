import type { Decision } from "../actor/decide.ts";
import type { Entry } from "../actor/entry.ts";
import type { AttemptRecord } from "../store/attempt.ts";
import { payloadFormatNumberOf, digestOf, framed } from "../../src/outbox/payload-format.ts";
import type { SignedRequest } from "./compose.ts";
import type { PostOutcome } from "./deliver.ts";

/** A POST as it was made. */
interface Posted extends Pick<
  AttemptRecord,
  "id" | "shard" | "subscriptionId" | "startedAt" | "endedMs" | "possiblyRepeated"
> {
  readonly entry: Entry;
  readonly host: string;
  readonly request: SignedRequest;
}

/** Makes the record of a POST that ended with this outcome, for which this was decided. */
export function recordAttempt(
  { entry, host, request, ...made }: Posted,
  outcome: PostOutcome,
  decision: Decision,
): AttemptRecord {
  const answer = "statusCode" in outcome ? outcome : undefined;
  // What shows the exact request again is what it is composed from, and the proof. Of a test event there is no history: the
  // request itself is kept.
  const isTest = entry.source.kind === "test";
  const { headers, body, signature, previousSignature } = request;
  const { sequence, eventId, event, round, attempt, isLogged } = entry;
  const { payloadMode, batchJobId, recordedAt } = entry;
  return {
    ...made,
    sequence,
    eventId,
    event,
    round,
    attempt,
    isLogged,
    payloadMode,
    batchJobId,
    recordedAt,
    durationMs: outcome.durationMs,
    statusCode: answer?.statusCode ?? null,
    errorCode: "errorCode" in outcome ? outcome.errorCode : null,
    composer: isTest ? null : payloadFormatNumberOf(entry.payloadMode),
    host: isTest ? null : host,
    signature: isTest ? null : signature,
    previousSignature: isTest ? null : previousSignature,
    bodyDigest: isTest ? null : digestOf(body),
    requestHeaders: isTest ? framed(host, headers, body) : null,
    requestBody: isTest ? body : null,
    responseHeaders: answer?.responseHeaders ?? null,
    responseExcerpt: answer?.responseExcerpt ?? null,
    responseTruncated: answer?.responseTruncated ?? false,
    resent: outcome.resent,
    decision,
  };
}
