import type { AuthorizationCode, OAuthClient } from "./model.ts";

/** What a client shows to have a code redeemed. */
interface Redemption {
  readonly clientId: string;
  readonly redirectUri: string;
  /** S256 of the verifier that was given; undefined if none was. */
  readonly challenge: string | undefined;
}

/** `replayed`: somebody has a copy of the code, so the sign-in that it began has to end (RFC 6749, 4.1.2). */
type RedemptionDecision = "redeem" | "refused" | "replayed";

export function decideRedemption(
  code: AuthorizationCode,
  shown: Redemption,
  now: Date,
): RedemptionDecision {
  // Another client that has seen the code must not be able to end the sign-in.
  if (code.state === "consent" || code.clientId !== shown.clientId) return "refused";
  if (code.state === "redeemed") return "replayed";
  if (code.expiresAt <= now || code.redirectUri !== shown.redirectUri) return "refused";
  // A verifier without a challenge is refused as well: somebody took the challenge away (RFC 9700, 2.1.1).
  return (code.codeChallenge ?? undefined) === shown.challenge ? "redeem" : "refused";
}

/**
 * The scope that a client gets (contract 5): what it requests of the scopes that it is registered for, or all of
 * these where it requests none. Undefined where it requests more.
 */
export function decideScope(
  { scopes }: Pick<OAuthClient, "scopes">,
  requested: readonly string[] | undefined,
): string | undefined {
  if (requested === undefined) return scopes.join(" ");
  const covered = scopes.includes("*") || requested.every((scope) => scopes.includes(scope));
  return covered ? requested.join(" ") : undefined;
}

/** Contract 5.6: a partner's client signs in users of that partner's tree only. */
export function admitsUser(
  client: Pick<OAuthClient, "companyId">,
  user: { readonly partnerId: number | null },
): boolean {
  return client.companyId === null || client.companyId === user.partnerId;
}
