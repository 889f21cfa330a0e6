import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from "jose";

import { equalInConstantTime } from "../lib/secret-box.ts";
import type { RefusalReason } from "./model.ts";
import { Refusal } from "./refusal.ts";

/** How far the provider's clock may be off, and how long its answer may have been under way. */
const TOLERANCE_S = 60;
/** The token was made for this very answer, so that an old one is somebody's copy. */
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
    throw new Refusal("wrong_nonce");
  // 3.1.3.7, 3 to 5: others may be named beside us only if the token was made for us.
  const isShared = Array.isArray(aud) && aud.length > 1;
  if (azp === undefined ? isShared : azp !== expected.clientId)
    throw new Refusal("wrong_authorized_party");
  if (!isSubject(sub)) throw new Refusal("malformed_id_token", { claim: "sub" });
  return { subject: sub, ...readEmail(payload) };
}

/** Strictly true: a provider that writes anything else has not said that it verified the address. */
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
    if (error instanceof Refusal) throw error;
    if (!(error instanceof errors.JOSEError)) throw new Refusal("malformed_id_token");
    throw new Refusal(reasonOf(error));
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

/** Postgres takes no NUL in a text, and lone halves of characters would all become one and the same. */
function isSubject(sub: unknown): sub is string {
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT) return false;
  return !sub.includes("\0") && sub.isWellFormed();
}
