import { type TUnsafe, Type } from "@sinclair/typebox";

import type { RequestContext } from "./request-context.ts";

/** The roles of users (contract 4.6). */
export type Role =
  | "super_admin"
  | "partner_owner"
  | "partner_admin"
  | "account_owner"
  | "account_user"
  | "location_user";

/** Contract 3.6. `*` stands for all of them; `password:reset` is never part of `*`. */
export const SCOPES = [
  "*",
  "reviews:read",
  "reviews:write",
  "webhooks:read",
  "webhooks:write",
  "clients:write",
  "impersonate",
] as const;
export type Scope = (typeof SCOPES)[number];

export type TokenKind =
  | "access"
  | "refresh"
  | "dashboard_pat"
  | "api_pat"
  | "impersonation"
  | "password_reset"
  | "portal";

/** How a sign-in came about: the family of tokens that stems from it (contract 4.3). */
export type SignInMethod =
  | "login"
  | "password_grant"
  | "authorization_code"
  | "sso"
  | "password_reset"
  | "impersonation"
  | "portal";

/** Who a verified bearer token acts as: every field from live rows, none from its claims (contract 4.3). */
export interface Principal {
  readonly userId: number;
  readonly userName: string;
  readonly role: Role;
  readonly companyId: number;
  readonly companyType: "platform" | "partner" | "account";
  /** The tenant: the partner itself, or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /** Null above an account. */
  readonly accountId: number | null;
  /** The stores of a location user; null where a user sees every store of the account. */
  readonly storeIds: readonly number[] | null;
  readonly scopes: ReadonlySet<string>;
  readonly tokenKind: TokenKind;
  readonly jti: string;
  readonly familyId: string | null;
  /** How the family began; null for tokens without one. */
  readonly signInMethod: SignInMethod | null;
  /** Null where the token was issued to the service's own pages. */
  readonly clientId: string | null;
  /** Whether a partner or another third party holds the token, not the service or a first-party client. */
  readonly isThirdParty: boolean;
  readonly impersonatorId: number | null;
  /** What the session of a portal link is held to (contract 6.20); null of every other token. */
  readonly pages: readonly string[] | null;
}

/** A signed-in user and the request that came from them. */
export interface Caller {
  readonly principal: Principal;
  readonly requestContext: RequestContext;
}

/** One of the values. The type is said by hand: Elysia infers `never` from a union whose members are a list. */
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

/** One of the scopes. */
export const scopeValue = literals(SCOPES, { title: "Scope", description: "What a token covers." });
