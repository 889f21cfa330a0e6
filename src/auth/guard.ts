import type { Access } from "../http/access.ts";
import type { Principal, Scope } from "../http/principal.ts";
import type { ProblemCode } from "../lib/problem.ts";
import { authorityInPerson, excessOf } from "./authority.ts";
import { coversScopes } from "./decide.ts";
import { everything, nothing, type Opens } from "./portal-pages.ts";

/** Admits every user of every company, whatever the token opens; without `scope`, by a token of any scope. */
export function anyUser(scope?: Scope): Access {
  return allow(() => true, scope, everything);
}

/**
 * Admits owners and admins of a partner, but nobody who acts for them (contract 2.6 and 3.5). The session of a portal
 * link, an operator's too, is admitted where it `opens` the page (contract 6.20).
 */
export function partnerAdmin(scope: Scope, opens?: Opens): Access {
  return allow(
    ({ companyType, role, impersonatorId, pages }) =>
      companyType === "partner" &&
      (role === "partner_owner" || role === "partner_admin") &&
      (impersonatorId === null || pages !== null),
    scope,
    opens,
  );
}

/** Admits the owners alone: they say who else belongs to the partner (contract 10.5). */
export function partnerOwner(): Access {
  const admitted = partnerAdmin("*");
  return {
    scope: admitted.scope,
    refuse: (principal) =>
      admitted.refuse(principal) ?? (principal.role === "partner_owner" ? undefined : "forbidden"),
  };
}

/** Admits users of an account and of its locations, and whoever acts for its owner (contract 3.3). */
export function accountUser(scope: Scope): Access {
  return allow(({ companyType }) => companyType === "account", scope);
}

/** Admits the platform's own administrators, by a token of all scopes or of the one that a route names. */
export function superAdmin(scope: Scope = "*"): Access {
  return allow(
    ({ companyType, role }) => companyType === "platform" && role === "super_admin",
    scope,
  );
}

/**
 * Admits whom `access` admits to a route that makes or changes what acts for people in person: users, connections to
 * identity providers, secrets. A third party that holds a token has less (contract 3.9).
 */
export function inPerson(access: Access): Access {
  return {
    scope: access.scope,
    refuse: (principal) =>
      access.refuse(principal) ?? excessOf(principal, authorityInPerson(principal)),
  };
}

/**
 * Admits the token of a user's own sign-in: at the service's pages, through the identity provider, or in a first-party
 * client. Personal access tokens, impersonators and third parties are not the user in person.
 */
export function ownSignIn(scope?: Scope): Access {
  return allow(isOwnSignIn, scope);
}

/** Contract 4.18: admits a token from login or the SSO exchange, and no other. */
export function dashboardSignIn(): Access {
  return allow(
    (principal) =>
      isOwnSignIn(principal) &&
      (principal.signInMethod === "login" || principal.signInMethod === "sso"),
    "*",
  );
}

/** Contract 4.15: admits the token that a mailed code gave, or the user's own sign-in. */
export function passwordSetter(): Access {
  const own = ownSignIn("*");
  return {
    scope: undefined,
    refuse: (principal) =>
      principal.tokenKind === "password_reset" ? undefined : own.refuse(principal),
  };
}

/**
 * Admits every user to self-service (contract 3.3), but no third party or impersonator who holds a token of theirs.
 */
export function selfService(): Access {
  return allow(({ isThirdParty, impersonatorId }) => !isThirdParty && impersonatorId === null, "*");
}

function isOwnSignIn({ tokenKind, isThirdParty }: Principal): boolean {
  return tokenKind === "access" && !isThirdParty;
}

/**
 * Refuses the wrong kind of user as `forbidden`, and the right kind with too narrow a token for the lack of its scope.
 */
function allow(
  admits: (principal: Principal) => boolean,
  scope: Scope | undefined,
  opens: Opens = nothing,
): Access {
  return {
    scope,
    refuse(principal): ProblemCode | undefined {
      // Such a token works for the password reset only (contract 4.15).
      if (principal.tokenKind === "password_reset" || !admits(principal)) return "forbidden";
      if (principal.pages !== null && !opens(principal.pages)) return "forbidden";
      const isCovered = scope === undefined || coversScopes(principal.scopes, [scope]);
      return isCovered ? undefined : "insufficient_scope";
    },
  };
}
