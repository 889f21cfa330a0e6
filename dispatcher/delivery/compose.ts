import { hmacSha256Hex } from "../../src/lib/secrets.ts";
import {
  composeBody,
  payloadFormatNumberOf,
  digestOf,
  type EventPlace,
  framed,
  requestHeaders,
  standardTimestamp,
} from "../../src/outbox/payload-format.ts";
import {
  headerNamesOf,
  hiddenHeaders,
  hiding,
  type OwnHeaders,
} from "../../src/outbox/own-headers.ts";
import type { EventFacts } from "../../src/outbox/event.ts";
import { TEST_MARK, testFactsOf } from "../../src/outbox/test-event.ts";
import type { Decision } from "../actor/decide.ts";
import type { Entry, Subscription } from "../actor/event.ts";
import type { AttemptRecord } from "../store/attempt-queries.ts";
import type { DeliveryRequest, PostResult } from "./deliver.ts";

/** A signed request, with the values that its attempt record stores. */
export interface SignedRequest extends DeliveryRequest {
  readonly body: string;
  /** The signature as hex digits. */
  readonly signature: string;
  readonly previousSignature: string | null;
  /** The HMACs of `webhook-signature` as hex digits; null without the headers of Standard Webhooks. */
  readonly standardSignatures: string | null;
  readonly place: EventPlace | null;
  /** The subscription's own headers, which are recorded by name alone (contract 7.13); null without any. */
  readonly hidden: OwnHeaders | null;
}

/**
 * Composes the signed POST of one attempt from the facts of its entry (contract 7.1). During the grace period of a
 * secret rotation the POST carries both signatures. Their keys are the UTF-8 bytes of the secrets as displayed, not the
 * bytes that the hex digits encode (contract 6.6).
 */
export function composeRequest(
  entry: Omit<Entry, "facts">,
  facts: EventFacts,
  subscription: Subscription,
  deliveredAt: Date,
): SignedRequest {
  const { isTest, payloadMode, event, eventId, attempt } = entry;
  const {
    webhookUrl: url,
    secret,
    previousSecret,
    standardWebhooks,
    headers: hidden,
  } = subscription;
  const body = composeBody(facts, payloadMode, deliveredAt);
  const signature = hmacSha256Hex(secret, body);
  const previousSignature = previousSecret === null ? null : hmacSha256Hex(previousSecret, body);
  const signed = { event, eventId, attempt, signature, previousSignature };
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
  const standard = standardWebhooks ? signStandard(eventId, body, deliveredAt, secrets) : null;
  const place = placeOf(entry, subscription);
  const own = requestHeaders({ ...signed, place, standard });
  const ours = isTest ? { ...own, ...TEST_MARK } : own;
  const headers = hidden === null ? ours : { ...ours, ...hidden };
  const standardSignatures = standard?.signatures ?? null;
  return { url, body, headers, hidden, signature, previousSignature, standardSignatures, place };
}

/**
 * Returns the number of the event, and that up to which every event is settled (contract 7.19); null if the request
 * does not carry them. With one lane, all entries before this one in the queue are settled, except held ones.
 */
function placeOf(
  { number, settledBefore }: Pick<Entry, "number" | "settledBefore">,
  { ordering, settledLimit }: Pick<Subscription, "ordering" | "settledLimit">,
): EventPlace | null {
  if (number === null || settledLimit === null) return null;
  const settled = ordering === "review" ? settledLimit : Math.min(settledBefore, settledLimit);
  return { number, settled };
}

/** Signs the event id, timestamp and body with each secret, as Standard Webhooks requires (contract 7.18). */
function signStandard(eventId: string, body: string, at: Date, secrets: readonly string[]) {
  const timestamp = standardTimestamp(at);
  const content = `${eventId}.${timestamp}.${body}`;
  return { timestamp, signatures: secrets.map((key) => hmacSha256Hex(key, content)).join("") };
}

/**
 * Returns the facts from which the body of an entry is composed: the recorded ones, or sample values for a test.
 * Undefined if the `review_history` row of the entry does not exist.
 */
export function factsOf(entry: Entry, partnerId: number): EventFacts | undefined {
  return entry.isTest ? testFactsOf(entry, partnerId) : entry.facts;
}

/** The facts of a POST that are known before its result. */
interface MadePost extends Pick<
  AttemptRecord,
  "id" | "shard" | "subscriptionId" | "erasures" | "startedAt" | "endedMs" | "possiblyRepeated"
> {
  readonly entry: Omit<Entry, "facts">;
  readonly host: string;
  readonly request: SignedRequest;
}

/** Makes the attempt record of a POST from the result of the POST and the decision about its entry. */
export function recordAttempt(
  { entry, host, request, ...made }: MadePost,
  result: PostResult,
  decision: Decision,
): AttemptRecord {
  const response = "statusCode" in result ? result : undefined;
  // The attempt record of an event has only the payload format, the host and the signatures, from which the exact
  // request can be reproduced. A test has no `review_history` row, so its attempt record contains the whole request.
  const { headers, hidden, body, signature, previousSignature, standardSignatures, place } =
    request;
  const headerNames = headerNamesOf(hidden);
  const { sequence, eventId, event, isTest, round, attempt, isLogged } = entry;
  const { payloadMode, batchJobId, recordedAt } = entry;
  return {
    ...made,
    sequence,
    eventId,
    event,
    round,
    attempt,
    isLogged,
    payloadMode,
    batchJobId,
    recordedAt,
    durationMs: result.durationMs,
    statusCode: response?.statusCode ?? null,
    errorCode: "errorCode" in result ? result.errorCode : null,
    tlsReason: (result.kind === "failed" && result.tlsReason) || null,
    payloadFormat: isTest ? null : payloadFormatNumberOf(entry.payloadMode),
    host: isTest ? null : host,
    signature: isTest ? null : signature,
    previousSignature: isTest ? null : previousSignature,
    bodyDigest: isTest ? null : digestOf(body),
    standardSignatures: isTest ? null : standardSignatures,
    sentNumber: place?.number ?? null,
    sentSettled: place?.settled ?? null,
    headerNames: isTest ? null : headerNames,
    requestHeaders: isTest
      ? framed(host, { ...headers, ...hiddenHeaders(headerNames) }, body)
      : null,
    requestBody: isTest ? body : null,
    ...recordedResponse(response, hidden),
    responseTruncated: response?.responseTruncated ?? false,
    resent: result.resent,
    decision,
  };
}

type Response = Extract<PostResult, { readonly statusCode: number }>;

/** Returns the fields of a response that are recorded, without values of the subscription's own headers. */
function recordedResponse(
  response: Response | undefined,
  hidden: OwnHeaders | null,
): Pick<AttemptRecord, "responseHeaders" | "responseExcerpt"> {
  if (response === undefined) return { responseHeaders: null, responseExcerpt: null };
  const { responseHeaders, responseExcerpt, responseTruncated } = response;
  if (hidden === null) return { responseHeaders, responseExcerpt };
  const hide = hiding(hidden);
  const fields = Object.entries(responseHeaders);
  return {
    responseHeaders: Object.fromEntries(fields.map(([name, text]) => [name, hide(text)])),
    responseExcerpt: hide(responseExcerpt, responseTruncated),
  };
}
