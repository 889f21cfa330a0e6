import type { Clock } from "../../src/lib/clock.ts";
import { checkWebhookUrl } from "../../src/lib/egress.ts";
import { remember } from "../../src/lib/batches.ts";
import type { ExchangeResult, HttpClient, PostControl } from "../http/client.ts";
import { readExcerpt } from "../http/excerpt.ts";

export interface DeliveryRequest {
  readonly url: string;
  /** All headers of the request except `Host` and `Content-Length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The signed body: bytes, or the text that was signed as UTF-8. */
  readonly body: string | Uint8Array;
}

interface Measured {
  readonly durationMs: number;
  /**
   * True if the request was sent a second time within this attempt, because a reused connection had died without a
   * response.
   */
  readonly resent: boolean;
}

interface Answered extends Measured {
  readonly statusCode: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseExcerpt: string;
  /** True if the excerpt of the response is shorter than the response body. */
  readonly responseTruncated: boolean;
}

/** The result of one attempt (contract 7.5). `unsent`, `withheld` and `aborted` are no failures of the receiver. */
export type PostResult =
  | ({ readonly kind: "accepted" } & Answered)
  | ({ readonly kind: "gone" | "rejected"; readonly errorCode: "http_status" } & Answered)
  | (Exclude<ExchangeResult, { readonly kind: "answered" }> & Measured);

/** Makes one POST unless `mayBegin` forbids it. Every behaviour of the receiver is a result and never throws. */
export type Deliver = (request: DeliveryRequest, control?: PostControl) => Promise<PostResult>;

/** The most URLs that are remembered as checked (our choice). */
const MAX_URLS_KEPT = 10_000;

export function createDeliver({ clock, client }: { clock: Clock; client: HttpClient }): Deliver {
  // The syntax of a URL is checked once per process. The addresses of its host are checked at each connection.
  const { policy } = client.settings;
  const check = remember((url: string) => checkWebhookUrl(url, policy), MAX_URLS_KEPT);
  return async (request, control) => {
    const startedMs = clock.monotonicMs();
    const checked = check(request.url);
    if (checked.kind === "refused") {
      const { code: errorCode, reason: detail } = checked;
      return { kind: "failed", errorCode, detail, reached: false, durationMs: 0, resent: false };
    }
    const result = await client.post(checked.target, request, control);
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    if (result.kind !== "answered") return { ...result, durationMs };
    const { statusCode, headers, body, resent } = result;
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
    // A redirect is a rejection, too, because redirects are not followed.
    const kind = statusCode === 410 ? "gone" : "rejected";
    return { kind, errorCode: "http_status", ...answered };
  };
}

/** The time in milliseconds for which an attempt is evidence about our own network. */
const WINDOW_MS = 10_000;
const MIN_HOSTS = 20;
const MIN_PARTNERS = 10;

/**
 * Whether our own network or resolver fails (contract 7.8). The state begins when more than half of at least 20 hosts
 * of at least 10 partners cannot be reached. It lasts while more than half cannot be reached, however few are tried.
 * `unreached` counts the hosts that the last attempt did not reach.
 */
export function isOurNetwork(
  lasts: boolean,
  { hosts, partners, unreached }: Record<"hosts" | "partners" | "unreached", number>,
): boolean {
  const isMost = 2 * unreached > hosts;
  return isMost && (lasts || (hosts >= MIN_HOSTS && partners >= MIN_PARTNERS));
}

const BEFORE_CONNECTION: ReadonlySet<string> = new Set(["dns", "connect", "tls", "timeout"]);

/**
 * Whether an attempt failed before the request was sent, which may be the fault of our own network. A later failure
 * is about the receiver.
 */
export function isUnreached(result: PostResult): boolean {
  return result.kind === "failed" && !result.reached && BEFORE_CONNECTION.has(result.errorCode);
}

interface Seen {
  readonly atMs: number;
  readonly partnerId: number;
  readonly unreached: boolean;
}

/** Remembers for each host of the last 10 s whether its last attempt reached it. */
export class Reach {
  /** The last attempt to each host, oldest first. */
  readonly #seen = new Map<string, Seen>();
  #unreached = 0;
  isOurs = false;

  /** Notes an attempt and returns whether our own network fails now. */
  note(host: string, seen: Seen): boolean {
    this.#forget(host);
    for (const [oldest, { atMs }] of this.#seen) {
      if (seen.atMs - atMs < WINDOW_MS) break;
      this.#forget(oldest);
    }
    this.#seen.set(host, seen);
    if (seen.unreached) this.#unreached += 1;
    const hosts = this.#seen.size;
    const mayBegin = seen.unreached && !this.isOurs && 2 * this.#unreached > hosts;
    const partners = mayBegin ? new Set(this.#seen.values().map((one) => one.partnerId)).size : 0;
    this.isOurs = isOurNetwork(this.isOurs, { hosts, partners, unreached: this.#unreached });
    return this.isOurs;
  }

  #forget(host: string): void {
    if (this.#seen.get(host)?.unreached === true) this.#unreached -= 1;
    this.#seen.delete(host);
  }
}
