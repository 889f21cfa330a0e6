import { tlsWords } from "../../../../../outbox/tls-reason.ts";
import type { Outcome } from "../data/filters.ts";
import type { Attempt, Delivery } from "../data/reads.ts";

/** Maximum number of delivery attempts in one round (contract 7.7). */
export const ATTEMPTS = 4;

export const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  delivered: "Delivered",
  retry: "Retrying",
  failed: "Failed",
  interrupted: "Interrupted",
};

/** Maps the state of a delivery to an explanation with the next step. */
export const STATE_WORDS: Readonly<Record<Delivery["state"], string>> = {
  pending: "Queued. It is sent as soon as the events before it are done.",
  waiting: "An attempt failed. The next one follows automatically.",
  held: "The subscription is disabled. The event is held until it is enabled.",
  delivered: "Your endpoint accepted it.",
  failed: "All attempts failed, and no more follow. Resend it to try again.",
  skipped: "Removed from the queue without being sent. Resend it to send it after all.",
};

interface Diagnosis {
  /** Result of the attempt in a few words, short enough for a table row. */
  readonly title: string;
  /** Advice for the operator of the receiving endpoint. */
  readonly advice: string;
}

type AttemptResult = Pick<Attempt, "outcome" | "status_code" | "error_code" | "tls_reason">;

const BY_CODE: Readonly<Record<string, Diagnosis>> = {
  timeout: {
    title: "No answer in time",
    advice:
      "Your endpoint has 15 seconds for connection, request and answer. Answer with a 2xx first and do the work afterwards.",
  },
  dns: {
    title: "The host name has no address",
    advice:
      "Check the spelling of the URL, and that its DNS record is published to the whole Internet.",
  },
  connect: {
    title: "No connection",
    advice:
      "Nothing listens at that host and port, or a firewall drops us. Try the URL from a machine outside your network.",
  },
  tls: {
    title: "No secure connection",
    advice:
      "Check that the certificate is valid, names this host, and is sent with its whole chain.",
  },
  blocked_address: {
    title: "The address is not public",
    advice:
      "The host name leads to a private, loopback or metadata address, and we never connect to these. Point it to a public address.",
  },
  invalid_url: {
    title: "The URL cannot be called",
    advice: "Correct the URL in the settings of the subscription.",
  },
  proxy: {
    title: "Our proxy did not connect",
    advice:
      "The fault is on our side of the connection, or the host cannot be reached through it. If it lasts, tell us the event id.",
  },
  reset: {
    title: "The connection was cut",
    advice:
      "Your server, or something before it, closed the connection before it answered. Look for crashes and limits in its log.",
  },
  protocol: {
    title: "The answer was not HTTP",
    advice:
      "What came back could not be read as an HTTP/1.1 answer, or its headers were larger than 16 KiB. Check that the port speaks HTTP.",
  },
};

const INTERRUPTED: Diagnosis = {
  title: "Interrupted by us",
  advice:
    "We were restarted during this attempt, and cannot know whether you got it. It is sent again under the same X-SVC-Delivery and does not count as a failure.",
};

/** Explains the result of a delivery attempt. */
export function diagnosisOf({
  outcome,
  status_code: status,
  error_code: code,
  tls_reason: reason,
}: AttemptResult): Diagnosis {
  if (outcome === "delivered") return { title: `HTTP ${status ?? "2xx"}`, advice: "" };
  if (outcome === "interrupted") return INTERRUPTED;
  if (status !== null) return { title: `HTTP ${status}`, advice: adviceOnStatus(status) };
  return (
    tlsWords(reason) ??
    BY_CODE[code ?? ""] ?? {
      title: code === null ? "Not delivered" : `Not delivered (${code})`,
      advice:
        "Look into the log of your endpoint at this time. If nothing is there, tell us the event id.",
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
    return "Your endpoint refused us. If it checks the signature, compare its secret with the one in the settings; otherwise let the path through without a login.";
  if (status === 404 || status === 405)
    return "The host is right, but nothing takes a POST at this path. Check the path of the URL.";
  if (status === 410)
    return "410 says that the endpoint is gone for good, so the event was given up at once. If it is not gone, answer with another status.";
  if (status === 413)
    return "Your server limits the size of bodies. Raise the limit for this path.";
  if (status === 429)
    return "Your endpoint limits how often it may be called. Let our requests through; the time of the next attempt does not depend on Retry-After.";
  if (status >= 500) return "Your server returned an error. Check its logs around this time.";
  return "Only a 2xx counts as delivered. The answer below may say what was wrong.";
}

/** Headers of an HTTP message. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Headers that are left out of the curl command, because curl sets them itself. */
const OWN = ["host", "content-length", "connection", "accept-encoding"];

/**
 * Formats a webhook request as a curl command. The command contains the signature, which is valid only for this
 * body, but not the signing secret.
 */
export function asCurl(url: string, headers: Headers, body: string): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => {
    if (OWN.includes(name.toLowerCase())) return [];
    const values = typeof value === "string" ? [value] : value;
    return values.map((one) => `  -H ${quoted(`${name}: ${one}`)} \\`);
  });
  return [
    "# The signature is that of this attempt. For another body, with your secret in the place of SECRET:",
    "# printf '%s' \"$BODY\" | openssl dgst -sha256 -hmac SECRET",
    `curl -X POST ${quoted(url)} \\`,
    ...lines,
    `  --data-raw ${quoted(body)}`,
  ].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
