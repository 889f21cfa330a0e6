import { SCOPES } from "../http/principal.ts";
import { OAuthError } from "./oauth-error.ts";

const KNOWN: ReadonlySet<string> = new Set(SCOPES);

/** RFC 6749, 3.3: words with a space between, in any order. Throws `invalid_scope`; undefined if none is requested. */
export function readScopes(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const scopes = [...new Set(text.split(" "))];
  if (scopes.every((scope) => KNOWN.has(scope))) return scopes;
  throw new OAuthError("invalid_scope", "A scope that was asked for does not exist.");
}
