/** Why a receiver and the service could not agree on a secure connection: the reason of an attempt with `tls`. */
export type TlsReason =
  | "expired"
  | "not_yet_valid"
  | "wrong_name"
  | "unknown_issuer"
  | "self_signed"
  | "chain_incomplete"
  | "invalid_certificate"
  | "handshake";

interface Words {
  readonly title: string;
  /** The next step of the operator of the receiver. */
  readonly advice: string;
}

const WORDS: Readonly<Record<TlsReason, Words>> = {
  expired: {
    title: "The certificate has expired",
    advice:
      "A certificate of your endpoint, or of the authority that signed it, is too old. Renew it and load the new one into the server.",
  },
  not_yet_valid: {
    title: "The certificate is not valid yet",
    advice: "Its first day is in the future. Check the clock of the machine that issued it.",
  },
  wrong_name: {
    title: "The certificate does not name this host",
    advice:
      "The host of the URL must be in the subjectAltName of the certificate; the common name does not count. Check that the server sends the certificate of this host, and have a certificate without subjectAltName issued again.",
  },
  unknown_issuer: {
    title: "The certificate is of an unknown authority",
    advice:
      "The chain ends at an authority that we do not trust. Use a certificate of a public authority, and check that no intermediate certificate is missing from the chain.",
  },
  self_signed: {
    title: "The certificate is self-signed",
    advice: "Nobody vouches for it. Use a certificate of a public authority.",
  },
  chain_incomplete: {
    title: "The certificate chain is incomplete",
    advice:
      "Your endpoint sends its own certificate without that of its issuer. Configure the whole chain (often called fullchain). If an authority of your own signed it, use a certificate of a public authority.",
  },
  invalid_certificate: {
    title: "The certificate is not accepted",
    advice:
      "It is not for servers, is signed by a certificate that may not sign it, or breaks another rule of TLS. Have it issued again by a public authority.",
  },
  handshake: {
    title: "The TLS handshake failed",
    advice:
      "Your endpoint refused or closed the connection during the handshake. Check that the port speaks TLS 1.2 or 1.3 with common cipher suites, and that it requires no client certificate.",
  },
};

const BY_REASON = new Map<string, Words>(Object.entries(WORDS));

/** Explains the reason of an attempt. Undefined without one, and for a reason of a newer version. */
export function tlsWords(reason: string | null | undefined): Words | undefined {
  return BY_REASON.get(reason ?? "");
}

/** The result of a POST as the dispatcher reports it. */
export interface Posted {
  readonly kind: string;
  readonly statusCode?: number;
  readonly errorCode?: string;
  readonly tlsReason?: TlsReason | undefined;
}

/** Names the failure of a POST of ours to an operator or partner in one word: `http_503`, `timeout`, `tls_expired`. */
export function postErrorOf({ kind, statusCode, errorCode = kind, tlsReason }: Posted): string {
  if (statusCode !== undefined) return `http_${statusCode}`;
  return tlsReason === undefined ? errorCode : `${errorCode}_${tlsReason}`;
}
