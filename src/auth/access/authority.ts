import type { TokenDemand } from "../../http/access.ts";
import type { Principal } from "../../http/principal.ts";
import { coversScopes } from "../decide.ts";

/**
 * The authority of any object that can act: a token, an OAuth client, a user, an SSO connection, or a signing secret.
 * To make or change such an object, a caller must have at least the same authority (contract 3.9).
 */
export interface Authority {
  /** The tenant to which the authority is limited; null if it reaches every tenant. */
  readonly partnerId: number | null;
  /** The account to which the authority is limited; null if it reaches every account of the tenant. */
  readonly accountId: number | null;
  readonly scopes: readonly string[];
  /** The third-party OAuth client that holds the authority; null if the service itself or a user in person holds it. */
  readonly thirdParty: string | null;
  /** Whether the object acts as the user in person (contract 3.10); a personal access token does not. */
  readonly inPerson: boolean;
}

/** The authority of the service, which acts for itself: every scope and every tenant, without the consent of a user. */
export const SERVICE_AUTHORITY: Authority = {
  partnerId: null,
  accountId: null,
  scopes: ["*"],
  thirdParty: null,
  inPerson: true,
};

export function authorityOf(caller: Principal): Authority {
  const { partnerId, accountId, scopes, isThirdParty, clientId } = caller;
  return {
    partnerId,
    accountId,
    scopes: [...scopes],
    thirdParty: isThirdParty ? clientId : null,
    inPerson: isAccepted(caller, "person"),
  };
}

/** Returns the authority that the caller would have as a signed-in user with a token of all scopes. */
export function authorityInPerson(caller: Principal): Authority {
  return { ...authorityOf(caller), scopes: ["*"], thirdParty: null, inPerson: true };
}

/**
 * Returns the error code if `made` has more authority than the caller, or undefined if it does not. Every function that
 * creates, changes, shows or ends an object that can act, such as a token, must check this first.
 */
export function excessOf(
  caller: Principal,
  made: Authority,
): "forbidden" | "insufficient_scope" | undefined {
  const isWithinTenant = caller.partnerId === null || caller.partnerId === made.partnerId;
  const isWithinAccount = caller.accountId === null || caller.accountId === made.accountId;
  const isInHand = !caller.isThirdParty || caller.clientId === made.thirdParty;
  const isPerson = !made.inPerson || isAccepted(caller, "person");
  if (!isWithinTenant || !isWithinAccount || !isInHand || !isPerson) return "forbidden";
  return coversScopes(caller.scopes, made.scopes) ? undefined : "insufficient_scope";
}

/**
 * The relation of a token to its user (contract 3.10):
 * - `sign_in`: issued by the login or the SSO exchange;
 * - `first_party`: issued to a first-party client, or by a password reset or an invitation;
 * - `personal`: a personal access token;
 * - `integration`: the token of an integration, which is no person.
 */
type TokenClass =
  | "sign_in"
  | "first_party"
  | "personal"
  | "integration"
  | "third_party"
  | "impersonation"
  | "portal"
  | "password_reset"
  | "refresh"
  | "service"
  | "challenge";

/** The classes of tokens that a route accepts, by the demand of its access rule. This is the table of contract 3.10. */
const ACCEPTED: Readonly<Record<TokenDemand, readonly TokenClass[]>> = {
  any: [
    "sign_in",
    "first_party",
    "personal",
    "integration",
    "third_party",
    "impersonation",
    "portal",
  ],
  own: ["sign_in", "first_party", "personal"],
  person: ["sign_in", "first_party"],
  sign_in: ["sign_in"],
  password: ["sign_in", "first_party", "password_reset"],
  factor: ["sign_in", "first_party", "challenge"],
  challenge: ["challenge"],
  service: ["service"],
};

type ClassifiedToken = Pick<Principal, "tokenKind" | "signInMethod" | "isThirdParty" | "role">;

function tokenClassOf({ tokenKind, role, ...token }: ClassifiedToken): TokenClass {
  const { signInMethod, isThirdParty } = token;
  switch (tokenKind) {
    case "access":
    case "dashboard_pat":
    case "api_pat":
      if (isThirdParty) return "third_party";
      if (role === "partner_integration") return "integration";
      if (tokenKind !== "access") return "personal";
      return signInMethod === "login" || signInMethod === "sso" ? "sign_in" : "first_party";
    case "impersonation":
    case "portal":
    case "password_reset":
    case "refresh":
    case "service":
    case "challenge":
      return tokenKind;
  }
}

/**
 * Returns whether a route with this demand accepts the token. Only the class of the token counts here; guard.ts checks
 * role and scope.
 */
export function isAccepted(token: ClassifiedToken, demand: TokenDemand): boolean {
  return ACCEPTED[demand].includes(tokenClassOf(token));
}
