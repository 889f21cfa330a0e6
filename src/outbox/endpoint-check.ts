// The check of an endpoint (contract 6.23): its requests, and the judgement of the answers. A dispatcher and the command
// `reviewrelay check` send the requests. The command runs on Node, so this file uses nothing of Bun.
import { createHmac } from "node:crypto";

import { addMs } from "../lib/clock.ts";
import { newSecret } from "../lib/secrets.ts";
import type { Finding, FindingCode } from "./check-findings.ts";
import { type PayloadMode, TEST_EVENT } from "./event.ts";
import type { OwnHeaders } from "./own-headers.ts";
import { composeBody, requestHeaders, standardTimestamp } from "./payload-format.ts";
import { TEST_MARK, testFactsOf } from "./test-event.ts";
import type { TlsReason } from "./tls-reason.ts";

/** The time in ms that an answer may take without a warning. */
export const MARGIN_MS = 5_000;
/** The time in ms for which a certificate must still be valid. */
const VALIDITY_MS = 30 * 86_400_000;
/** The age in ms of the delivery with an old timestamp. The guide tells receivers to refuse five minutes. */
const OLD_MS = 600_000;

/** The settings of an endpoint, by which its deliveries are composed. */
export interface CheckedEndpoint {
  readonly partnerId: number;
  readonly webhookUrl: string;
  readonly payloadMode: PayloadMode;
  readonly standardWebhooks: boolean;
  readonly secret: string;
  /** The previous secret during the grace period of a rotation; otherwise null. */
  readonly previousSecret: string | null;
  readonly headers: OwnHeaders | null;
}

export interface CheckRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The answer to one request, or its failure. */
export interface CheckAnswer {
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly tlsReason: TlsReason | null;
  readonly durationMs: number;
  /** The end of the validity of the certificate; null without TLS. */
  readonly certificateEndsAt: Date | null;
}

interface CheckDeps {
  readonly now: () => Date;
  readonly newUlid: (ms: number) => string;
  /** Sends one request. Returns undefined to end the check without a result. */
  readonly send: (request: CheckRequest) => Promise<CheckAnswer | undefined>;
}

type Probe = Exclude<
  FindingCode,
  | "connection"
  | "tls"
  | "certificate_expiry"
  | "redirect"
  | "response_time"
  | "response_margin"
  | "rate_limit"
>;
type Answers = ReadonlyMap<Probe, CheckAnswer>;

/** The requests that a receiver must refuse. */
const FORGED: readonly Probe[] = ["changed_byte", "foreign_secret", "old_timestamp"];

/** Returns the requests of a check in their order. Each decides the finding with its name. */
function probesOf({ standardWebhooks, previousSecret }: CheckedEndpoint): Probe[] {
  return [
    "valid_signature",
    "repeat",
    "changed_byte",
    "foreign_secret",
    ...(standardWebhooks ? (["old_timestamp"] as const) : []),
    ...(previousSecret === null ? [] : (["deployed_secret"] as const)),
    "previous_signature",
    "current_signature",
    "unknown_field",
    "charset",
  ];
}

/**
 * Checks an endpoint with at most ten requests, one after the other. After a valid delivery that is not answered 2xx it
 * sends no more. Returns undefined if `send` has ended the check.
 */
export async function checkEndpoint(
  endpoint: CheckedEndpoint,
  { now, newUlid, send }: CheckDeps,
): Promise<Finding[] | undefined> {
  const answers = new Map<Probe, CheckAnswer>();
  const foreign = newSecret();
  const firstAt = now();
  const first = { eventId: newUlid(firstAt.getTime()), recordedAt: firstAt };
  for (const probe of probesOf(endpoint)) {
    if (answers.size > 0 && !isAccepted(answers.get("valid_signature"))) break;
    const at = now();
    const deliveredAt = probe === "old_timestamp" ? addMs(at, -OLD_MS) : at;
    const isFirst = probe === "valid_signature" || probe === "repeat";
    const event = isFirst ? first : { eventId: newUlid(at.getTime()), recordedAt: deliveredAt };
    const secrets = secretsOf(probe, { endpoint, answers, foreign });
    const answer = await send(requestOf(probe, endpoint, { ...event, secrets, deliveredAt }));
    if (answer === undefined) return undefined;
    answers.set(probe, answer);
  }
  return judge(endpoint, answers, now());
}

/** Returns the secrets that sign a request, the current one first. */
function secretsOf(
  probe: Probe,
  {
    endpoint: { secret, previousSecret },
    answers,
    foreign,
  }: { readonly endpoint: CheckedEndpoint; readonly answers: Answers; readonly foreign: string },
): readonly string[] {
  const current = previousSecret === null ? [secret] : [secret, previousSecret];
  // A receiver that refuses the new secret alone has accepted the valid delivery by its previous secret.
  const deployed = answers.get("deployed_secret");
  const held =
    previousSecret !== null && deployed !== undefined && !isAccepted(deployed)
      ? previousSecret
      : secret;
  if (probe === "foreign_secret") return current.map(() => foreign);
  if (probe === "deployed_secret") return [secret];
  if (probe === "previous_signature") return [foreign, held];
  return probe === "current_signature" ? [held, foreign] : current;
}

interface Composition {
  readonly eventId: string;
  readonly recordedAt: Date;
  readonly deliveredAt: Date;
  readonly secrets: readonly string[];
}

