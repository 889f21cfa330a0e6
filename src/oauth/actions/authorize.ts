import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { holdPerson, holdPersonInClient } from "../../auth/sign-in/client-session.ts";
import { type AttemptOutcome, attemptSignIn } from "../../auth/sign-in/log-in.ts";
import { passkeyOptions } from "../../auth/factors/prove-factor.ts";
import {
  answerChallenge,
  type AnswerOutcome,
  isWaiting,
  secondStep,
} from "../../auth/factors/second-step.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs } from "../../lib/clock.ts";
import { hashSecret, newSecret } from "../../lib/secrets.ts";
import { redeemSsoCode } from "../../sso/actions/exchange-code.ts";
import { SsoError } from "../../sso/urls.ts";
import { admitsUser, decideScope, needsConsent } from "../decide.ts";
import { Params } from "../form.ts";
import { OAuthError } from "../oauth-error.ts";
import type { ActiveClient } from "../queries.ts";
import {
  deleteAuthorizationCode,
  findAuthorizationCode,
  holdAuthorizationCode,
  insertAuthorizationCode,
} from "../queries.ts";
import { matchesRedirect } from "../redirect-uri.ts";
import { readScopes } from "../grants.ts";
import type { OAuthDeps } from "./deps.ts";
import { lookUpClient } from "./tokens.ts";

/** Lifetime of an authorization code in ms (contract 5.4). */
const CODE_TTL_MS = 60_000;
const GRANT_TYPE = "authorization_code";
/** Time in ms that a user has to answer a page of the authorization flow. */
export const PAGE_TTL_MS = 10 * 60_000;

/** The result of a sign-in at the authorize page: the authorization code, or the page that asks for consent. */
export interface SignedIn {
  readonly kind: "code" | "consent";
  /**
   * The authorization code itself or, until the user has answered the consent page, a secret that identifies the
   * sign-in.
   */
  readonly secret: string;
}

/**
 * The step that follows a right password: the user proves a second factor on the page, or sets one up on the dashboard.
 */
export type NextStep =
  | (FactorChoice & { readonly kind: "factor"; readonly jti: string; readonly userId: number })
  | { readonly kind: "enrol" };

/**
 * The data for the page that asks for a second factor. `options` is undefined if the user has no passkey; otherwise the
 * browser proves a passkey with these options.
 */
export interface FactorChoice {
  readonly options: Awaited<ReturnType<typeof passkeyOptions>>;
}

/**
 * Signs a user in with the password form of the authorize page.
 */
export function signInAtPage(
  deps: OAuthDeps,
  authorization: Authorization,
  {
    email,
    password,
    requestContext,
  }: { email: string; password: string; requestContext: RequestContext },
): Promise<AttemptOutcome<SignedIn | NextStep>> {
  const { client } = authorization;
  const admits = (user: { partnerId: number | null }) => admitsUser(client, user);
  const attempt = {
    email,
    password,
    method: "authorization_code",
    requestContext,
    admits,
  } as const;
  return attemptSignIn(deps, attempt, async (tx, { id: userId }, now) => {
    const step = await secondStep(tx, deps, { userId, method: GRANT_TYPE, now });
    if (step === undefined) return signedInAs(tx, authorization, { userId, now });
    if (step.challenge.enrol) return { kind: "enrol" as const };
    const { jti } = step;
    const options = await passkeyOptions(tx, deps, { userId, jti, now });
    return { kind: "factor" as const, jti, userId, options };
  });
}

async function signedInAs(
  tx: Tx,
  authorization: Authorization,
  { userId, now }: { userId: number; now: Date },
): Promise<SignedIn> {
  const kind = needsConsent(authorization.client, authorization.redirectUri) ? "consent" : "code";
  return { kind, secret: await issueSecret(tx, authorization, { kind, userId, now }) };
}

/** Continues a sign-in at the authorize page after the user has sent the proof of a second factor. */
export function proveAtPage(
  deps: OAuthDeps,
  authorization: Authorization,
  answer: Parameters<typeof answerChallenge>[1],
): Promise<AnswerOutcome<SignedIn>> {
  return answerChallenge(deps, answer, (tx, { user, now }) =>
    signedInAs(tx, authorization, { userId: user.id, now }),
  );
}

/**
 * Returns the passkey options for the page that is shown again after a wrong proof. Returns undefined if the sign-in no
 * longer waits for a proof.
 */
