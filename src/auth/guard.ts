import type { Access } from "../http/access.ts";
import type { ProblemCode } from "../lib/problem.ts";
import type { Principal, Scope } from "../http/principal.ts";

/** Every user of any company; without a scope, whatever the token's. */
export function anyUser(scope?: Scope): Access {
  return allow(() => true, scope);
}

/** Owners and admins of a partner, in person (interface.md 5.4; decisions.md 1, order of checks). */
export function partnerAdmin(scope: Scope): Access {
  return allow(
    ({ companyType, role, impersonatorId }) =>
      companyType === "partner" &&
      (role === "partner_owner" || role === "partner_admin") &&
      impersonatorId === null,
    scope,
  );
}

/** Users of an account and of its locations, and whoever acts for its owner (decisions.md 2, sessions). */
export function accountUser(scope: Scope): Access {
  return allow(({ companyType }) => companyType === "account", scope);
}

/** The platform's own administrators; a token that was narrowed does not administrate, unless its scope is named. */
export function superAdmin(scope: Scope = "*"): Access {
  return allow(
    ({ companyType, role }) => companyType === "platform" && role === "super_admin",
    scope,
  );
}

/**
 * The user's own sign-in: at the service's pages, through the identity provider, or in a first-party client. Personal
 * access tokens, impersonators and third parties are not the user in person.
 */
export function ownSignIn(scope?: Scope): Access {
  return allow(isOwnSignIn, scope);
}

/** decisions.md 2, dashboard personal access token: a token from login or the SSO exchange, and no other. */
export function dashboardSignIn(): Access {
  return allow(
    (principal) =>
      isOwnSignIn(principal) &&
      (principal.signInMethod === "login" || principal.signInMethod === "sso"),
    "*",
  );
}

/** decisions.md 2, `POST /reset-password`: the token that a mailed code gave, or the user's own sign-in. */
export function passwordSetter(): Access {
  const own = ownSignIn("*");
  return {
    refuse: (principal) =>
      principal.tokenKind === "password_reset" ? undefined : own.refuse(principal),
  };
}

/** Self-service of any user (interface.md 5.2), by a token of the user's own: not for others who hold one. */
export function selfService(): Access {
  return allow(({ isThirdParty, impersonatorId }) => !isThirdParty && impersonatorId === null, "*");
}

function isOwnSignIn({ tokenKind, isThirdParty }: Principal): boolean {
  return tokenKind === "access" && !isThirdParty;
}

/** A wrong kind of user is `forbidden`; the right kind with too narrow a token lacks the scope. */
function allow(admits: (principal: Principal) => boolean, scope: Scope | undefined): Access {
  return {
    refuse(principal): ProblemCode | undefined {
      // Such a token works for the password reset only (decisions.md 2, `POST /reset-password`).
      if (principal.tokenKind === "password_reset" || !admits(principal)) return "forbidden";
      return scope === undefined || hasScope(principal, scope) ? undefined : "insufficient_scope";
    },
  };
}

function hasScope({ scopes }: Principal, scope: Scope): boolean {
  return scopes.has("*") || scopes.has(scope);
}
