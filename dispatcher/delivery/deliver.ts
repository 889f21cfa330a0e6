import type { Clock } from "../../src/lib/clock.ts";
import { checkWebhookUrl } from "../../src/lib/egress.ts";
import { memoize } from "../../src/lib/memoize.ts";
import type { ExchangeResult, HttpClient, PostControl } from "../http/client.ts";
import type { OwnPart } from "../http/failure.ts";
import { readExcerpt } from "../http/excerpt.ts";

export interface DeliveryRequest {
  readonly url: string;
  /** All headers of the request except `Host` and `Content-Length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The signed body: bytes, or the text that was signed as UTF-8. */
  readonly body: string | Uint8Array;
}

interface MeasuredResult {
  readonly durationMs: number;
  /**
   * True if the request was sent a second time within this attempt, because a reused connection had died without a
   * response.
   */
  readonly resent: boolean;
  /** The parts of our own that the attempt has shown to work. */
  readonly works?: readonly OwnPart[] | undefined;
}

interface AnsweredResult extends MeasuredResult {
  readonly statusCode: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseExcerpt: string;
  /** True if the excerpt of the response is shorter than the response body. */
  readonly responseTruncated: boolean;
}

/** The result of one attempt (contract 7.5). `unsent`, `withheld` and `aborted` are no failures of the receiver. */
export type PostResult =
  | ({ readonly kind: "accepted" } & AnsweredResult)
  | ({ readonly kind: "gone" | "rejected"; readonly errorCode: "http_status" } & AnsweredResult)
  | (Exclude<ExchangeResult, { readonly kind: "answered" }> & MeasuredResult);

/** Makes one POST unless `mayBegin` forbids it. Every behaviour of the receiver is a result and never throws. */
export type Deliver = (request: DeliveryRequest, control?: PostControl) => Promise<PostResult>;

/** The most URLs that are remembered as checked (our choice). */
const MAX_URLS_KEPT = 10_000;

export function createDeliver({ clock, client }: { clock: Clock; client: HttpClient }): Deliver {
  // The syntax of a URL is checked once per process. The addresses of its host are checked whenever a connection to it
  // is made.
  const { policy } = client.settings;
  const check = memoize((url: string) => checkWebhookUrl(url, policy), MAX_URLS_KEPT);
  return async (request, control) => {
    const startedMs = clock.monotonicMs();
    const checked = check(request.url);
    if (checked.kind === "refused") {
      const { code: errorCode, reason: detail } = checked;
      return { kind: "failed", errorCode, detail, durationMs: 0, resent: false };
    }
    const result = await client.post(checked.target, request, control);
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    if (result.kind !== "answered") return { ...result, durationMs };
    const { statusCode, headers, body, resent, works } = result;
    const excerpt = await readExcerpt(body, headers);
    const answered: AnsweredResult = {
      durationMs,
      resent,
      works,
      statusCode,
      responseHeaders: headers,
      responseExcerpt: excerpt.text,
      responseTruncated: excerpt.truncated,
    };
    if (statusCode >= 200 && statusCode < 300) return { kind: "accepted", ...answered };
    // A redirect is a rejection, too, because redirects are not followed.
    const kind = statusCode === 410 ? "gone" : "rejected";
    return { kind, errorCode: "http_status", ...answered };
  };
}
