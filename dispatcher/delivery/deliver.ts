import type { Clock } from "../../src/lib/clock.ts";
import { checkWebhookUrl } from "../../src/lib/egress.ts";
import { remember } from "../../src/lib/batches.ts";
import type { ExchangeResult, HttpClient, Leave } from "../http/client.ts";
import { readExcerpt } from "../http/excerpt.ts";

export interface DeliveryRequest {
  readonly url: string;
  /** Complete but for `Host` and `Content-Length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact bytes that were signed, or the text whose UTF-8 was. */
  readonly body: string | Uint8Array;
}

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

/** What became of one attempt (contract 7.5). `unsent`, `withheld` and `aborted` are no failures of the receiver. */
export type PostOutcome =
  | ({ readonly kind: "accepted" } & Answered)
  | ({ readonly kind: "gone" | "rejected"; readonly errorCode: "http_status" } & Answered)
  | (Exclude<ExchangeResult, { readonly kind: "answered" }> & Measured);

/** Makes one POST, if it may. Whatever the receiver does is an outcome, and never thrown. */
export type Deliver = (request: DeliveryRequest, leave?: Leave) => Promise<PostOutcome>;

/** How many URLs are kept checked (our choice). */
const MAX_URLS_KEPT = 10_000;

interface DeliverDeps {
  readonly clock: Clock;
  readonly client: HttpClient;
}

export function createDeliver({ clock, client }: DeliverDeps): Deliver {
  // The verdict on the form of a URL never changes within a process; its addresses are checked at each connection.
  const check = remember(
    (url: string) => checkWebhookUrl(url, client.settings.policy),
    MAX_URLS_KEPT,
  );
  return async (request, leave) => {
    const startedMs = clock.monotonicMs();
    const checked = check(request.url);
    if (checked.kind === "refused") {
      const { code: errorCode, reason: detail } = checked;
      return { kind: "failed", errorCode, detail, reached: false, durationMs: 0, resent: false };
    }
    const result = await client.post(checked.target, request, leave);
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    if (result.kind === "answered") return judgeAnswer(result, durationMs);
    return { ...result, durationMs };
  };
}

async function judgeAnswer(
  { statusCode, headers, body, resent }: ExchangeResult & { kind: "answered" },
  durationMs: number,
): Promise<PostOutcome> {
  const excerpt = await readExcerpt(body, headers);
  const answered: Answered = {
    durationMs,
    resent,
    statusCode,
    responseHeaders: headers,
    responseExcerpt: excerpt.text,
    responseTruncated: excerpt.truncated,
  };
  if (statusCode >= 200 && statusCode < 300) return { kind: "accepted", ...answered };
  // A redirect is a rejection too, because none is followed.
  const kind = statusCode === 410 ? "gone" : "rejected";
  return { kind, errorCode: "http_status", ...answered };
}
