import type { Access, TokenDemand } from "../http/access.ts";
import type { Principal, Scope } from "../http/principal.ts";
import type { ProblemCode } from "../lib/problem.ts";
import { coversScopes } from "./decide.ts";
import { everything, nothing, type Opens } from "./portal-pages.ts";
import { isTaken } from "./authority.ts";

/**
 * Admits every user of every company, also on the pages of a portal link. Without `scope`, a token of any scope will
 * do.
 */
export function anyUser(scope?: Scope): Access {
  return allow(() => true, scope, { opens: everything });
}

/**
 * Admits owners and admins of a partner, but no impersonator (contract 2.6 and 3.5). A portal session, even one that
 * an operator's link opened, is admitted if `opens` accepts its pages (contract 6.20).
 */
export function partnerAdmin(scope: Scope, opens?: Opens): Access {
  return allow(
    ({ companyType, role, impersonatorId, pages }) =>
      companyType === "partner" &&
      (role === "partner_owner" || role === "partner_admin") &&
      (impersonatorId === null || pages !== null),
    scope,
    { opens },
  );
}

/** Admits only owners of a partner, because they decide about the partner's other users (contract 10.5). */
export function partnerOwner(): Access {
  const admitted = partnerAdmin("*");
  return {
    ...admitted,
    refuse: (principal) =>
      admitted.refuse(principal) ?? (principal.role === "partner_owner" ? undefined : "forbidden"),
  };
}

/** Admits users of an account and of its locations, and impersonators of its owner (contract 3.3). */
export function accountUser(scope: Scope): Access {
  return allow(({ companyType }) => companyType === "account", scope);
}

/** Admits the platform's administrators, with a token of all scopes or of the scope that the route names. */
export function superAdmin(scope: Scope = "*"): Access {
  return allow(
    ({ companyType, role }) => companyType === "platform" && role === "super_admin",
    scope,
  );
}

/**
 * Narrows `access` to the user in person, for a route that makes, changes or ends something that can act for users: a
 * user, a connection to an identity provider, a secret (contract 3.10).
 */
export function inPerson(access: Access): Access {
  return narrowed(access, "person");
}

/** Narrows `access` to tokens in the user's own hands: no third-party client, no impersonation, no portal session. */
export function firstHand(access: Access): Access {
  return narrowed(access, "own");
}

function narrowed({ scope, refuse }: Access, takes: TokenDemand): Access {
  return {
    scope,
    takes,
    refuse: (principal) => (isTaken(principal, takes) ? refuse(principal) : "forbidden"),
  };
}

/** Admits every user in person, with a token of the scope or, without `scope`, of any scope. */
export function ownSignIn(scope?: Scope): Access {
  return allow(() => true, scope, { takes: "person" });
}

/** Admits only a token from login or the SSO exchange (contract 4.18). */
export function dashboardSignIn(): Access {
  return allow(() => true, "*", { takes: "sign_in" });
}

/** Admits the token that a mailed code gave, or the user in person (contract 4.15). */
export function passwordSetter(): Access {
  const own = ownSignIn("*");
  return {
    scope: undefined,
    takes: "password",
    refuse(principal) {
      if (!isTaken(principal, "password")) return "forbidden";
      return principal.tokenKind === "password_reset" ? undefined : own.refuse(principal);
    },
  };
}

/** Admits every user to self-service, with a token in the user's own hands (contract 3.3). */
export function selfService(): Access {
  return allow(() => true, "*", { takes: "own" });
}

interface Narrowing {
  /** Decides by the pages of a portal session whether the route is among them; absent means that none of them is. */
  readonly opens?: Opens | undefined;
  readonly takes?: TokenDemand;
}

/**
 * Builds an access rule. A wrong kind of user or token gives `forbidden`. The right kind with too narrow a scope
 * gives `insufficient_scope`.
 */
function allow(
  admits: (principal: Principal) => boolean,
  scope: Scope | undefined,
  { opens = nothing, takes = "any" }: Narrowing = {},
): Access {
  return {
    scope,
    takes,
    refuse(principal): ProblemCode | undefined {
      if (!isTaken(principal, takes) || !admits(principal)) return "forbidden";
      if (principal.pages !== null && !opens(principal.pages)) return "forbidden";
      const isCovered = scope === undefined || coversScopes(principal.scopes, [scope]);
      return isCovered ? undefined : "insufficient_scope";
    },
  };
}
