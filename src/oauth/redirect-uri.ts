import type { ValidParts } from "../http/fields.ts";
import type { RuleErrors } from "../http/rules.ts";
import { DEFAULT_GRANTS, type NewClientBody, type OAuthClient } from "./model.ts";

/**
 * Matches printable ASCII in a redirect URI, except for characters that browsers and parsers interpret in different
 * ways.
 */
const PLAIN_URI = /^[!$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]+$/;
/**
 * Matches an https origin whose host is a DNS name or an IP address. URL parsers accept other hosts, such as `a;b`,
 * whose characters would have a special meaning in a header.
 */
const HTTPS_ORIGIN = /^https:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
const HTTP_LOOPBACK = /^http:\/\/(127\.0\.0\.1|\[::1\]|localhost)(?::(\d{1,5}))?([/?].*)?$/;
/**
 * Matches a redirect URI with a private-use scheme. The scheme must be a reversed domain name, and so contain a dot
 * (RFC 8252, 7.1). This excludes `javascript` and `data`.
 */
const PRIVATE_USE_URI = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:\//i;
const MAX_LENGTH = 2_048;
const MAX_PORT = 65_535;

/**
 * Returns whether a client may register the redirect URI: https, loopback http, or a private-use scheme, without
 * wildcard or fragment (contract 5.6).
 */
export function isRegistrable(uri: string): boolean {
  if (uri.length > MAX_LENGTH || !PLAIN_URI.test(uri) || uri.includes("*") || !URL.canParse(uri))
    return false;
  const { username, password, protocol } = new URL(uri);
  if (username !== "" || password !== "") return false;
  if (protocol === "https:") return isHttpsOrigin(/^https:\/\/[^/?]+/.exec(uri)?.[0] ?? "");
  if (protocol === "http:") return HTTP_LOOPBACK.test(uri);
  return PRIVATE_USE_URI.test(uri);
}

/** Returns whether the text is exactly an https origin, so that it can safely be inserted into a header. */
export function isHttpsOrigin(text: string): boolean {
  return HTTPS_ORIGIN.test(text);
}

/**
 * Compares the redirect URI of a request with a registered URI, character by character (contract 5.4; RFC 9700, 2.1).
 * The only exception serves native apps, which listen on any free port: a loopback address that was registered
 * without a port matches every port (RFC 8252, 7.3). `localhost` is excluded, because it may resolve to another
 * machine (8.3).
 */
export function matchesRedirect(registered: string, given: string): boolean {
  if (registered === given) return true;
  const [known, sent] = [HTTP_LOOPBACK.exec(registered), HTTP_LOOPBACK.exec(given)];
  if (known === null || sent === null) return false;
  const anyPort = known[1] !== "localhost" && known[2] === undefined;
  const port = Number(sent[2]);
  return anyPort && known[1] === sent[1] && known[3] === sent[3] && port > 0 && port <= MAX_PORT;
}

/** Appends query parameters to a redirect URI and leaves the rest of the URI unchanged (RFC 6749, 4.1.2). */
export function withParams(uri: string, params: Readonly<Record<string, string | undefined>>) {
  const given = Object.entries(params).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  return `${uri}${uri.includes("?") ? "&" : "?"}${new URLSearchParams(given).toString()}`;
}

/** Returns the part of a redirect URI that people recognise: its origin, or the scheme of an app. */
export function destinationOf(uri: string): string {
  const { origin, protocol } = new URL(uri);
  return protocol === "https:" || protocol === "http:" ? origin : protocol;
}

/**
 * Returns the `form-action` sources of a content security policy for a redirect URI. All https hosts are allowed,
 * because many clients redirect from their callback to another host. Only loopback origins and app schemes are named
 * individually; they contain no character that has a meaning in a policy.
 */
export function formTargetsOf(uri: string): string {
  const destination = destinationOf(uri);
  return destination.startsWith("https:") ? "https:" : `https: ${destination}`;
}

/**
 * The conditions under which an OAuth client is created or changed: the kind of caller, and the client before the
 * change.
 */
interface ClientEdit {
  /** Whether the caller is a super-admin; if not, the caller is a partner's user. */
  readonly isPlatform: boolean;
  /** The OAuth client that is changed; absent for a new client. */
  readonly before?: Pick<
    OAuthClient,
    "confidential" | "grantTypes" | "firstParty" | "redirectUris"
  >;
}

/**
 * Validates the rules of an OAuth client that no schema can express, for a new client and for changes (contract 5.6).
 */
export function clientErrors(fields: ValidParts<NewClientBody>, edit: ClientEdit): RuleErrors {
  const { isPlatform, before } = edit;
  const isClaimed = fields.first_party === true && !isPlatform && before?.firstParty !== true;
  return {
    redirect_uris: missingUriError(fields, before),
    ...uriErrors(fields.redirect_uris ?? []),
    grant_types: grantError(fields, edit),
    first_party: isClaimed ? "can be set only by a super-admin" : undefined,
    require_pkce:
      fields.require_pkce === false && (before ?? fields).confidential === false
        ? "must be true: PKCE is the only proof of a public client that a code is its own"
        : undefined,
  };
}

/**
 * Returns an error if the client may use the code flow but has no redirect URI, because the flow needs one. The rule
 * applies to a new client, and to a change of the redirect URIs or the grant types.
 */
function missingUriError(
  fields: ValidParts<NewClientBody>,
  before: ClientEdit["before"],
): string | undefined {
  const isAsked = before === undefined || "redirect_uris" in fields || "grant_types" in fields;
  const isMalformed = "redirect_uris" in fields && fields.redirect_uris === undefined;
  const uris = fields.redirect_uris ?? before?.redirectUris ?? [];
  const grants = fields.grant_types ?? before?.grantTypes ?? DEFAULT_GRANTS;
  if (!isAsked || isMalformed || uris.length > 0 || !grants.includes("authorization_code"))
    return undefined;
  return "must have at least one URI for the authorization_code grant";
}

function uriErrors(uris: readonly (string | undefined)[]): RuleErrors {
  const text =
    "must be an https URL, a loopback http URL or one of a private-use scheme with a dot, without fragment, wildcard or credentials";
  return Object.fromEntries(
    uris.flatMap((uri, i) =>
      uri === undefined || isRegistrable(uri) ? [] : [[`redirect_uris.${i}`, text]],
    ),
  );
}

/**
 * Returns an error if a public client, or one that is not first-party, would have the password grant, or if a caller
 * other than a super-admin adds it (contract 5.1).
 */
function grantError(fields: ValidParts<NewClientBody>, { isPlatform, before }: ClientEdit) {
  const grants = fields.grant_types ?? before?.grantTypes;
  if (!grants?.includes("password")) return undefined;
  if ((before ?? fields).confidential === false)
    return "must not have the password grant for a public client";
  if (!isPlatform && !before?.grantTypes.includes("password"))
    return "has the password grant, which only a super-admin can add";
  const isMalformed = "first_party" in fields && fields.first_party === undefined;
  return isMalformed || (fields.first_party ?? before?.firstParty)
    ? undefined
    : "has the password grant, which only a first-party client can have";
}
