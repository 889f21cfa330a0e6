// The check of an endpoint (contract 6.23): its requests, and the judgement of the answers. A dispatcher and the command
// `reviewrelay check` send the requests. The command runs on Node, so this file uses nothing of Bun.
import { createHmac } from "node:crypto";

import { addMs } from "../lib/clock.ts";
import { newSecret } from "../lib/secrets.ts";
import { type PayloadMode, TEST_EVENT } from "./event.ts";
import type { OwnHeaders } from "./own-headers.ts";
import { composeBody, requestHeaders, standardTimestamp } from "./payload-format.ts";
import { TEST_MARK, testFactsOf } from "./test-event.ts";
import { type TlsReason, tlsWords } from "./tls-reason.ts";

/** The time in ms that an answer may take without a warning. */
export const MARGIN_MS = 5_000;
/** The time in ms for which a certificate must still be valid. */
const VALIDITY_MS = 30 * 86_400_000;
/** The age in ms of the delivery with an old timestamp. The guide tells receivers to refuse five minutes. */
const OLD_MS = 600_000;

interface FindingWords {
  /** The rule that the endpoint must follow. */
  readonly rule: string;
  /** The remedy, for the developer of the receiver. */
  readonly advice: string;
  readonly severity?: "warning";
}

/** The findings of a report, in its order, with the words of the guide and of the API. */
const FINDINGS = {
  connection: {
    rule: "The endpoint accepts a connection and answers HTTP.",
    advice:
      "Check the host and the port of the URL from outside of your network, your firewall, and the log of your server or proxy.",
  },
  tls: {
    rule: "The certificate is valid for the host, and its chain is complete.",
    advice: "The TLS connection failed. Check the certificate of your endpoint and its chain.",
  },
  certificate_expiry: {
    rule: "The certificate is valid for 30 more days.",
    advice:
      "The certificate ends within 30 days. Renew it, load the new one into your server, and check the job that renews it.",
  },
  redirect: {
    rule: "The endpoint answers itself, without a redirect.",
    advice:
      "Redirects are not followed. Set the URL of the subscription to the address that your server redirects to.",
  },
  response_time: {
    rule: "Every answer arrives within 15 s.",
    advice: "An attempt fails after 15 s. Queue the event, answer, and do the work afterwards.",
  },
  response_margin: {
    rule: "Every answer takes at most 5 s.",
    advice:
      "The answers are slow and may take more than 15 s under load. Queue the event, answer, and do the work afterwards.",
    severity: "warning",
  },
  valid_signature: {
    rule: "A valid delivery is answered 2xx.",
    advice:
      "Compute the signature over the raw bytes of the body, with the secret as text, and answer 2xx. While the secret rotates, also accept X-SVC-Signature-Previous. If the status is not 401, look into the log of your server.",
  },
  repeat: {
    rule: "A delivery that arrives again is answered 2xx.",
    advice:
      "A delivery is sent again if its answer was lost. Answer 200 to an event_id that you have handled, and do nothing else.",
  },
  changed_byte: {
    rule: "A body that was changed after signing is refused.",
    advice:
      "Your endpoint accepts a body that does not match its signature, so anyone who knows the URL can send it events. Verify the signature of every request, also of tests, before you answer, and answer 401 if it does not match.",
  },
  foreign_secret: {
    rule: "A delivery that is signed with another secret is refused.",
    advice:
      "Your endpoint accepts the signature of a secret that is not yours. Compare the whole signature with the one that you compute with your secret, and answer 401 if they differ.",
  },
  old_timestamp: {
    rule: "A delivery of ten minutes ago is refused (with Standard Webhooks).",
    advice:
      "Refuse a delivery whose webhook-timestamp is more than five minutes away from your clock. Otherwise a recorded delivery can be sent again at any time.",
  },
  deployed_secret: {
    rule: "A delivery that only the new secret signs is answered 2xx (during a grace period).",
    advice:
      "Your endpoint does not have the new secret yet. Deploy it before the grace period ends.",
  },
  previous_signature: {
    rule: "During a rotation, a receiver that has the previous secret accepts a delivery.",
    advice:
      "Accept a delivery if X-SVC-Signature or X-SVC-Signature-Previous is valid; with Standard Webhooks, if any of the signatures in webhook-signature is. Otherwise deliveries fail between a rotation and your deployment.",
  },
  current_signature: {
    rule: "During a rotation, a receiver that has the new secret accepts a delivery.",
    advice:
      "Accept a delivery if X-SVC-Signature is valid, also if X-SVC-Signature-Previous is not; with Standard Webhooks, if any of the signatures in webhook-signature is.",
  },
  unknown_field: {
    rule: "A field that you do not know is ignored.",
    advice: "Ignore unknown fields of the body, because new ones may be added at any time.",
  },
  charset: {
    rule: "A charset in the Content-Type is ignored.",
    advice:
      "Compare only the media type, application/json, and ignore its parameters, which a proxy may add.",
  },
} as const satisfies Readonly<Record<string, FindingWords>>;

