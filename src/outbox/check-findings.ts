// The findings in the report of a check (contract 6.23), with the words of the guide, of the API and of the command
// `reviewrelay check`, which runs on Node.
import { type TlsReason, tlsWords } from "./tls-reason.ts";

interface FindingWords {
  /** The rule that the endpoint must follow. */
  readonly rule: string;
  /** What happened, if the endpoint does not follow the rule. */
  readonly failure: string;
  /** The remedy, for the developer of the receiver. */
  readonly advice: string;
  readonly severity?: "warning";
}

/** The findings of a report, in its order, with the words of the guide and of the API. */
const FINDINGS = {
  connection: {
    rule: "The endpoint accepts a connection and answers HTTP.",
    failure: "The endpoint did not accept a connection, or did not answer HTTP.",
    advice:
      "Check the host and the port of the URL from outside of your network, your firewall, and the log of your server or proxy.",
  },
  tls: {
    rule: "The certificate is valid for the host, and its chain is complete.",
    failure: "The certificate is not valid for the host, or its chain is incomplete.",
    advice: "The TLS connection failed. Check the certificate of your endpoint and its chain.",
  },
  certificate_expiry: {
    rule: "The certificate is valid for 30 more days.",
    failure: "The certificate ends within 30 days.",
    advice:
      "The certificate ends within 30 days. Renew it, load the new one into your server, and check the job that renews it.",
  },
  redirect: {
    rule: "The endpoint answers itself, without a redirect.",
    failure: "The endpoint answered with a redirect.",
    advice:
      "Redirects are not followed. Set the URL of the subscription to the address that your server redirects to.",
  },
  response_time: {
    rule: "Every answer arrives within 15 s.",
    failure: "An answer took more than 15 s.",
    advice: "An attempt fails after 15 s. Queue the event, answer, and do the work afterwards.",
  },
  response_margin: {
    rule: "Every answer takes at most 5 s.",
    failure: "An answer took more than 5 s.",
    advice:
      "The answers are slow and may take more than 15 s under load. Queue the event, answer, and do the work afterwards.",
    severity: "warning",
  },
  rate_limit: {
    rule: "No answer is 429.",
    failure: "An answer was 429.",
    advice:
      "Your endpoint limits requests, so a burst of events arrives late, and this check could not decide everything. Raise the limit, and repeat the check.",
  },
  valid_signature: {
    rule: "A valid delivery is answered 2xx.",
    failure: "A valid delivery was not answered 2xx.",
    advice:
      "Compute the signature over the raw bytes of the body, with the secret as text, and answer 2xx. While the secret rotates, also accept X-SVC-Signature-Previous. If the status is not 401, look into the log of your server.",
  },
  repeat: {
    rule: "A delivery that arrives again is answered 2xx.",
    failure: "A delivery that arrived again was not answered 2xx.",
    advice:
      "A delivery is sent again if its answer was lost. Answer 200 to an event_id that you have handled, and do nothing else.",
  },
  changed_byte: {
    rule: "A body that was changed after signing is refused.",
    failure: "A body changed after signing was accepted.",
    advice:
      "Your endpoint accepts a body that does not match its signature, so anyone who knows the URL can send it events. Verify the signature of every request, also of tests, before you answer, and answer 401 if it does not match.",
  },
  foreign_secret: {
    rule: "A delivery that is signed with another secret is refused.",
    failure: "A delivery signed with another secret was accepted.",
    advice:
      "Your endpoint accepts the signature of a secret that is not yours. Compare the whole signature with the one that you compute with your secret, and answer 401 if they differ.",
  },
  old_timestamp: {
    rule: "A delivery of ten minutes ago is refused (with Standard Webhooks).",
    failure: "A delivery of ten minutes ago was accepted.",
    advice:
      "Refuse a delivery whose webhook-timestamp is more than five minutes away from your clock. Otherwise a recorded delivery can be sent again at any time.",
  },
  deployed_secret: {
    rule: "A delivery that only the new secret signs is answered 2xx (during a grace period).",
    failure: "A delivery that only the new secret signs was not answered 2xx.",
    advice:
      "Your endpoint does not have the new secret yet. Deploy it before the grace period ends.",
  },
  previous_signature: {
    rule: "During a rotation, a receiver that has the previous secret accepts a delivery.",
    failure: "A delivery during a rotation would fail while you still have the previous secret.",
    advice:
      "Accept a delivery if X-SVC-Signature or X-SVC-Signature-Previous is valid; with Standard Webhooks, if any of the signatures in webhook-signature is. Otherwise deliveries fail between a rotation and your deployment.",
  },
  current_signature: {
    rule: "During a rotation, a receiver that has the new secret accepts a delivery.",
    failure: "A delivery during a rotation would fail once you have the new secret.",
    advice:
      "Accept a delivery if X-SVC-Signature is valid, also if X-SVC-Signature-Previous is not; with Standard Webhooks, if any of the signatures in webhook-signature is.",
  },
  unknown_field: {
    rule: "A field that you do not know is ignored.",
    failure: "A delivery with a field that you do not know was not answered 2xx.",
    advice: "Ignore unknown fields of the body, because new ones may be added at any time.",
  },
  charset: {
    rule: "A charset in the Content-Type is ignored.",
    failure: "A delivery with a charset in its Content-Type was not answered 2xx.",
    advice:
      "Compare only the media type, application/json, and ignore its parameters, which a proxy may add.",
  },
} as const satisfies Readonly<Record<string, FindingWords>>;

export type FindingCode = keyof typeof FINDINGS;

const WORDS: ReadonlyMap<string, FindingWords> = new Map(Object.entries(FINDINGS));
export const FINDING_RULES = [...WORDS].map(([code, { rule, failure }]) => ({
  code,
  rule,
  failure,
}));

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
