import type { Access, TokenDemand } from "../../http/access.ts";
import type { Principal, Role, Scope, SERVICE_SCOPES } from "../../http/principal.ts";
import { Problem, type ProblemCode } from "../../lib/problem.ts";
import { coversScopes } from "../decide.ts";
import { everything, nothing, type Opens } from "./portal-pages.ts";
import { isAccepted } from "./authority.ts";

/**
 * Access rule that admits every user of every company, and every portal session. Without `scope`, a token of any scope
 * is accepted.
 */
export function anyUser(scope?: Scope): Access {
  return allow(() => true, scope, { opens: everything });
}

const PARTNER_ROLES: readonly Role[] = ["partner_owner", "partner_admin", "partner_integration"];

/**
 * Access rule that admits owners, admins and integrations of a partner, but no impersonator (contract 2.6 and 3.5). A
 * portal session, even one that an operator's link opened, is admitted if `opens` accepts its pages (contract 6.20).
 */
export function partnerAdmin(scope: Scope, opens?: Opens): Access {
  return allow(
    ({ companyType, role, impersonatorId, pages }) =>
      companyType === "partner" &&
      PARTNER_ROLES.includes(role) &&
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
 * Access rule that admits the platform's administrators. Their token must have the scope that the route names; the
 * default is a token of all scopes.
 */
export function superAdmin(scope: Scope = "*"): Access {
  return allow(
    ({ companyType, role }) => companyType === "platform" && role === "super_admin",
    scope,
  );
}

/**
 * Narrows `access` to tokens that act as the user in person (contract 3.10). It is for routes that create, change or
 * end an object that can act for users: a user, an SSO connection, a secret.
 */
export function inPerson(access: Access): Access {
  return narrowed(access, "person");
}

/**
 * Narrows `access` to tokens that the user holds personally: sign-ins in first-party clients and personal access
 * tokens. Tokens of third-party clients, impersonations and portal sessions are rejected.
 */
export function firstHand(access: Access): Access {
  return narrowed(access, "own");
}

/**
 * Narrows `access`: if a second factor is required of the user, the session must be fresh. It is for routes that show a
 * secret, or that create, change or end an object that can act for users (contract 4.27).
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
 * Declares in the API description that the route may demand a step-up, because one of its fields is an address that
 * receives data. A step-up is necessary only if such an address changes. So the function that changes the row calls
 * `guardReceivers` after it has locked the row.
 */
export function withStepUpOfReceivers(access: Access): Access {
  return { ...access, stepUp: true };
}

/**
 * Throws `step_up_required` if the session needs a step-up and the request changes the set of addresses that receive
 * data. The order of the addresses does not count. Null means that there is no address.
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
 * Narrows `access`: portal sessions that an operator's link opened are rejected. It is for routes that return a signing
 * secret of a partner, which no operator may see (contract 10.3).
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
    refuse: (principal) => (isAccepted(principal, takes) ? refuse(principal) : "forbidden"),
  };
}

/**
 * Access rule that admits tokens that act as the user in person (contract 3.10). Without `scope`, a token of any scope
 * is accepted.
 */
export function ownSignIn(scope?: Scope): Access {
  return allow(() => true, scope, { takes: "person" });
}

/** Access rule that admits only a token from login or the SSO exchange (contract 4.18). */
export function dashboardSignIn(): Access {
  return allow(() => true, "*", { takes: "sign_in" });
}

/** Access rule that admits the token issued for a mailed code, or the user in person (contract 4.15). */
export function passwordSetter(): Access {
  const own = ownSignIn("*");
  return {
    scope: undefined,
    takes: "password",
    refuse(principal) {
      if (!isAccepted(principal, "password")) return "forbidden";
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
    refuse: (principal) => (isAccepted(principal, "challenge") ? undefined : own.refuse(principal)),
  };
}

/** Access rule that admits only a sign-in that waits for a second factor (contract 4.27). */
export function waitingSignIn(): Access {
  return allow(() => true, undefined, { takes: "challenge" });
}

/** Access rule of self-service. It admits every user with a token that the user holds personally (contract 3.3). */
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
      if (!isAccepted(principal, takes) || !admits(principal)) return "forbidden";
      if (principal.pages !== null && !opens(principal.pages)) return "forbidden";
      const isCovered = scope === undefined || coversScopes(principal.scopes, [scope]);
      return isCovered ? undefined : "insufficient_scope";
    },
  };
}
