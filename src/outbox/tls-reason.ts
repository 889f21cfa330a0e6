/** Reasons why the TLS handshake with a receiver failed. An attempt with the error code `tls` has one of them. */
export type TlsReason =
  | "expired"
  | "not_yet_valid"
  | "wrong_name"
  | "unknown_issuer"
  | "self_signed"
  | "chain_incomplete"
  | "invalid_certificate"
  | "handshake";

interface TlsWords {
  readonly title: string;
  /** The remedy, for the operator of the receiver. */
  readonly advice: string;
}

const TLS_WORDS: Readonly<Record<TlsReason, TlsWords>> = {
  expired: {
    title: "The certificate has expired",
    advice:
      "The certificate of your endpoint, or of the authority that signed it, has expired. Renew it and load the new certificate into your server.",
  },
  not_yet_valid: {
    title: "The certificate is not valid yet",
    advice:
      "Its period of validity begins in the future. Check the clock of the machine that issued it.",
  },
  wrong_name: {
    title: "The certificate does not name this host",
    advice:
      "The host of the URL must be in the subjectAltName of the certificate; the common name does not count. Check that the server sends the certificate of this host, and replace a certificate that has no subjectAltName.",
  },
  unknown_issuer: {
    title: "The certificate is from an unknown authority",
    advice:
      "The chain ends at an authority that we do not trust. Use a certificate from a public authority, and check that no intermediate certificate is missing from the chain.",
  },
  self_signed: {
    title: "The certificate is self-signed",
    advice: "No authority has signed it. Use a certificate from a public authority.",
  },
  chain_incomplete: {
    title: "The certificate chain is incomplete",
    advice:
      "Your endpoint sends its own certificate without that of its issuer. Configure the whole chain (often called fullchain). If a private authority signed it, use a certificate from a public authority.",
  },
  invalid_certificate: {
    title: "The certificate is not accepted",
    advice:
      "It is not a server certificate, is signed by a certificate that is not a CA, or breaks another rule of TLS. Replace it with a certificate from a public authority.",
  },
  handshake: {
    title: "The TLS handshake failed",
    advice:
      "Your endpoint rejected or closed the connection during the handshake. Check that the port speaks TLS 1.2 or 1.3 with common cipher suites, and that it does not require a client certificate.",
  },
};

const TLS_WORDS_BY_REASON = new Map<string, TlsWords>(Object.entries(TLS_WORDS));

/**
 * Returns the explanation of a reason; undefined if there is no reason, or if a newer version stored a reason that this
 * version does not know.
 */
export function tlsWords(reason: string | null | undefined): TlsWords | undefined {
  return TLS_WORDS_BY_REASON.get(reason ?? "");
}

/** The result of a POST as the dispatcher reports it. */
export interface Posted {
  readonly kind: string;
  readonly statusCode?: number;
  readonly errorCode?: string;
  readonly tlsReason?: TlsReason | undefined;
}

/** Returns a short name for the failure of a POST, for operators and partners: `http_503`, `timeout`, `tls_expired`. */
export function postErrorOf({ kind, statusCode, errorCode = kind, tlsReason }: Posted): string {
  if (statusCode !== undefined) return `http_${statusCode}`;
  return tlsReason === undefined ? errorCode : `${errorCode}_${tlsReason}`;
}

/**
 * Names the reason of a failed TLS handshake (contract 7.13) by the code of the error; empty without an error. Bun 1.4.4
 * shows no certificate of a rejected peer, so only the code decides. A single certificate with an unknown issuer has one
 * code (`chain_incomplete`), whether the server left the issuer out or the issuer is a private authority.
 */
export function tlsReasonOf(code: string): TlsReason {
  return TLS_REASONS.get(code) ?? (VERIFY_CODES.test(code) ? "invalid_certificate" : "handshake");
}

/**
 * The reason for each error code of certificate verification (X509_V_ERR_…, without the prefix) and of
 * `checkServerIdentity`.
 */
const TLS_REASONS: ReadonlyMap<string, TlsReason> = new Map(
  Object.entries({
    CERT_HAS_EXPIRED: "expired",
    CERT_NOT_YET_VALID: "not_yet_valid",
    ERR_TLS_CERT_ALTNAME_INVALID: "wrong_name",
    HOSTNAME_MISMATCH: "wrong_name",
    UNABLE_TO_GET_ISSUER_CERT: "unknown_issuer",
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown_issuer",
    SELF_SIGNED_CERT_IN_CHAIN: "unknown_issuer",
    CERT_UNTRUSTED: "unknown_issuer",
    DEPTH_ZERO_SELF_SIGNED_CERT: "self_signed",
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: "chain_incomplete",
    // BoringSSL reports this code if the key usage of the certificate does not allow its key to sign the handshake.
    ERR_SSL_KEY_USAGE_BIT_INCORRECT: "invalid_certificate",
  } as const),
);

/** The other error codes of certificate verification. UNSPECIFIED is, for example, a violation of name constraints. */
const VERIFY_CODES =
  /^(?:CERT_|INVALID_|UNABLE_TO_|ERROR_IN_CERT_|PATH_LENGTH_|AKID_|SUBJECT_|UNSPECIFIED$)/;
