import { errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from "jose";

import { isBase64Url } from "../lib/encodings.ts";
import { equalInConstantTime } from "../lib/secrets.ts";
import { type IdentityProviders, parseObject } from "./identity-providers.ts";
import type { SsoErrorReason } from "./model.ts";
import type { Person } from "./person.ts";
import { SsoError } from "./urls.ts";

export interface Redemption {
  readonly issuer: string;
  readonly clientId: string;
  /** The client secret of this service at the identity provider; empty for a public client. */
  readonly clientSecret: string;
  readonly redirectUri: string;
  readonly code: string;
  readonly codeVerifier: string;
  readonly nonce: string;
  readonly now: Date;
}

export interface Redeemed {
  readonly identity: Identity;
  /**
   * Requests userinfo for the same subject (OpenID Connect Core 1.0, 5.3). Returns the error if the endpoint does not
   * respond with status 200, and throws an error if the response is invalid.
   */
  readonly readUserinfo: () => Promise<Person | SsoError>;
}

/**
 * Redeems the identity provider's authorization code and returns the verified identity (OpenID Connect Core 1.0,
 * 3.1.3).
 */
export async function redeemAtProvider(
  providers: IdentityProviders,
  redemption: Redemption,
): Promise<Redeemed> {
  const { issuer, clientId, nonce, now } = redemption;
  const metadata = await providers.metadata(issuer);
  const answer = await requestTokens(providers, redemption);
  const { algorithms, userinfoEndpoint } = metadata;
  const keyFor = providers.keyFor(issuer);
  const expected = { issuer, clientId, nonce, algorithms, keyFor, now };
  const identity = await verifyIdToken(answer.idToken, expected);
  return {
    identity,
    readUserinfo: async () =>
      userinfoEndpoint === undefined || answer.accessToken === undefined
        ? { email: undefined, emailVerified: undefined, name: undefined }
        : requestUserinfo(providers, {
            url: userinfoEndpoint,
            accessToken: answer.accessToken,
            subject: identity.subject,
          }),
  };
}

async function requestTokens(
  providers: IdentityProviders,
  redemption: Redemption,
): Promise<{ idToken: string; accessToken: string | undefined }> {
  const { tokenEndpoint, clientAuthentication } = await providers.metadata(redemption.issuer);
  const { clientId, clientSecret } = redemption;
  // Without a client secret, this service is a public client, even if the identity provider supports secrets.
  const method = clientSecret === "" ? "none" : clientAuthentication;
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code: redemption.code,
    redirect_uri: redemption.redirectUri,
    code_verifier: redemption.codeVerifier,
    ...(method !== "client_secret_basic" && { client_id: clientId }),
    ...(method === "client_secret_post" && { client_secret: clientSecret }),
  });
  const { status, body } = await providers.request({
    url: tokenEndpoint,
    method: "POST",
    headers: {
      Accept: "application/json",
      "Content-Type": "application/x-www-form-urlencoded",
      ...(method === "client_secret_basic" && { Authorization: basicAuth(clientId, clientSecret) }),
    },
    body: form.toString(),
  });
  const answer = parseObject(body) ?? {};
  const { id_token: idToken, access_token: accessToken } = answer;
  if (status !== 200 || !hasText(idToken))
    throw new SsoError("bad_token_answer", { status, ...errorOf(answer["error"]) });
  return { idToken, accessToken: hasText(accessToken) ? accessToken : undefined };
}

async function requestUserinfo(
  providers: IdentityProviders,
  { url, accessToken, subject }: { url: string; accessToken: string; subject: string },
): Promise<Person | SsoError> {
  const headers = { Accept: "application/json", Authorization: `Bearer ${accessToken}` };
  const answer = await providers.request({ url, method: "GET", headers }).catch(orThrow);
  if (answer instanceof SsoError) return answer;
  const { status, body } = answer;
  if (status !== 200) return new SsoError("bad_userinfo", { status });
  const claims = parseObject(body);
  // A response about another subject is rejected, because its claims must not be used for this user (OpenID Connect
  // Core 1.0, 5.3.2).
  if (claims === undefined || claims["sub"] !== subject)
    throw new SsoError("bad_userinfo", { status });
  return readPerson(claims);
}

function orThrow(error: unknown): SsoError {
  if (error instanceof SsoError) return error;
  throw error;
}

