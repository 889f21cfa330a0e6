import type { Decision } from "./decide.ts";
import type { Outcome } from "./deliver.ts";

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

/** What a record says of the receiver. */
export function answerOf(outcome: Outcome) {
  const answered = "statusCode" in outcome;
  return {
    durationMs: outcome.durationMs,
    statusCode: answered ? outcome.statusCode : null,
    errorCode: "errorCode" in outcome ? outcome.errorCode : null,
    responseHeaders: answered ? outcome.responseHeaders : null,
    responseExcerpt: answered ? outcome.responseExcerpt : null,
    responseTruncated: answered && outcome.responseTruncated,
    resent: outcome.resent,
  };
}
