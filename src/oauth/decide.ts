import type { AuthorizationCode, OAuthClient } from "./model.ts";

/** The values that a client presents to redeem an authorization code. */
interface Redemption {
  readonly clientId: string;
  readonly redirectUri: string;
  /** The S256 challenge of the PKCE verifier that the client presents; undefined without a verifier. */
  readonly challenge: string | undefined;
}

/**
 * Decision on the redemption of an authorization code. `replayed` means that the code was redeemed before. Another
 * party may have a copy of it, so the sign-in that the code started must end (RFC 6749, 4.1.2).
 */
type RedemptionDecision = "redeem" | "refused" | "replayed";

export function decideRedemption(
  code: AuthorizationCode,
  shown: Redemption,
  now: Date,
): RedemptionDecision {
  // The client is compared before `replayed` is returned, so that another client that has seen the code cannot end the
  // sign-in.
  if (code.state === "consent" || code.clientId !== shown.clientId) return "refused";
  if (code.state === "redeemed") return "replayed";
  if (code.expiresAt <= now || code.redirectUri !== shown.redirectUri) return "refused";
  // A PKCE verifier is rejected if no challenge is stored, because an attacker may have removed the challenge from the
  // authorization request (RFC 9700, 2.1.1).
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
 * Returns whether a sign-in at the authorize page needs the user's consent. A first-party client needs no consent if it
 * proves its identity with a secret or with an https redirect URI. An app on a device with a loopback address or a
 * private-use scheme cannot prove its identity, so the user is asked (RFC 8252, 8.6).
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
