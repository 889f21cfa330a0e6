import { type TUnsafe, Type } from "@sinclair/typebox";

import { Problem } from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";

/** The role of a user, which decides the routes that the user may call (contract 4.6). */
export type Role =
  | "super_admin"
  | "partner_owner"
  | "partner_admin"
  | "partner_integration"
  | "account_owner"
  | "account_user"
  | "location_user"
  | "service";

/**
 * The scopes of contract 3.6. `*` includes all others of this list, but not `password:reset`, which is no part of it.
 */
export const SCOPES = [
  "*",
  "reviews:read",
  "reviews:write",
  "webhooks:read",
  "webhooks:write",
  "clients:write",
  "impersonate",
] as const;
/** The scopes of services of the platform (contract 10.7), which no token of a person has. */
export const SERVICE_SCOPES = ["actions:write", "tokens:introspect"] as const;
export type Scope = (typeof SCOPES)[number] | (typeof SERVICE_SCOPES)[number];

export type TokenKind =
  | "access"
  | "refresh"
  | "dashboard_pat"
  | "api_pat"
  | "impersonation"
  | "password_reset"
  | "portal"
  | "service"
  | "challenge";

/** The way in which the user signed in. All tokens of the same family share it (contract 4.3). */
export type SignInMethod =
  | "login"
  | "password_grant"
  | "authorization_code"
  | "sso"
  | "password_reset"
  | "impersonation"
  | "portal";

/**
 * The user of a verified bearer token. All fields come from current database rows, none from the token's claims
 * (contract 4.3).
 */
export interface Principal {
  readonly userId: number;
  readonly userName: string;
  readonly role: Role;
  readonly companyId: number;
  readonly companyType: "platform" | "partner" | "account";
  /** The id of the tenant, which is the partner itself or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /** The id of the account; null for users of a partner or the platform. */
  readonly accountId: number | null;
  /** Ids of the stores of a location user; null for users who see all stores of the account. */
  readonly storeIds: readonly number[] | null;
  readonly scopes: ReadonlySet<string>;
  readonly tokenKind: TokenKind;
  readonly jti: string;
  readonly familyId: string | null;
  /** The sign-in method of the token's family; null for tokens without a family. */
  readonly signInMethod: SignInMethod | null;
  /** The time of the sign-in; null for tokens without a family. */
  readonly signedInAt: Date | null;
  /** Time of the last proof of a second factor in the session (contract 4.27); null without one. */
  readonly factorAt: Date | null;
  /** Whether the session must prove a second factor before it may use a route with step-up. */
  readonly needsStepUp: boolean;
  /** The OAuth client of the token; null for tokens of the service's own pages. */
  readonly clientId: string | null;
  /** Whether a partner or another third party holds the token, rather than the service or a first-party client. */
  readonly isThirdParty: boolean;
  readonly impersonatorId: number | null;
  /** The pages that the session of a portal link may open (contract 6.20); null for all other tokens. */
  readonly pages: readonly string[] | null;
  /** The ids of the partners for which a service acts; null if it acts for all partners, and for every other caller. */
  readonly actsForPartners: readonly number[] | null;
}

/** A signed-in user together with the context of the request. */
export interface Caller {
  readonly principal: Principal;
  readonly requestContext: RequestContext;
}

/**
 * Declares a schema that is a union of constants. The type is explicit, because Elysia infers `never` for a union
 * built from an array.
 */
export function literals<const T extends string | number>(
  values: readonly T[],
  options: { readonly [name: string]: unknown } = {},
): TUnsafe<T> {
  return Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  );
}

/** Schema of a scope. `x-enum-varnames` names the constants for code generators, because `*` contains no letter. */
const scopeValue = literals(SCOPES, {
  title: "Scope",
  description: "Scope of a token.",
  "x-enum-varnames": SCOPES.map((one) =>
    one === "*" ? "ALL" : one.replace(":", "_").toUpperCase(),
  ),
});

/** Schema of the scopes of a token, a client or an integration. */
export const scopeList = Type.Array(scopeValue, {
  minItems: 1,
  uniqueItems: true,
  title: "Scopes",
  examples: [["webhooks:read"]],
  description: "Scopes; `*` stands for all.",
  explain: "must be a list of different scopes",
});

/**
 * Returns the partner of the caller. Throws `forbidden` if there is none, although the access rule of the route should
 * admit only a partner's users.
 */
export function tenantOf({ partnerId }: Principal): number {
  if (partnerId === null) throw new Problem("forbidden");
  return partnerId;
}
