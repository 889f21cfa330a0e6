import { tlsWords } from "../../../../../outbox/tls-reason.ts";
import type { Outcome } from "../data/filters.ts";
import type { Attempt, Delivery } from "../data/reads.ts";

/** Maximum number of delivery attempts in one round (contract 7.7). */
export const ATTEMPTS = 4;

/** Words for the outcome of an attempt. Whether a failed one is retried is a state of its event. */
export const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  delivered: "Delivered",
  retry: "Failed",
  failed: "Failed",
  interrupted: "Interrupted",
};

/** Maps the state of a delivery to an explanation with the next step. */
const STATE_WORDS: Readonly<Record<Delivery["state"], string>> = {
  pending: "It is sent as soon as the events before it are settled.",
  waiting: "An attempt failed. It is retried automatically.",
  held: "The subscription is disabled. The event is held until it is enabled.",
  delivered: "The endpoint accepted the event.",
  failed: "All attempts failed, and there are no more retries. Resend the event to try again.",
  skipped: "Removed from the queue without being sent. To send the event, resend it.",
};

interface Place {
  readonly isTest: boolean;
  /** True if the result of this test decides whether the subscription is enabled. */
  readonly isDeciding: boolean;
  readonly isByReview: boolean;
}

/** Explains the state of a delivery, with the next step. */
export function stateWords(
  state: Delivery["state"],
  { isTest, isDeciding, isByReview }: Place,
): string {
  if (isDeciding) return "It is sent once. A 2xx response enables the subscription.";
  if (state !== "pending") return STATE_WORDS[state];
  if (isTest) return "A test is sent at once, whatever else is queued.";
  if (isByReview) return "It is sent as soon as earlier events of its review are settled.";
  return STATE_WORDS.pending;
}

interface Diagnosis {
  /** Result of the attempt in a few words, short enough for a table row. */
  readonly title: string;
  /** Advice for the operator of the receiving endpoint. */
  readonly advice: string;
}

type AttemptResult = Pick<Attempt, "outcome" | "status_code" | "error_code" | "tls_reason">;

const DIAGNOSIS_BY_CODE: Readonly<Record<string, Diagnosis>> = {
  timeout: {
    title: "No response in time",
    advice:
      "Connection, request and response may take 15 seconds in all. Return a 2xx status first and process the event afterwards.",
  },
  dns: {
    title: "The host name has no address",
    advice: "Check the spelling of the URL, and that its DNS record is public.",
  },
  connect: {
    title: "No connection",
    advice:
      "No server listens at this host and port, or a firewall blocks our requests. Test the URL from a machine outside its network.",
  },
  tls: {
    title: "No secure connection",
    advice:
      "Check that the certificate is valid, names this host, and is sent with its whole chain.",
  },
  blocked_address: {
    title: "The address is not public",
    advice:
      "The host name resolves to a private, loopback or metadata address, to which we never connect. Point it to a public address.",
  },
  invalid_url: {
    title: "The URL cannot be called",
    advice: "Correct the URL in the settings of the subscription.",
  },
  proxy: {
    title: "Our proxy did not connect",
    advice:
      "Our proxy failed, or cannot reach the host. If the problem persists, contact support with the event ID.",
  },
  reset: {
    title: "The connection was closed",
    advice:
      "The server, or a proxy in front of it, closed the connection before it sent a response. Check its logs for crashes and limits.",
  },
  protocol: {
    title: "The response was not HTTP",
    advice:
      "The response was not valid HTTP/1.1, or its headers were larger than 16 KiB. Check that the URL has the port of an HTTP server.",
  },
};

const INTERRUPTED_DIAGNOSIS: Diagnosis = {
  title: "Interrupted by us",
  advice:
    "Our service restarted during this attempt, so we do not know whether the endpoint received the event. It is sent again with the same X-SVC-Delivery. The attempt does not count as a failure.",
};

/** Explains the result of a delivery attempt. */
export function diagnosisOf({
  outcome,
  status_code: status,
  error_code: code,
  tls_reason: reason,
}: AttemptResult): Diagnosis {
  if (outcome === "delivered") return { title: `HTTP ${status ?? "2xx"}`, advice: "" };
  if (outcome === "interrupted") return INTERRUPTED_DIAGNOSIS;
  if (status !== null) return { title: `HTTP ${status}`, advice: adviceOnStatus(status) };
  return (
    tlsWords(reason) ??
    DIAGNOSIS_BY_CODE[code ?? ""] ?? {
      title: code === null ? "Not delivered" : `Not delivered (${code})`,
      advice:
        "Check the logs of the endpoint around this time. If they show no request, contact support with the event ID.",
    }
  );
}

/** Returns the result of an attempt as a part of a sentence. */
export function phraseOf(result: AttemptResult): string {
  const { title } = diagnosisOf(result);
  return title.startsWith("HTTP") ? title : title.charAt(0).toLowerCase() + title.slice(1);
}

function adviceOnStatus(status: number): string {
  if (status >= 300 && status < 400)
    return "Redirects are not followed. Enter the final address in the settings.";
  if (status === 401 || status === 403)
    return "The endpoint rejected the request. If it verifies the signature, compare its secret with the one in the settings. Otherwise allow requests to this path without a login.";
  if (status === 404 || status === 405)
    return "The host responds, but does not accept POST requests at this path. Check the path of the URL.";
  if (status === 410)
    return "Status 410 means that the endpoint is permanently gone, so the event is not retried. If the endpoint still exists, return another status.";
  if (status === 413) return "The server limits the size of bodies. Raise the limit for this path.";
  if (status === 429)
    return "The endpoint limits how often it may be called. Raise the limit for our requests. We do not follow Retry-After.";
  if (status >= 500) return "The endpoint returned an error. Check its logs around this time.";
  return "Only a 2xx status counts as delivered. The response below may show the reason.";
}

/** Headers of an HTTP message. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** What the API shows in place of the value of a subscription's own header (contract 7.13). */
export const HIDDEN = "(hidden)";

/** Headers that are left out of the curl command, because curl sets them itself. */
const CURL_HEADERS = ["host", "content-length", "connection", "accept-encoding"];

/**
 * Formats a webhook request as a curl command. The command contains the signature, which is valid only for this
 * body, but not the signing secret.
 */
export function asCurl(url: string, headers: Headers, body: string): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => {
    if (CURL_HEADERS.includes(name.toLowerCase())) return [];
    const values = typeof value === "string" ? [value] : value;
    return values.map((one) => `  -H ${shellQuoted(`${name}: ${one}`)} \\`);
  });
  return [
    "# The signature is that of this attempt. For another body, with your secret in the place of SECRET:",
    "# printf '%s' \"$BODY\" | openssl dgst -sha256 -hmac SECRET",
    ...(Object.values(headers).includes(HIDDEN)
      ? [`# Replace each ${HIDDEN} by the value of your own header.`]
      : []),
    `curl -X POST ${shellQuoted(url)} \\`,
    ...lines,
    `  --data-raw ${shellQuoted(body)}`,
  ].join("\n");
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