export function offerFactors(
  deps: OAuthDeps,
  { userId, jti }: { readonly userId: number; readonly jti: string },
): Promise<FactorChoice | undefined> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const isOpen = await isWaiting(tx, { userId, jti });
    return isOpen ? { options: await passkeyOptions(tx, deps, { userId, jti, now }) } : undefined;
  });
}

/**
 * Signs a user in at the authorize page with the one-time code of a single sign-on. Returns undefined if the code is
 * rejected for any reason.
 */
export function signInByProvider(
  deps: OAuthDeps,
  authorization: Authorization,
  presented: { code: string; verifier: string; requestContext: RequestContext },
): Promise<(SignedIn & { readonly email: string }) | undefined> {
  const { client } = authorization;
  return redeemSsoCode(deps, presented, async (tx, { id: userId, email, partnerId }, now) => {
    if (!admitsUser(client, { partnerId })) return new SsoError("foreign_user");
    const kind = needsConsent(client, authorization.redirectUri) ? "consent" : "code";
    return { kind, email, secret: await issueSecret(tx, authorization, { kind, userId, now }) };
  });
}

/**
 * The user's answer on the consent page. `secret` is the secret of `SignedIn` and identifies the sign-in that waits for
 * consent.
 */
interface ConsentAnswer {
  readonly secret: string;
  readonly requestContext: RequestContext;
}

/**
 * Issues the authorization code for a user who has given consent. Returns undefined if the sign-in has ended since the
 * consent page was shown.
 */
export async function grantConsent(
  { db, clock }: OAuthDeps,
  authorization: Authorization,
  { secret, requestContext }: ConsentAnswer,
): Promise<string | undefined> {
  const now = clock.now();
  const secretHash = hashSecret(secret);
  return db.transaction(async (tx) => {
    const known = await findAuthorizationCode(tx, secretHash);
    const user = known && (await holdPersonInClient(tx, { ...known, grant: GRANT_TYPE }));
    // The pending sign-in is read after the lock on the user, because a password reset may have ended it before the
    // lock was granted.
    const pending = await holdAuthorizationCode(tx, secretHash);
    if (user === undefined || pending?.state !== "consent" || pending.expiresAt <= now)
      return undefined;
    // The pending sign-in is deleted, so that a form that is sent twice yields only one code.
    await deleteAuthorizationCode(tx, secretHash);
    // The user gave consent to the scope that the page showed. So the code gets this scope, without the scopes for
    // which the client was registered since then.
    const agreed = { ...authorization, scope: pending.scope };
    const code = await issueSecret(tx, agreed, { kind: "code", userId: user.id, now });
    const details = { client_id: pending.clientId, scope: pending.scope };
    const actor = { userId: user.id, companyId: user.companyId, impersonatorId: null };
    await recordAudit(tx, { at: now, action: "CONSENT_GRANTED", actor, requestContext, details });
    return code;
  });
}

export async function denyConsent(
  { db, clock }: OAuthDeps,
  { secret, requestContext }: ConsentAnswer,
): Promise<void> {
  const at = clock.now();
  const secretHash = hashSecret(secret);
  await db.transaction(async (tx) => {
    const pending = await findAuthorizationCode(tx, secretHash);
    const user = pending && (await holdPerson(tx, pending.userId));
    if (user === undefined || !(await deleteAuthorizationCode(tx, secretHash))) return;
    const details = { client_id: pending?.clientId, scope: pending?.scope };
    const actor = { userId: user.id, companyId: user.companyId, impersonatorId: null };
    await recordAudit(tx, { at, action: "CONSENT_DENIED", actor, requestContext, details });
  });
}

/**
 * Stores the authorization code or the pending consent under the hash of a new secret. The caller must have locked
 * the user's row.
 */
async function issueSecret(
  tx: Tx,
  { client, redirectUri, codeChallenge, scope }: Authorization,
  { kind, userId, now }: { kind: SignedIn["kind"]; userId: number; now: Date },
): Promise<string> {
  const secret = newSecret();
  const isWritten = await insertAuthorizationCode(tx, {
    secretHash: hashSecret(secret),
    state: kind === "code" ? "issued" : "consent",
    clientId: client.clientId,
    userId,
    redirectUri,
    codeChallenge,
    scope,
    issuedAt: now,
    expiresAt: addMs(now, kind === "code" ? CODE_TTL_MS : PAGE_TTL_MS),
  });
  if (!isWritten)
    throw new OAuthError("unauthorized_client", "The client may not use this flow any more.");
  return secret;
}