function requestOf(
  probe: Probe,
  endpoint: CheckedEndpoint,
  { eventId, recordedAt, deliveredAt, secrets }: Composition,
): CheckRequest {
  const { webhookUrl: url, partnerId, payloadMode, standardWebhooks } = endpoint;
  const facts = testFactsOf({ event: TEST_EVENT, eventId, recordedAt }, partnerId);
  const composed = composeBody(facts, payloadMode, deliveredAt);
  const body = probe === "unknown_field" ? withUnknownField(composed) : composed;
  const [signature = "", previousSignature = null] = secrets.map((key) => hmac(key, body));
  const timestamp = standardTimestamp(deliveredAt);
  const signatures = secrets.map((key) => hmac(key, `${eventId}.${timestamp}.${body}`)).join("");
  const headers = {
    ...requestHeaders({
      event: TEST_EVENT,
      eventId,
      attempt: probe === "repeat" ? 2 : 1,
      signature,
      previousSignature,
      place: null,
      standard: standardWebhooks ? { timestamp, signatures } : null,
    }),
    ...TEST_MARK,
    ...(probe === "charset" && { "Content-Type": "application/json; charset=utf-8" }),
    ...endpoint.headers,
  };
  return { url, headers, body: probe === "changed_byte" ? withChangedByte(body) : body };
}

const hmac = (key: string, text: string) => createHmac("sha256", key).update(text).digest("hex");

function withUnknownField(body: string): string {
  return `${body.slice(0, -1)},"unknown_field":"Receivers ignore unknown fields."}`;
}

/** Changes the last digit of `occurred_at`. The body stays valid JSON of the same length, and every mode has it. */
function withChangedByte(body: string): string {
  return body.replace(/("occurred_at":"[^"]*\.\d\d)(\d)/, (_, before: string, digit: string) => {
    return `${before}${(Number(digit) + 1) % 10}`;
  });
}

/** Returns the findings of a check in the order of `FINDINGS`. */
function judge(endpoint: CheckedEndpoint, answers: Answers, now: Date): Finding[] {
  const probes = probesOf(endpoint);
  // A receiver may refuse a forged request in any way, so only the others tell about connection, redirects and time.
  const wanted = [...answers].filter(([probe]) => !FORGED.includes(probe)).map(([, one]) => one);
  const answered = wanted.filter(({ statusCode }) => statusCode !== null);
  const slowest = answered.toSorted((a, b) => b.durationMs - a.durationMs)[0];
  const timeout = wanted.find(({ errorCode }) => errorCode === "timeout");
  const untrusted = wanted.find(({ errorCode }) => errorCode === "tls");
  const broken = wanted.find(
    (one) => one.errorCode !== null && !isExplained(one.errorCode) && !isDropped(one, answers),
  );
  const redirect = wanted.find(isRedirect);
  const limited = wanted.find(isLimited);
  const dated = wanted.find(({ certificateEndsAt }) => certificateEndsAt !== null);
  const endsAt = dated?.certificateEndsAt ?? null;
  const isReached = answered.length > 0 || untrusted !== undefined;
  const inTime = decided(timeout, answered.length > 0);
  const isSecure = endpoint.webhookUrl.startsWith("https:");
  return [
    findingOf("connection", decided(broken, isReached), broken),
    ...(isSecure
      ? [
          findingOf("tls", decided(untrusted, answered.length > 0), untrusted),
          findingOf("certificate_expiry", endsAt && endsAt >= addMs(now, VALIDITY_MS), dated),
        ]
      : []),
    findingOf("redirect", decided(redirect, answered.length > 0), redirect),
    findingOf("response_time", inTime, inTime === null ? undefined : (timeout ?? slowest)),
    findingOf(
      "response_margin",
      inTime ? slowest !== undefined && slowest.durationMs <= MARGIN_MS : null,
      inTime ? slowest : undefined,
    ),
    findingOf("rate_limit", decided(limited, answered.length > 0), limited),
    ...probes.map((probe) => findingOf(probe, verdictOf(probe, answers), answers.get(probe))),
  ];
}

/** Decides a rule by the answer that breaks it, and by whether an answer could have shown that it is kept. */
const decided = (fault: CheckAnswer | undefined, isSeen: boolean) =>
  fault === undefined ? isSeen || null : false;

const isExplained = (errorCode: string) => errorCode === "timeout" || errorCode === "tls";

const isAccepted = (answer: CheckAnswer | undefined) =>
  Math.floor((answer?.statusCode ?? 0) / 100) === 2;

const isRedirect = ({ statusCode }: CheckAnswer) => Math.floor((statusCode ?? 0) / 100) === 3;

const isLimited = ({ statusCode }: CheckAnswer) => statusCode === 429;

/**
 * Returns whether the receiver closed the connection of a request instead of answering it. Before an accepted delivery,
 * this may also be a fault of the way to the receiver.
 */
function isDropped({ errorCode }: CheckAnswer, answers: Answers): boolean {
  const isEnded = errorCode === "reset" || errorCode === "protocol";
  return isEnded && isAccepted(answers.get("valid_signature"));
}

/** Decides a request by its own answer. A redirect, a 429 and most missing answers have a finding of their own. */
function verdictOf(probe: Probe, answers: Answers): boolean | null {
  const answer = answers.get(probe);
  if (answer === undefined) return null;
  if (FORGED.includes(probe)) return !isAccepted(answer);
  if (isAccepted(answer)) return true;
  if (answer.statusCode === null) return isDropped(answer, answers) ? false : null;
  return isRedirect(answer) || isLimited(answer) ? null : false;
}

function findingOf(
  code: FindingCode,
  passed: boolean | null,
  answer: CheckAnswer | undefined,
): Finding {
  const { statusCode = null, errorCode = null, tlsReason = null, durationMs = null } = answer ?? {};
  return { code, passed, statusCode, errorCode, tlsReason, durationMs };
}
