import { SCOPES } from "../http/principal.ts";
import type { Params } from "./form.ts";
import { OAuthError } from "./oauth-error.ts";

/** A valid request to the token endpoint; `scopes` is undefined if the client requests no scope by name. */
export type TokenRequest =
  | {
      readonly grant: "password";
      readonly email: string;
      readonly password: string;
      readonly scopes: readonly string[] | undefined;
    }
  | {
      readonly grant: "refresh_token";
      readonly token: string;
      readonly scopes: readonly string[] | undefined;
    }
  | {
      readonly grant: "authorization_code";
      readonly code: string;
      readonly redirectUri: string;
      readonly verifier: string | undefined;
    };

/**
 * Reads a request to the token endpoint. Checks the grant type and then the parameters, which are the first two checks
 * of contract 5.1.
 */
export function readTokenRequest(form: Params): TokenRequest {
  const grant = form.one("grant_type");
  if (grant !== "password" && grant !== "refresh_token" && grant !== "authorization_code")
    throw new OAuthError("unsupported_grant_type", "The grant type is missing or not supported.");
  form.refuseRepeated();
  if (grant === "authorization_code")
    return {
      grant,
      code: form.required("code"),
      redirectUri: form.required("redirect_uri"),
      verifier: form.one("code_verifier"),
    };
  const scope = form.one("scope");
  if (grant === "refresh_token")
    return { grant, token: form.required("refresh_token"), scopes: readScopes(scope) };
  const [email, password] = [form.required("username"), form.required("password")];
  return { grant, email, password, scopes: readScopes(scope) };
}

const KNOWN_SCOPES: ReadonlySet<string> = new Set(SCOPES);

/**
 * Reads a list of scopes separated by single spaces (RFC 6749, 3.3). Returns undefined if no scope is requested, and
 * throws `invalid_scope` for an unknown scope.
 */
export function readScopes(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const scopes = [...new Set(text.split(" "))];
  if (scopes.every((scope) => KNOWN_SCOPES.has(scope))) return scopes;
  throw new OAuthError("invalid_scope", "A requested scope does not exist.");
}
