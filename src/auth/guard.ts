import type { Access, TokenDemand } from "../http/access.ts";
import type { Principal, Scope } from "../http/principal.ts";
import type { ProblemCode } from "../lib/problem.ts";
import { coversScopes } from "./decide.ts";
import { everything, nothing, type Opens } from "./portal-pages.ts";
import { isTaken } from "./authority.ts";

/** Admits every user of every company, whatever the token opens; without `scope`, by a token of any scope. */
export function anyUser(scope?: Scope): Access {
  return allow(() => true, scope, { opens: everything });
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
    { opens },
  );
}

/** Admits the owners alone: they say who else belongs to the partner (contract 10.5). */
export function partnerOwner(): Access {
  const admitted = partnerAdmin("*");
  return {
    ...admitted,
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
 * Narrows `access` to the user in person, for a route that makes, changes or ends what acts for people: users,
 * connections to identity providers, secrets (contract 3.10).
 */
export function inPerson(access: Access): Access {
  return narrowed(access, "person");
}

/** Narrows `access` to tokens in the user's own hands. */
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

/** Admits every user in person, with `scope` or, without it, with any. */
export function ownSignIn(scope?: Scope): Access {
  return allow(() => true, scope, { takes: "person" });
}

/** Contract 4.18: admits a token from login or the SSO exchange, and no other. */
export function dashboardSignIn(): Access {
  return allow(() => true, "*", { takes: "sign_in" });
}

/** Contract 4.15: admits the token that a mailed code gave, or the user in person. */
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

/** Admits every user to self-service (contract 3.3), by a token in their own hands. */
export function selfService(): Access {
  return allow(() => true, "*", { takes: "own" });
}

interface Narrowing {
  /** The pages that the route belongs to, for the sessions of portal links; none of them if absent. */
  readonly opens?: Opens | undefined;
  readonly takes?: TokenDemand;
}

/**
 * Refuses the wrong kind of user or of token as `forbidden`, and the right one with too narrow a scope for the lack of
 * it.
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
