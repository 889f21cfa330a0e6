import type { Decision } from "../actor/decide.ts";

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
  /** The request was sent twice within this attempt: the first time into a connection that had died. */
  readonly resent: boolean;
  readonly decision: Decision;
}
