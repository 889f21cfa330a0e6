import type { Decision } from "../actor/decide.ts";
import type { DeliveryRequest, Outcome } from "../delivery/deliver.ts";
import type { Entry } from "../actor/entry.ts";

/** One POST and what it means for its entry: everything that one commit writes about it. */
export interface AttemptRecord {
  readonly id: string;
  readonly shard: number;
  readonly subscriptionId: string;
  readonly sequence: number;
  readonly eventId: string;
  readonly event: string;
  readonly round: number;
  readonly attempt: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  readonly responseExcerpt: string | null;
  readonly responseTruncated: boolean;
  /** Sent twice within this attempt: the first went into a connection that had died. */
  readonly resent: boolean;
  readonly decision: Decision;
}

/** A POST as it was made. */
interface Posted {
  readonly entry: Entry;
  readonly host: string;
  readonly startedAt: Date;
  readonly request: DeliveryRequest & { readonly body: string };
}

type Identity = Pick<AttemptRecord, "id" | "shard" | "subscriptionId">;

/** What a commit writes about a POST that ended so. */
export function recordAttempt(
  { id, shard, subscriptionId }: Identity,
  { entry, host, startedAt, request }: Posted,
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
    decision,
  };
}
