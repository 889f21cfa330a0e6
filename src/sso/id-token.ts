import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from "jose";

import { isBase64Url } from "../lib/base64.ts";
import { equalInConstantTime } from "../lib/secret-box.ts";
import type { RefusalReason } from "./model.ts";
import { SsoRefusal } from "./refusal.ts";

/** How far the provider's clock may be off, or its answer late. */
const TOLERANCE_S = 60;
/** The age from which a token is refused: the provider makes it for this very answer, so an old one is a copy. */
const MAX_AGE_S = 600;
/** OpenID Connect Core 1.0, 2. */
const MAX_SUBJECT = 255;

/** Who signed in at the provider. */
export interface Identity {
  readonly subject: string;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
}

interface Expected {
  readonly issuer: string;
  readonly clientId: string;
  readonly nonce: string;
  /** Those that the provider's discovery names; none of them symmetric. */
  readonly algorithms: readonly string[];
  readonly keyFor: JWTVerifyGetKey;
  readonly now: Date;
}

/** OpenID Connect Core 1.0, 3.1.3.7. */
export async function verifyIdToken(token: string, expected: Expected): Promise<Identity> {
  const payload = await verifySignature(token, expected);
  const { aud, azp, nonce, sub } = payload;
  if (typeof nonce !== "string" || !equalInConstantTime(nonce, expected.nonce))
    throw new SsoRefusal("wrong_nonce");
  // 3.1.3.7, 3 to 5: a token with other audiences beside us must name us as the party that it was made for.
  const isShared = Array.isArray(aud) && aud.length > 1;
  if (azp === undefined ? isShared : azp !== expected.clientId)
    throw new SsoRefusal("wrong_authorized_party");
  if (!isSubject(sub)) throw new SsoRefusal("malformed_id_token", { claim: "sub" });
  return { subject: sub, ...readEmail(payload) };
}

/** Takes only `true` for verified: a provider that writes anything else has not said that it verified the address. */
export function readEmail(
  claims: Readonly<Record<string, unknown>>,
): Pick<Identity, "email" | "emailVerified"> {
  const { email, email_verified: verified } = claims;
  return {
    email: typeof email === "string" && email !== "" ? email : undefined,
    emailVerified: verified === true,
  };
}

async function verifySignature(token: string, expected: Expected): Promise<JWTPayload> {
  if (!token.split(".").every(isBase64Url)) throw new SsoRefusal("malformed_id_token");
  try {
    const { payload } = await jwtVerify(token, expected.keyFor, {
      issuer: expected.issuer,
      audience: expected.clientId,
      algorithms: [...expected.algorithms],
      currentDate: expected.now,
      clockTolerance: TOLERANCE_S,
      maxTokenAge: MAX_AGE_S,
      requiredClaims: ["exp", "iat", "sub", "nonce"],
    });
    return payload;
  } catch (error) {
    if (error instanceof SsoRefusal) throw error;
    if (!(error instanceof errors.JOSEError)) throw new SsoRefusal("malformed_id_token");
    throw new SsoRefusal(reasonOf(error));
  }
}

const BY_CLAIM: Readonly<Record<string, RefusalReason>> = {
  iss: "wrong_issuer",
  aud: "wrong_audience",
  exp: "expired_id_token",
  iat: "wrong_issue_time",
  nbf: "wrong_issue_time",
  nonce: "wrong_nonce",
};

function reasonOf(error: errors.JOSEError): RefusalReason {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
    return BY_CLAIM[error.claim] ?? "malformed_id_token";
  if (error instanceof errors.JOSEAlgNotAllowed) return "wrong_algorithm";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "wrong_signature";
  if (error instanceof errors.JWKSNoMatchingKey) return "unknown_key";
  return error instanceof errors.JWKSMultipleMatchingKeys ? "unknown_key" : "malformed_id_token";
}

/**
 * Refuses NUL, which Postgres takes in no text, and lone halves of characters, which would all be stored as the same
 * one.
 */
function isSubject(sub: unknown): sub is string {
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT) return false;
  return !sub.includes("\0") && sub.isWellFormed();
}
