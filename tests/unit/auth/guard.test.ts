import { describe, expect, test } from "bun:test";

import {
  accountUser,
  anyUser,
  inPerson,
  ownSignIn,
  partnerAdmin,
  partnerOwner,
  selfService,
  superAdmin,
} from "../../../src/auth/access/guard.ts";
import type { Principal, Role, TokenKind } from "../../../src/http/principal.ts";

// Roles and kinds of tokens are tested on all routes by public-routes.test.ts and in-person-matrix.test.ts.

describe("access rules", () => {
  test("refuse a token without the scope with insufficient_scope, and a wrong kind of user with forbidden", () => {
    const narrow = { scopes: new Set(["reviews:read"]) };
    expect(accountUser("reviews:read").refuse(principal("account_user", narrow))).toBeUndefined();
    for (const [access, role, refusal] of [
      [accountUser("reviews:write"), "account_user", "insufficient_scope"],
      [superAdmin(), "super_admin", "insufficient_scope"],
      [partnerAdmin("webhooks:read"), "account_user", "forbidden"],
    ] as const)
      expect(access.refuse(principal(role, narrow))).toBe(refusal);
  });

  test("without a scope admit a token of any scope", () => {
    expect(anyUser().refuse(principal("account_user", { scopes: new Set([]) }))).toBeUndefined();
  });

  test("count a role only in a company of its type", () => {
    const misplaced = principal("partner_owner", { companyType: "account" });
    expect(partnerAdmin("webhooks:read").refuse(misplaced)).toBe("forbidden");
    const posing = principal("super_admin", { companyType: "partner" });
    expect(superAdmin().refuse(posing)).toBe("forbidden");
  });

  test.each<[TokenKind, string]>([
    ["password_reset", "password:reset"],
    ["challenge", "second-factor"],
    ["refresh", "*"],
    ["service", "actions:write"],
  ])("without a demand reject a token of kind %s, which is for one purpose", (tokenKind, scope) => {
    const token = { tokenKind, scopes: new Set(["*", scope]) };
    for (const [access, role] of [
      [anyUser(), "account_owner"],
      [accountUser("reviews:read"), "account_owner"],
      [partnerAdmin("reviews:read"), "partner_owner"],
      [superAdmin(), "super_admin"],
    ] as const)
      expect(access.refuse(principal(role, token))).toBe("forbidden");
  });

  test("reject a personal token of a client that is no longer first-party, where the user's own is needed", () => {
    const token = { tokenKind: "api_pat", clientId: "c", signInMethod: null } as const;
    expect(selfService().refuse(principal("account_owner", token))).toBeUndefined();
    for (const access of [selfService(), inPerson(accountUser("*"))])
      expect(access.refuse(principal("account_owner", { ...token, isThirdParty: true }))).toBe(
        "forbidden",
      );
  });
});

test("an integration passes for an admin, and for no person whatever its token is", () => {
  for (const tokenKind of ["dashboard_pat", "api_pat", "access"] as const) {
    const caller = principal("partner_integration", { tokenKind });
    expect(partnerAdmin("webhooks:read").refuse(caller)).toBeUndefined();
    for (const access of [partnerOwner(), selfService(), ownSignIn(), inPerson(partnerAdmin("*"))])
      expect(access.refuse(caller)).toBe("forbidden");
  }
});

test("the session of a portal link is rejected by every route that does not open its pages, whatever its scopes", () => {
  const opened = { tokenKind: "portal", pages: ["webhooks"], signInMethod: "portal" } as const;
  const session = principal("partner_owner", opened);
  const opens = (pages: readonly string[]) => pages.includes("webhooks");
  expect(partnerAdmin("webhooks:read").refuse(session)).toBe("forbidden");
  expect(partnerAdmin("webhooks:read", opens).refuse(session)).toBeUndefined();
  expect(partnerAdmin("webhooks:read", opens).refuse({ ...session, pages: ["other"] })).toBe(
    "forbidden",
  );
  for (const access of [partnerOwner(), selfService(), ownSignIn(), ownSignIn("*")])
    expect(access.refuse(session)).toBe("forbidden");
  // A portal session may look at its own user and sign out, as every user may.
  expect(anyUser().refuse(session)).toBeUndefined();
});

function principal(role: Role, over: Partial<Principal> = {}): Principal {
  const levels = { super: "platform", partner: "partner" } as const;
  const [level = ""] = role.split("_");
  const companyType = level === "super" || level === "partner" ? levels[level] : "account";
  return {
    userId: 1,
    userName: "Somebody",
    role,
    companyId: 1,
    companyType,
    partnerId: null,
    accountId: null,
    storeIds: null,
    scopes: new Set(["*"]),
    tokenKind: "access",
    jti: "j",
    familyId: null,
    signInMethod: "login",
    signedInAt: null,
    factorAt: null,
    needsStepUp: false,
    clientId: null,
    isThirdParty: false,
    impersonatorId: null,
    pages: null,
    actsForPartners: null,
    ...over,
  };
}
