import { describe, expect, test } from "bun:test";

import { postErrorOf, tlsReasonOf } from "../../../../src/outbox/tls-reason.ts";

describe("the reason of a failure of TLS", () => {
  test.each([
    ["CERT_HAS_EXPIRED", "expired"],
    ["CERT_NOT_YET_VALID", "not_yet_valid"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "wrong_name"],
    ["HOSTNAME_MISMATCH", "wrong_name"],
    ["UNABLE_TO_GET_ISSUER_CERT", "unknown_issuer"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "unknown_issuer"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "unknown_issuer"],
    ["CERT_UNTRUSTED", "unknown_issuer"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "self_signed"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "chain_incomplete"],
    ["INVALID_PURPOSE", "invalid_certificate"],
    ["ERR_SSL_KEY_USAGE_BIT_INCORRECT", "invalid_certificate"],
    ["INVALID_CA", "invalid_certificate"],
    ["UNSPECIFIED", "invalid_certificate"],
    ["CERT_SIGNATURE_FAILURE", "invalid_certificate"],
    ["CERT_REJECTED", "invalid_certificate"],
    ["ERROR_IN_CERT_NOT_AFTER_FIELD", "invalid_certificate"],
    ["PATH_LENGTH_EXCEEDED", "invalid_certificate"],
    ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "handshake"],
    ["ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE", "handshake"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "handshake"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "handshake"],
    ["ECONNRESET", "handshake"],
    ["", "handshake"],
    ["constructor", "handshake"],
  ] as const)("with the code %p is %s", (code, reason) => expect(tlsReasonOf(code)).toBe(reason));
});

test.each([
  ["rejected", { statusCode: 503, errorCode: "http_status" }, "http_503"],
  ["failed", { errorCode: "timeout" }, "timeout"],
  ["failed", { errorCode: "tls", tlsReason: "expired" }, "tls_expired"],
  ["unsent", {}, "unsent"],
] as const)("the error of a POST of ours: %s %p is %s", (kind, fields, error) =>
  expect(postErrorOf({ kind, ...fields })).toBe(error),
);
