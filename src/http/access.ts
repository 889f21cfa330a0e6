import type { ProblemCode } from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";
import type { Principal, Scope } from "./principal.ts";

/**
 * The kinds of tokens that a route accepts (contract 3.10). The table is `ACCEPTED` in src/auth/access/authority.ts.
 * - `any`: every token that role and scope permit
 * - `own`: a token that a person holds personally: from a sign-in or a first-party client, or a personal access token
 * - `person`: a token from a sign-in, directly or through a first-party client
 * - `sign_in`: a token from the login or the SSO exchange
 * - `password`: the same tokens as `person`, and the token issued for a mailed reset code
 * - `factor`: the same tokens as `person`, and the token of a sign-in that waits for a second factor
 * - `challenge`: only the token of a sign-in that waits for a second factor
 * - `service`: a token of a service of the platform
 */
export type TokenDemand =
  | "any"
  | "own"
  | "person"
  | "sign_in"
  | "password"
  | "factor"
  | "challenge"
  | "service";

/**
 * The access rule of a route. `refuse` runs after the token was verified and returns an error code, or undefined to
 * allow the request. Denied access is audited as AUTHZ_DENIED (contract 3.5).
 */
export interface Access {
  /** The scope that the token must have; undefined if a token of any scope is accepted. */
  readonly scope?: Scope | undefined;
  /** The kind of token that `refuse` requires, for the route's OpenAPI description. */
  readonly takes: TokenDemand;
  /** Whether the route requires a step-up: a session that needs a second factor must be fresh (contract 4.27). */
  readonly stepUp?: boolean;
  readonly refuse: (principal: Principal) => ProblemCode | undefined;
}

/** Functions of `src/auth` that the HTTP layer calls. */
export interface Authenticator {
  /** Returns the principal of the request's bearer token; throws `unauthenticated` without a valid token. */
  authenticate(requestContext: RequestContext): Promise<Principal>;
  /** Records the use of a token in the background, without delaying the request. */
  noteUse(principal: Principal, requestContext: RequestContext, route: string): void;
  /** Writes the AUTHZ_DENIED row of the audit log. */
  recordAccessDenied(
    principal: Principal,
    requestContext: RequestContext,
    details: Record<string, unknown>,
  ): Promise<void>;
}

/** The path of the API below `{server_root}`; together they form `{base_url}`. */
export const BASE_PATH = "/api/v1";