export type FindingCode = keyof typeof FINDINGS;

const WORDS: ReadonlyMap<string, FindingWords> = new Map(Object.entries(FINDINGS));
export const FINDING_RULES = [...WORDS].map(([code, { rule }]) => ({ code, rule }));

/** One finding. `passed` is null if it could not be decided. The other values are those of the deciding request. */
export interface Finding {
  readonly code: FindingCode;
  readonly passed: boolean | null;
  readonly statusCode: number | null;
  /** The code of the failure (contract 7.13); null if there was an answer, or no request. */
  readonly errorCode: string | null;
  readonly tlsReason: TlsReason | null;
  readonly durationMs: number | null;
}

/** Adds severity and advice to a finding, which may be stored by a newer version with a code that is unknown here. */
export function explainFinding(finding: Finding) {
  const { advice, severity = "fault" as const } = WORDS.get(finding.code) ?? { advice: null };
  const given = tlsWords(finding.tlsReason)?.advice ?? advice;
  return { ...finding, severity, advice: finding.passed === false ? given : null };
}

/** Returns whether no fault was found. Warnings do not count. */
export function hasPassed(findings: readonly Finding[]): boolean {
  return findings.every(
    (one) => one.passed !== false || explainFinding(one).severity === "warning",
  );
}

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
  "connection" | "tls" | "certificate_expiry" | "redirect" | "response_time" | "response_margin"
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
  const slowest = wanted.toSorted((a, b) => b.durationMs - a.durationMs)[0];
  const timeout = wanted.find(({ errorCode }) => errorCode === "timeout");
  const untrusted = wanted.find(({ errorCode }) => errorCode === "tls");
  const broken = wanted.find(({ errorCode }) => errorCode !== null && !isExplained(errorCode));
  const redirect = wanted.find(isRedirect);
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
    ...probes.map((probe) => {
      const answer = answers.get(probe);
      return findingOf(probe, answer === undefined ? null : verdictOf(probe, answer), answer);
    }),
  ];
}

/** Decides a rule by the answer that breaks it, and by whether an answer could have shown that it is kept. */
const decided = (fault: CheckAnswer | undefined, isSeen: boolean) =>
  fault === undefined ? isSeen || null : false;

const isExplained = (errorCode: string) => errorCode === "timeout" || errorCode === "tls";

const isAccepted = (answer: CheckAnswer | undefined) =>
  Math.floor((answer?.statusCode ?? 0) / 100) === 2;

const isRedirect = ({ statusCode }: CheckAnswer) => Math.floor((statusCode ?? 0) / 100) === 3;

/** Decides a request by its own answer. A redirect and a missing answer have a finding of their own. */
function verdictOf(probe: Probe, answer: CheckAnswer): boolean | null {
  if (FORGED.includes(probe)) return !isAccepted(answer);
  if (isAccepted(answer)) return true;
  return answer.statusCode === null || isRedirect(answer) ? null : false;
}

function findingOf(
  code: FindingCode,
  passed: boolean | null,
  answer: CheckAnswer | undefined,
): Finding {
  const { statusCode = null, errorCode = null, tlsReason = null, durationMs = null } = answer ?? {};
  return { code, passed, statusCode, errorCode, tlsReason, durationMs };
}
