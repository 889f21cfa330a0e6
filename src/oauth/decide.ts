import type { AuthorizationCode, OAuthClient } from "./model.ts";

interface Redemption {
  readonly clientId: string;
  readonly redirectUri: string;
  /** S256 of the verifier that was given; undefined if none was. */
  readonly challenge: string | undefined;
}

/** `replayed`: somebody holds a copy, so what the code began has to end (RFC 6749, 4.1.2). */
export type RedemptionDecision = "redeem" | "refused" | "replayed";

export function decideRedemption(
  code: AuthorizationCode,
  asked: Redemption,
  now: Date,
): RedemptionDecision {
  // Another client cannot end a sign-in by guessing at what it has seen.
  if (code.state === "consent" || code.clientId !== asked.clientId) return "refused";
  if (code.state === "redeemed") return "replayed";
  if (code.expiresAt <= now || code.redirectUri !== asked.redirectUri) return "refused";
  // A verifier without a challenge is refused as well: somebody took the challenge away (RFC 9700, 2.1.1).
  return (code.codeChallenge ?? undefined) === asked.challenge ? "redeem" : "refused";
}

/**
 * decisions.md 2: the client's registered scopes are what it gets and the ceiling of what it may ask. Undefined: more
 * was asked for than it has.
 */
export function decideScope(
  { scopes }: Pick<OAuthClient, "scopes">,
  asked: readonly string[] | undefined,
): string | undefined {
  if (asked === undefined) return scopes.join(" ");
  const covered = scopes.includes("*") || asked.every((scope) => scopes.includes(scope));
  return covered ? asked.join(" ") : undefined;
}

/** decisions.md 2: a partner's client signs in users of that partner's tree only. */
export function admitsUser(
  client: Pick<OAuthClient, "companyId">,
  user: { readonly partnerId: number | null },
): boolean {
  return client.companyId === null || client.companyId === user.partnerId;
}
