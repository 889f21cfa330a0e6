import type { AuthorizationCode, OAuthClient } from "./model.ts";

/** The values that a client presents to redeem an authorization code. */
interface Redemption {
  readonly clientId: string;
  readonly redirectUri: string;
  /** The S256 challenge of the PKCE verifier that the client presents; undefined without a verifier. */
  readonly challenge: string | undefined;
}

/**
 * Decision on the redemption of an authorization code. `replayed` means that another party has a copy of the code, so
 * the sign-in that the code started must end (RFC 6749, 4.1.2).
 */
type RedemptionDecision = "redeem" | "refused" | "replayed";

export function decideRedemption(
  code: AuthorizationCode,
  shown: Redemption,
  now: Date,
): RedemptionDecision {
  // The client is compared before `replayed` is returned: another client that has seen the code must not be able to
  // end the sign-in.
  if (code.state === "consent" || code.clientId !== shown.clientId) return "refused";
  if (code.state === "redeemed") return "replayed";
  if (code.expiresAt <= now || code.redirectUri !== shown.redirectUri) return "refused";
  // A PKCE verifier without a stored challenge is rejected too, because an attacker may have removed the challenge
  // from the request (RFC 9700, 2.1.1).
  return (code.codeChallenge ?? undefined) === shown.challenge ? "redeem" : "refused";
}

/**
 * Returns the scope that a client gets (contract 5): the requested scopes, or all scopes for which the client is
 * registered if it requests none. Returns undefined if it requests a scope for which it is not registered.
 */
export function decideScope(
  { scopes }: Pick<OAuthClient, "scopes">,
  requested: readonly string[] | undefined,
): string | undefined {
  if (requested === undefined) return scopes.join(" ");
  const covered = scopes.includes("*") || requested.every((scope) => scopes.includes(scope));
  return covered ? requested.join(" ") : undefined;
}

/**
 * Returns whether a sign-in at the authorize page needs the user's consent. A first-party client is part of the service if it
 * proves its identity: by its secret, or because the answer goes to an https site. An app on a device that claims a loopback
 * address or a scheme of its own does not, so the user is asked (RFC 8252, 8.6).
 */
export function needsConsent(
  { firstParty, confidential }: Pick<OAuthClient, "firstParty" | "confidential">,
  redirectUri: string,
): boolean {
  return !(firstParty && (confidential || redirectUri.startsWith("https:")));
}

/**
 * Returns whether the client may sign in the user: a partner's client admits only users of the partner and its
 * accounts (contract 5.6).
 */
export function admitsUser(
  client: Pick<OAuthClient, "companyId">,
  user: { readonly partnerId: number | null },
): boolean {
  return client.companyId === null || client.companyId === user.partnerId;
}
