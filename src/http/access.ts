import type { ProblemCode } from "../lib/problem.ts";
import type { RequestContext } from "./request-context.ts";
import type { Principal, Scope } from "./principal.ts";

/**
 * The tokens that a route takes, by what they are to their user; `TAKEN` of src/auth/authority.ts has the table (contract
 * 3.10). `any`: every token that the role and the scope admit. `own`: in the user's own hands. `person`: the user in
 * person. `sign_in`: from the login or the SSO exchange. `password`: the person, or the token of a mailed code.
 */
export type TokenDemand = "any" | "own" | "person" | "sign_in" | "password";

/**
 * Who may use a route. `refuse` is asked after the token was verified and answers the code of the refusal, or nothing; a
 * refusal by role is audited as AUTHZ_DENIED (contract 3.5).
 */
export interface Access {
  /** What the token has to cover; undefined where any scope will do. */
  readonly scope?: Scope | undefined;
  /** What `refuse` asks of the kind of token; the route's description shows it. */
  readonly takes: TokenDemand;
  readonly refuse: (principal: Principal) => ProblemCode | undefined;
}

/** What the edge asks of sign-in. */
export interface Authenticator {
  /** The principal of the request's bearer token; throws `unauthenticated`. */
  authenticate(requestContext: RequestContext): Promise<Principal>;
  /** Remembers where a token is used; nothing waits for it. */
  noteUse(principal: Principal, requestContext: RequestContext, route: string): void;
  /** Writes the AUTHZ_DENIED audit row. */
  recordAccessDenied(
    principal: Principal,
    requestContext: RequestContext,
    details: Record<string, unknown>,
  ): Promise<void>;
}

/** `{base_url}` is `{server_root}` with this path. */
export const BASE_PATH = "/api/v1";