/**
 * A valid authorization request, for which the user can be asked to sign in and consent (RFC 6749, 4.1.1; RFC 7636,
 * 4.3).
 */
export interface Authorization {
  readonly client: ActiveClient;
  readonly redirectUri: string;
  readonly state: string | undefined;
  readonly codeChallenge: string | null;
  readonly scope: string;
}

export type CheckedAuthorization =
  | { readonly kind: "good"; readonly authorization: Authorization }
  /**
   * The client or its redirect URI is invalid: the user sees `message` on a page and is not redirected to the client
   * (RFC 6749, 4.1.2.1).
   */
  | { readonly kind: "shown"; readonly message: string }
  | {
      readonly kind: "returned";
      readonly redirectUri: string;
      readonly state: string | undefined;
      readonly error: OAuthError;
    };

/**
 * Validates an authorization request. The client and its redirect URI come first, because an error is sent to the
 * redirect URI only after both are known to be valid.
 */
export async function checkAuthorization(
  deps: Pick<OAuthDeps, "db">,
  query: string,
): Promise<CheckedAuthorization> {
  const params = new Params(query);
  const origin = await findOrigin(deps, params);
  if (typeof origin === "string") return { kind: "shown", message: origin };
  const { redirectUri } = origin;
  const state = params.asGiven("state");
  try {
    const authorization = { ...origin, state, ...readRequest(params, origin.client) };
    return { kind: "good", authorization };
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    return { kind: "returned", redirectUri, state, error };
  }
}

/** Returns the client and its redirect URI, or an error sentence for the user if one of them is invalid. */
async function findOrigin(
  deps: Pick<OAuthDeps, "db">,
  params: Params,
): Promise<{ client: ActiveClient; redirectUri: string } | string> {
  try {
    const client = await lookUpClient(deps, params.required("client_id"));
    if (client === undefined) return "The app that sent you here is unknown.";
    const redirectUri = params.required("redirect_uri");
    if (client.redirectUris.some((one) => matchesRedirect(one, redirectUri)))
      return { client, redirectUri };
    return "The app that sent you here uses a redirect URI that it has not registered.";
  } catch (error) {
    if (error instanceof OAuthError) return `The app sent an incomplete request: ${error.message}`;
    throw error;
  }
}

const CHALLENGE_PATTERN = /^[A-Za-z0-9_-]{43}$/;

function readRequest(params: Params, client: ActiveClient) {
  params.refuseRepeated();
  // Request objects are rejected, because they could contain other values than the query parameters (RFC 9101, 6.2).
  for (const name of ["request", "request_uri"] as const)
    if (params.one(name) !== undefined)
      throw new OAuthError(`${name}_not_supported`, `${name} is not supported.`);
  const responseType = params.required("response_type");
  if (responseType !== "code")
    throw new OAuthError("unsupported_response_type", "Only the response type code is supported.");
  if (!client.grantTypes.includes("authorization_code"))
    throw new OAuthError("unauthorized_client", "The client may not use this flow.");
  if ((params.one("response_mode") ?? "query") !== "query")
    throw new OAuthError("invalid_request", "Only the response mode query is supported.");
  const scope = decideScope(client, readScopes(params.one("scope")));
  if (scope === undefined)
    throw new OAuthError("invalid_scope", "The requested scope exceeds the scopes of the client.");
  return { scope, codeChallenge: readChallenge(params, client) };
}

/**
 * Reads the PKCE challenge of an authorization request (contract 5.4). A challenge may be absent only for a
 * confidential client whose owner has allowed that. Only the method S256 is accepted, because `plain` gives no
 * protection.
 */
function readChallenge(params: Params, { confidential, requirePkce }: ActiveClient): string | null {
  const challenge = params.one("code_challenge");
  const method = params.one("code_challenge_method");
  if (challenge === undefined) {
    if (confidential && !requirePkce && method === undefined) return null;
    throw new OAuthError("invalid_request", "code_challenge is missing.");
  }
  if (method !== "S256")
    throw new OAuthError("invalid_request", "code_challenge_method must be S256.");
  if (!CHALLENGE_PATTERN.test(challenge))
    throw new OAuthError("invalid_request", "code_challenge is not the S256 of a verifier.");
  return challenge;
}
