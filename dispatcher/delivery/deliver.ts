import type { Clock } from "../../src/lib/clock.ts";
import { checkWebhookUrl } from "../../src/lib/egress.ts";
import type { UrlCheck } from "../../src/lib/egress.ts";
import { remember } from "../../src/lib/remember.ts";
import type { HttpClient } from "../http/client.ts";
import { readExcerpt } from "../http/excerpt.ts";
import type { Excerpt } from "../http/excerpt.ts";
import type { TransportErrorCode } from "../http/ending.ts";
import type { ExchangeResult, Leave } from "../http/exchange.ts";

export interface DeliveryRequest {
  readonly url: string;
  /** Complete but for `Host` and `Content-Length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact bytes that were signed, or the text whose UTF-8 was. */
  readonly body: string | Uint8Array;
}

type DeliveryErrorCode = Exclude<TransportErrorCode, "proxy" | "local"> | "invalid_url";

interface Measured {
  readonly durationMs: number;
  /** Sent a second time within this attempt, because a kept connection had died unanswered. */
  readonly resent: boolean;
}

interface Answered extends Measured {
  readonly statusCode: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseExcerpt: string;
  /** The excerpt is not the whole body. */
  readonly responseTruncated: boolean;
}

/**
 * What became of one attempt (contract 7.5). Three are no failures of the receiver. `aborted` is our own doing, and so
 * is `withheld`, of which not a byte has left; in `unsent` our proxy is not there or refuses us, or this machine has no
 * descriptor for a connection.
 */
export type PostOutcome =
  | ({ readonly kind: "accepted" } & Answered)
  | ({ readonly kind: "gone"; readonly errorCode: "http_status" } & Answered)
  | ({ readonly kind: "rejected"; readonly errorCode: "http_status" } & Answered)
  | ({
      readonly kind: "failed";
      readonly errorCode: DeliveryErrorCode;
      readonly detail: string;
      /** Whether the request left. */
      readonly reached: boolean;
    } & Measured)
  | ({ readonly kind: "unsent"; readonly detail: string } & Measured)
  | ({ readonly kind: "withheld" } & Measured)
  | ({ readonly kind: "aborted" } & Measured);

/** Makes one POST, if it may. Whatever the receiver does is an outcome, and never thrown. */
export type Deliver = (request: DeliveryRequest, leave?: Leave) => Promise<PostOutcome>;

/** How many URLs are kept checked (our choice). */
const MAX_URLS_KEPT = 10_000;

interface DeliverDeps {
  readonly clock: Clock;
  readonly client: HttpClient;
}

export function createDeliver(deps: DeliverDeps): Deliver {
  // The verdict on the form of a URL never changes within a process; its addresses are checked at each connection.
  const check = remember((url: string) => checkWebhookUrl(url, deps.client.policy), MAX_URLS_KEPT);
  return (request, leave) => deliverTo(deps, check(request.url), request, leave);
}

async function deliverTo(
  deps: DeliverDeps,
  check: UrlCheck,
  request: DeliveryRequest,
  leave: Leave | undefined,
): Promise<PostOutcome> {
  const { clock, client } = deps;
  const startedMs = clock.monotonicMs();
  if (check.kind === "refused") {
    const { code: errorCode, reason: detail } = check;
    return { kind: "failed", errorCode, detail, reached: false, durationMs: 0, resent: false };
  }
  const result = await client.post(check.target, request, leave);
  const measured = {
    durationMs: Math.round(clock.monotonicMs() - startedMs),
    resent: result.resent,
  };
  if (result.kind === "aborted" || result.kind === "withheld")
    return { kind: result.kind, ...measured };
  if (result.kind === "failed") {
    const { errorCode, detail, reached } = result;
    return errorCode === "proxy" || errorCode === "local"
      ? { kind: "unsent", detail, ...measured }
      : { kind: "failed", errorCode, detail, reached, ...measured };
  }
  const excerpt = await readExcerpt(result.body, result.headers);
  return judgeAnswer(result, excerpt, measured);
}

function judgeAnswer(
  { statusCode, headers }: ExchangeResult & { kind: "answered" },
  excerpt: Excerpt,
  { durationMs, resent }: Measured,
): PostOutcome {
  const answered: Answered = {
    durationMs,
    resent,
    statusCode,
    responseHeaders: headers,
    responseExcerpt: excerpt.text,
    responseTruncated: excerpt.truncated,
  };
  if (statusCode >= 200 && statusCode < 300) return { kind: "accepted", ...answered };
  if (statusCode === 410) return { kind: "gone", errorCode: "http_status", ...answered };
  // A redirect is a rejection too, because none is followed.
  return { kind: "rejected", errorCode: "http_status", ...answered };
}
