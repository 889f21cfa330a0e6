import type { TokenDemand } from "../http/access.ts";
import type { Principal } from "../http/principal.ts";

/**
 * What a token is to its user (contract 3.10). `sign_in` comes from the login or the SSO exchange; `first_party` from a
 * first-party client, a password reset or an invitation; `personal` is a personal access token.
 */
type Standing =
  | "sign_in"
  | "first_party"
  | "personal"
  | "third_party"
  | "impersonation"
  | "portal"
  | "password_reset"
  | "refresh";

/** The tokens that each demand of a route takes: the table of contract 3.10. */
const TAKEN: Readonly<Record<TokenDemand, readonly Standing[]>> = {
  any: ["sign_in", "first_party", "personal", "third_party", "impersonation", "portal"],
  own: ["sign_in", "first_party", "personal"],
  person: ["sign_in", "first_party"],
  sign_in: ["sign_in"],
  password: ["sign_in", "first_party", "password_reset"],
};

type Kind = Pick<Principal, "tokenKind" | "signInMethod" | "isThirdParty">;

function standingOf({ tokenKind, signInMethod, isThirdParty }: Kind): Standing {
  switch (tokenKind) {
    case "access":
      if (isThirdParty) return "third_party";
      return signInMethod === "login" || signInMethod === "sso" ? "sign_in" : "first_party";
    case "dashboard_pat":
    case "api_pat":
      return isThirdParty ? "third_party" : "personal";
    case "impersonation":
    case "portal":
    case "password_reset":
    case "refresh":
      return tokenKind;
  }
}

/** Decides by the kind of a token alone; role and scope are asked elsewhere (guard.ts). */
export function isTaken(token: Kind, demand: TokenDemand): boolean {
  return TAKEN[demand].includes(standingOf(token));
}