/**
 * Builds an HTTP Basic header; id and secret are form-encoded before they are joined with a colon (RFC 6749, 2.3.1).
 */
function basicAuth(clientId: string, clientSecret: string): string {
  const pair = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

function formEncode(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

/**
 * Returns the identity provider's error code for the audit log. A text that is longer than 64 characters, or contains
 * characters other than letters, digits and `_.-`, is dropped, because it is no error code.
 */
export function errorOf(error: unknown): { error?: string } {
  return typeof error === "string" && /^[\w.-]{1,64}$/.test(error) ? { error } : {};
}

function hasText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Tolerance in seconds for an identity provider's clock and for a late response. */
const TOLERANCE_S = 60;
/**
 * Maximum age of an id_token in seconds. The identity provider creates the token for this response, so an older token
 * is a replayed copy.
 */
const MAX_AGE_S = 600;
/** Maximum length of the claim `sub`, in characters (OpenID Connect Core 1.0, 2). */
const MAX_SUBJECT = 255;

/** The identity of a user at the identity provider, from a verified id_token. */
export interface Identity extends Person {
  readonly subject: string;
}

interface ExpectedClaims {
  readonly issuer: string;
  readonly clientId: string;
  readonly nonce: string;
  /** Signature algorithms from the identity provider's discovery document, without symmetric ones. */
  readonly algorithms: readonly string[];
  readonly keyFor: JWTVerifyGetKey;
  readonly now: Date;
}

/** Verifies the signature and the claims of an id_token (OpenID Connect Core 1.0, 3.1.3.7). */
async function verifyIdToken(token: string, expected: ExpectedClaims): Promise<Identity> {
  const payload = await verifySignature(token, expected);
  const { aud, azp, nonce, sub } = payload;
  if (typeof nonce !== "string" || !equalInConstantTime(nonce, expected.nonce))
    throw new SsoError("wrong_nonce");
  // An id_token with several audiences must name this service as the authorized party (3.1.3.7, 3 to 5).
  const isShared = Array.isArray(aud) && aud.length > 1;
  if (azp === undefined ? isShared : azp !== expected.clientId)
    throw new SsoError("wrong_authorized_party");
  if (!isSubject(sub)) throw new SsoError("malformed_id_token", { claim: "sub" });
  return { subject: sub, ...readPerson(payload) };
}

function readPerson(claims: Readonly<Record<string, unknown>>): Person {
  const { email, email_verified: verified, name } = claims;
  return {
    email: hasText(email) ? email : undefined,
    emailVerified: readVerified(verified),
    name: hasText(name) ? name : undefined,
  };
}

/**
 * Reads the claim `email_verified`; undefined if it is absent or null. Some identity providers send the text `true`
 * instead of the boolean. Any value except these two counts as false.
 */
function readVerified(value: unknown): boolean | undefined {
  return value === undefined || value === null ? undefined : value === true || value === "true";
}

async function verifySignature(token: string, expected: ExpectedClaims): Promise<JWTPayload> {
  if (!token.split(".").every(isBase64Url)) throw new SsoError("malformed_id_token");
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
    if (error instanceof SsoError) throw error;
    if (!(error instanceof errors.JOSEError)) throw new SsoError("malformed_id_token");
    throw new SsoError(reasonOf(error));
  }
}

const REASON_BY_CLAIM: Readonly<Record<string, SsoErrorReason>> = {
  iss: "wrong_issuer",
  aud: "wrong_audience",
  exp: "expired_id_token",
  iat: "wrong_issue_time",
  nbf: "wrong_issue_time",
  nonce: "wrong_nonce",
};

function reasonOf(error: errors.JOSEError): SsoErrorReason {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
    return REASON_BY_CLAIM[error.claim] ?? "malformed_id_token";
  if (error instanceof errors.JOSEAlgNotAllowed) return "wrong_algorithm";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "wrong_signature";
  if (error instanceof errors.JWKSNoMatchingKey) return "unknown_key";
  return error instanceof errors.JWKSMultipleMatchingKeys ? "unknown_key" : "malformed_id_token";
}

/**
 * Returns whether the claim `sub` can be stored. A NUL is rejected, because PostgreSQL cannot store it. Lone surrogates
 * are rejected, because all of them would be stored as the same character.
 */
function isSubject(sub: unknown): sub is string {
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT) return false;
  return !sub.includes("\0") && sub.isWellFormed();
}
