import type { Access, TokenDemand } from "../http/access.ts";
import type { Principal, Scope, SERVICE_SCOPES } from "../http/principal.ts";
import { Problem, type ProblemCode } from "../lib/problem.ts";
import { coversScopes } from "./decide.ts";
import { everything, nothing, type Opens } from "./portal-pages.ts";
import { isTaken } from "./authority.ts";

/**
 * Access rule that admits every user of every company, also on the pages of a portal link. Without `scope`, a token
 * of any scope is accepted.
 */
export function anyUser(scope?: Scope): Access {
  return allow(() => true, scope, { opens: everything });
}

/**
 * Access rule that admits owners and admins of a partner, but no impersonator (contract 2.6 and 3.5). A portal
 * session, even one that an operator's link opened, is admitted if `opens` accepts its pages (contract 6.20).
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

/**
 * Access rule that admits only owners of a partner, because owners decide about the partner's other users
 * (contract 10.5).
 */
export function partnerOwner(): Access {
  const admitted = partnerAdmin("*");
  return {
    ...admitted,
    refuse: (principal) =>
      admitted.refuse(principal) ?? (principal.role === "partner_owner" ? undefined : "forbidden"),
  };
}

/** Access rule that admits only owners of an account, who manage the access of its other users (contract 4.25). */
export function accountOwner(): Access {
  return allow(
    ({ companyType, role }) => companyType === "account" && role === "account_owner",
    "*",
  );
}

/** Access rule that admits users of an account and of its locations, and impersonators of its owner (contract 3.3). */
export function accountUser(scope: Scope): Access {
  return allow(({ companyType }) => companyType === "account", scope);
}

/**
 * Access rule that admits the platform's administrators, with a token of all scopes or of the scope that the route
 * names.
 */
export function superAdmin(scope: Scope = "*"): Access {
  return allow(
    ({ companyType, role }) => companyType === "platform" && role === "super_admin",
    scope,
  );
}

/**
 * Narrows `access` to the user in person. It is for routes that make, change or end an object that can act for users:
 * a user, a connection to an identity provider, a secret (contract 3.10).
 */
export function inPerson(access: Access): Access {
  return narrowed(access, "person");
}

/**
 * Narrows `access` to tokens in the user's own hands. Tokens of third-party clients, impersonations and portal
 * sessions are rejected.
 */
export function firstHand(access: Access): Access {
  return narrowed(access, "own");
}

/**
 * Narrows `access` to fresh sessions, for people of whom a second factor is required. It is for routes that show a secret,
 * or that make, change or end something that can act (contract 4.27).
 */
export function withStepUp(access: Access): Access {
  return {
    ...access,
    stepUp: true,
    refuse: (principal) =>
      access.refuse(principal) ?? (principal.needsStepUp ? "step_up_required" : undefined),
  };
}

/**
 * Declares the step-up of a route that changes addresses which receive data, besides other fields. It is asked for only
 * where an address changes, so the action compares them under the lock of their row, by `guardReceivers`.
 */
export function withStepUpOfReceivers(access: Access): Access {
  return { ...access, stepUp: true };
}

/**
 * Refuses a session that is not fresh if a request changes addresses that receive data, in whatever order they are given.
 * Null stands for no address.
 */
export function guardReceivers(
  { needsStepUp }: Pick<Principal, "needsStepUp">,
  before: readonly (string | null)[] | null,
  after: readonly (string | null)[] | null,
): void {
  const changed = new Set(before).symmetricDifference(new Set(after));
  if (needsStepUp && changed.size > 0) throw new Problem("step_up_required");
}

/**
 * Narrows `access` to sessions that no operator's portal link opened. It is for routes that answer a signing secret of a
 * partner, which no operator sees (contract 10.3).
 */
export function hiddenFromOperators({ scope, takes, refuse }: Access): Access {
  return {
    scope,
    takes,
    refuse: (principal) => (principal.impersonatorId === null ? refuse(principal) : "forbidden"),
  };
}

function narrowed({ scope, refuse }: Access, takes: TokenDemand): Access {
  return {
    scope,
    takes,
    refuse: (principal) => (isTaken(principal, takes) ? refuse(principal) : "forbidden"),
  };
}

/** Access rule that admits every user in person, with a token of the named scope or, without `scope`, of any scope. */
export function ownSignIn(scope?: Scope): Access {
  return allow(() => true, scope, { takes: "person" });
}

/** Access rule that admits only a token from login or the SSO exchange (contract 4.18). */
export function dashboardSignIn(): Access {
  return allow(() => true, "*", { takes: "sign_in" });
}

/** Access rule that admits the token that a mailed code gave, or the user in person (contract 4.15). */
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

/** Access rule that admits the user in person, or a sign-in that waits for a second factor (contract 4.27). */
export function factorHolder(): Access {
  const own = ownSignIn("*");
  return {
    scope: undefined,
    takes: "factor",
    refuse: (principal) => (isTaken(principal, "challenge") ? undefined : own.refuse(principal)),
  };
}

/** Access rule that admits only a sign-in that waits for a second factor (contract 4.27). */
export function waitingSignIn(): Access {
  return allow(() => true, undefined, { takes: "challenge" });
}

/** Access rule of self-service. It admits every user with a token in the user's own hands (contract 3.3). */
export function selfService(): Access {
  return allow(() => true, "*", { takes: "own" });
}

/** Access rule that admits services of the platform with a token of this scope (contract 10.7). */
export function platformService(scope: (typeof SERVICE_SCOPES)[number]): Access {
  return allow(({ role }) => role === "service", scope, { takes: "service" });
}

interface Narrowing {
  /**
   * Decides whether the route belongs to the pages of a portal session; if absent, no portal session may use the
   * route.
   */
  readonly opens?: Opens | undefined;
  readonly takes?: TokenDemand;
}

/**
 * Builds an access rule. A user or token of the wrong kind gets `forbidden`. A token of the right kind with too
 * narrow a scope gets `insufficient_scope`.
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
