import type { Clock } from "../../src/lib/clock.ts";
import { checkWebhookUrl } from "../../src/lib/egress.ts";
import { remember } from "../../src/lib/remember.ts";
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
export type PostResult =
  | ({ readonly kind: "accepted" } & Answered)
  | ({ readonly kind: "gone" | "rejected"; readonly errorCode: "http_status" } & Answered)
  | (Exclude<ExchangeResult, { readonly kind: "answered" }> & Measured);

/** Makes one POST, if it may. Whatever the receiver does is an outcome, and never thrown. */
export type Deliver = (request: DeliveryRequest, leave?: Leave) => Promise<PostResult>;

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
): Promise<PostResult> {
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

/** For how long an attempt says something about our own network. */
const WINDOW_MS = 10_000;
const MIN_HOSTS = 20;
const MIN_PARTNERS = 10;

/**
 * Whether it is our own network or resolver that fails (contract 7.8): it begins when more than half of many hosts of
 * many partners cannot be reached, and lasts while more than half cannot, however few are tried. `unreached` counts those
 * of the hosts that could not be reached when they were last tried.
 */
export function isOurNetwork(
  lasts: boolean,
  { hosts, partners, unreached }: Record<"hosts" | "partners" | "unreached", number>,
): boolean {
  const isMost = 2 * unreached > hosts;
  return isMost && (lasts || (hosts >= MIN_HOSTS && partners >= MIN_PARTNERS));
}

const BEFORE_CONNECTION: ReadonlySet<string> = new Set(["dns", "connect", "tls", "timeout"]);

/** Whether an attempt failed before the request left; what comes later is about the receiver. */
export function isUnreached(outcome: PostResult): boolean {
  return outcome.kind === "failed" && !outcome.reached && BEFORE_CONNECTION.has(outcome.errorCode);
}

interface Seen {
  readonly atMs: number;
  readonly partnerId: number;
  readonly unreached: boolean;
}

/** Remembers how the hosts were reached that were tried within the window. */
export class Reach {
  /** By host; the latest stands last. */
  readonly #seen = new Map<string, Seen>();
  #unreached = 0;
  isOurs = false;

  /** Notes an attempt, and answers whether our own network fails now. */
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
    const partners = mayBegin ? this.#countPartners() : 0;
    this.isOurs = isOurNetwork(this.isOurs, { hosts, partners, unreached: this.#unreached });
    return this.isOurs;
  }

  /** No further than it matters. */
  #countPartners(): number {
    const partners = new Set<number>();
    for (const { partnerId } of this.#seen.values()) {
      partners.add(partnerId);
      if (partners.size >= MIN_PARTNERS) break;
    }
    return partners.size;
  }

  #forget(host: string): void {
    if (this.#seen.get(host)?.unreached === true) this.#unreached -= 1;
    this.#seen.delete(host);
  }
}
