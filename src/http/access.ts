import type { ProblemCode } from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";
import type { Principal, Scope } from "./principal.ts";

/**
 * The kinds of tokens that a route accepts (contract 3.10); `TAKEN` of src/auth/authority.ts has the table.
 * - `any`: every token that role and scope permit
 * - `own`: a token that the user holds: from a sign-in, a first-party client, or a personal access token
 * - `person`: a token from a sign-in, directly or through a first-party client
 * - `sign_in`: a token from the login or the SSO exchange
 * - `password`: as `person`, or the token of a mailed reset code
 */
export type TokenDemand = "any" | "own" | "person" | "sign_in" | "password";

/**
 * The access rule of a route. `refuse` runs after the token was verified and returns an error code, or undefined to
 * allow the request. A denial by role is audited as AUTHZ_DENIED (contract 3.5).
 */
export interface Access {
  /** The scope that the token needs; undefined if any scope is enough. */
  readonly scope?: Scope | undefined;
  /** The kind of token that `refuse` requires, for the route's description. */
  readonly takes: TokenDemand;
  readonly refuse: (principal: Principal) => ProblemCode | undefined;
}

/** The functions of sign-in that the HTTP edge needs. */
export interface Authenticator {
  /** Returns the principal of the request's bearer token; throws `unauthenticated`. */
  authenticate(requestContext: RequestContext): Promise<Principal>;
  /** Records the use of a token in the background. */
  noteUse(principal: Principal, requestContext: RequestContext, route: string): void;
  /** Writes the AUTHZ_DENIED audit row. */
  recordAccessDenied(
    principal: Principal,
    requestContext: RequestContext,
    details: Record<string, unknown>,
  ): Promise<void>;
}

/** The path that makes `{base_url}` of `{server_root}`. */
export const BASE_PATH = "/api/v1";
