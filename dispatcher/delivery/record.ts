import type { Decision } from "../actor/decide.ts";
import type { Entry } from "../actor/entry.ts";
import type { AttemptRecord } from "../store/attempt.ts";
import { composerNumberOf, digestOf, framed } from "../../src/outbox/composer.ts";
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
  return {
    ...entry,
    ...made,
    durationMs: outcome.durationMs,
    statusCode: answer?.statusCode ?? null,
    errorCode: "errorCode" in outcome ? outcome.errorCode : null,
    ...requestOf(entry, host, request),
    responseHeaders: answer?.responseHeaders ?? null,
    responseExcerpt: answer?.responseExcerpt ?? null,
    responseTruncated: answer?.responseTruncated ?? false,
    resent: outcome.resent,
    decision,
  };
}

/**
 * What shows the exact request again: what it is composed from, and the proof; or, for a test event, of which there is no
 * history, the request itself.
 */
function requestOf(entry: Entry, host: string, request: SignedRequest) {
  if (entry.source.kind === "test")
    return {
      composer: null,
      host: null,
      signature: null,
      previousSignature: null,
      bodyDigest: null,
      requestHeaders: framed(host, request.headers, request.body),
      requestBody: request.body,
    };
  return {
    composer: composerNumberOf(entry.payloadMode),
    host,
    signature: request.signature,
    previousSignature: request.previousSignature,
    bodyDigest: digestOf(request.body),
    requestHeaders: null,
    requestBody: null,
  };
}
