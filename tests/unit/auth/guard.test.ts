import { describe, expect, test } from "bun:test";

import {
  accountUser,
  anyUser,
  dashboardSignIn,
  firstHand,
  inPerson,
  ownSignIn,
  partnerAdmin,
  partnerOwner,
  passwordSetter,
  selfService,
  superAdmin,
} from "../../../src/auth/access/guard.ts";
import type { Principal, Role, TokenKind } from "../../../src/http/principal.ts";

describe("access rules by role", () => {
  test.each(TABLE)("$name to a $role: $admitted", ({ access, role, admitted }) => {
    expect(access.refuse(principal(role))).toBe(admitted ? undefined : "forbidden");
  });
});

describe("access rules by scope", () => {
  const admitted = TABLE.filter((row) => row.admitted);

  test.each(admitted)("$name admits a $role whose token names the scope", ({ access, role }) => {
    expect(access.refuse(principal(role, { scopes: new Set(["reviews:read"]) }))).toBeUndefined();
  });

  test.each(admitted)(
    "$name rejects a $role with insufficient_scope if only the scope is missing",
    ({ access, role }) => {
      const narrow = principal(role, { scopes: new Set(["reviews:write"]) });
      expect(access.refuse(narrow)).toBe("insufficient_scope");
    },
  );

  test("a wrong kind of user gets forbidden, not insufficient_scope", () => {
    const narrow = principal("account_user", { scopes: new Set(["reviews:write"]) });
    expect(RULES.partnerAdmin.access.refuse(narrow)).toBe("forbidden");
  });

  test("without a scope in the rule every token is admitted", () => {
    expect(anyUser().refuse(principal("account_user", { scopes: new Set([]) }))).toBeUndefined();
  });

  test("a super-admin's token with a narrow scope gives no administrator access", () => {
    const narrow = principal("super_admin", { scopes: new Set(["reviews:read"]) });
    expect(superAdmin().refuse(narrow)).toBe("insufficient_scope");
  });
});

describe("access rules by kind of token", () => {
  const kinds: TokenKind[] = ["access", "dashboard_pat", "api_pat", "impersonation"];

  test.each(kinds)(
    "a token of kind %s is admitted like any other by a rule without a demand",
    (tokenKind) => {
      expect(
        accountUser("reviews:read").refuse(principal("account_owner", { tokenKind })),
      ).toBeUndefined();
    },
  );

  test.each(TABLE)("$name rejects a $role with a token for one purpose", ({ access, role }) => {
    for (const [tokenKind, scope] of ONE_PURPOSE) {
      const token = principal(role, { tokenKind, scopes: new Set(["*", scope]) });
      expect([tokenKind, access.refuse(token)]).toEqual([tokenKind, "forbidden"]);
    }
  });

  test("an impersonator may use the account's routes and never the partner's", () => {
    const acting = { tokenKind: "impersonation", impersonatorId: 2 } as const;
    expect(accountUser("reviews:read").refuse(principal("account_owner", acting))).toBeUndefined();
    expect(partnerAdmin("reviews:read").refuse(principal("partner_owner", acting))).toBe(
      "forbidden",
    );
  });

  test("a role counts only in a company of its type", () => {
    const misplaced = principal("partner_owner", { companyType: "account" });
    expect(partnerAdmin("webhooks:read").refuse(misplaced)).toBe("forbidden");
    const posing = principal("super_admin", { companyType: "partner" });
    expect(superAdmin().refuse(posing)).toBe("forbidden");
  });
});

describe("access rules by the origin of the token", () => {
  const kinds = {
    login: {},
    sso: { signInMethod: "sso" },
    "fresh from a reset": { signInMethod: "password_reset" },
    "first-party client": { signInMethod: "password_grant", clientId: "c" },
    "third-party client": {
      signInMethod: "authorization_code",
      clientId: "c",
      isThirdParty: true,
    },
    "narrowed login": { scopes: new Set(["reviews:read"]) },
    "personal of the dashboard": { tokenKind: "dashboard_pat", signInMethod: null },
    "personal of the API": { tokenKind: "api_pat", signInMethod: null },
    "personal of a client that lost its trust": {
      tokenKind: "api_pat",
      signInMethod: null,
      clientId: "c",
      isThirdParty: true,
    },
    refresh: { tokenKind: "refresh", signInMethod: "password_grant", clientId: "c" },
    impersonation: {
      tokenKind: "impersonation",
      signInMethod: "impersonation",
      impersonatorId: 2,
    },
    "code for a password": {
      tokenKind: "password_reset",
      signInMethod: null,
      scopes: new Set(["password:reset"]),
    },
  } as const satisfies Record<string, Partial<Principal>>;
  const rules = {
    inPerson: inPerson(accountUser("*")),
    firstHand: firstHand(accountUser("*")),
    passwordSetter: passwordSetter(),
    ownSignIn: ownSignIn("*"),
    dashboardSignIn: dashboardSignIn(),
    selfService: selfService(),
  };
  type Kind = keyof typeof kinds;
  const admits: Record<keyof typeof rules, Kind[]> = {
    inPerson: ["login", "sso", "fresh from a reset", "first-party client"],
    firstHand: [
      "login",
      "sso",
      "fresh from a reset",
      "first-party client",
      "personal of the dashboard",
      "personal of the API",
    ],
    passwordSetter: [
      "login",
      "sso",
      "fresh from a reset",
      "first-party client",
      "code for a password",
    ],
    ownSignIn: ["login", "sso", "fresh from a reset", "first-party client"],
    dashboardSignIn: ["login", "sso"],
    selfService: [
      "login",
      "sso",
      "fresh from a reset",
      "first-party client",
      "personal of the dashboard",
      "personal of the API",
    ],
  };
  const table = Object.entries(rules).flatMap(([name, access]) =>
    Object.entries(kinds).map(([kind, over]) => ({
      name,
      access,
      kind,
      over,
      admitted: admits[name as keyof typeof rules].includes(kind as Kind),
    })),
  );

  test.each(table)("$name to a token of kind $kind: $admitted", ({ access, over, admitted }) => {
    expect(access.refuse(principal("account_owner", over)) === undefined).toBe(admitted);
  });
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

const COMPANY: Record<Role, Principal["companyType"]> = {
  super_admin: "platform",
  partner_owner: "partner",
  partner_admin: "partner",
  account_owner: "account",
  account_user: "account",
  location_user: "account",
  service: "platform",
};

/** Kinds of tokens that no rule accepts unless it demands exactly this kind, with their scopes. */
const ONE_PURPOSE: readonly (readonly [TokenKind, string])[] = [
  ["password_reset", "password:reset"],
  ["challenge", "second-factor"],
  ["refresh", "*"],
  ["service", "actions:write"],
];

const ROLES = Object.keys(COMPANY) as Role[];

const RULES = {
  anyUser: { access: anyUser("reviews:read"), admits: ROLES },
  partnerAdmin: {
    access: partnerAdmin("reviews:read"),
    admits: ["partner_owner", "partner_admin"] as Role[],
  },
  accountUser: {
    access: accountUser("reviews:read"),
    admits: ["account_owner", "account_user", "location_user"] as Role[],
  },
  superAdmin: { access: superAdmin("reviews:read"), admits: ["super_admin"] as Role[] },
};

const TABLE = Object.entries(RULES).flatMap(([name, { access, admits }]) =>
  ROLES.map((role) => ({ name, access, role, admitted: admits.includes(role) })),
);

function principal(role: Role, over: Partial<Principal> = {}): Principal {
  return {
    userId: 1,
    userName: "Somebody",
    role,
    companyId: 1,
    companyType: COMPANY[role],
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
