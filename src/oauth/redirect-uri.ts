import type { ValidParts } from "../http/fields.ts";
import type { RuleErrors } from "../http/rules.ts";
import { DEFAULT_GRANTS, type NewClientBody, type OAuthClient } from "./model.ts";

/** Printable ASCII, but for characters that browsers and parsers read in more than one way. */
const PLAIN = /^[!$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]+$/;
/** A name of DNS or an address: what URL parsers let pass beyond it, such as `a;b`, means something where it is put later. */
const ORIGIN = /^https:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
const HTTP_LOOPBACK = /^http:\/\/(127\.0\.0\.1|\[::1\]|localhost)(?::(\d{1,5}))?([/?].*)?$/;
/** RFC 8252, 7.1: a domain of the app's in reverse, so there is a dot in it; `javascript` and `data` have none. */
const PRIVATE_USE = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:\//i;
const MAX_LENGTH = 2_048;
const MAX_PORT = 65_535;

/** Contract 5.6: https, loopback http, or a private-use scheme; no wildcard, no fragment. */
export function isRegistrable(uri: string): boolean {
  if (uri.length > MAX_LENGTH || !PLAIN.test(uri) || uri.includes("*") || !URL.canParse(uri))
    return false;
  const { username, password, protocol } = new URL(uri);
  if (username !== "" || password !== "") return false;
  if (protocol === "https:") return isHttpsOrigin(/^https:\/\/[^/?]+/.exec(uri)?.[0] ?? "");
  if (protocol === "http:") return HTTP_LOOPBACK.test(uri);
  return PRIVATE_USE.test(uri);
}

/** Whether the text is an origin of https and nothing else, so that it may stand in a header. */
export function isHttpsOrigin(text: string): boolean {
  return ORIGIN.test(text);
}

/**
 * Contract 5.4: letter by letter (RFC 9700, 2.1). The one exception is for native apps, which listen on whichever port
 * is free: a loopback address that was registered without a port stands for any (RFC 8252, 7.3). `localhost` does not:
 * it need not be this machine (8.3).
 */
export function matchesRedirect(registered: string, given: string): boolean {
  if (registered === given) return true;
  const [known, sent] = [HTTP_LOOPBACK.exec(registered), HTTP_LOOPBACK.exec(given)];
  if (known === null || sent === null) return false;
  const anyPort = known[1] !== "localhost" && known[2] === undefined;
  const port = Number(sent[2]);
  return anyPort && known[1] === sent[1] && known[3] === sent[3] && port > 0 && port <= MAX_PORT;
}

/** Adds parameters and leaves the rest as the client wrote it (RFC 6749, 4.1.2). */
export function withParams(uri: string, params: Readonly<Record<string, string | undefined>>) {
  const given = Object.entries(params).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  return `${uri}${uri.includes("?") ? "&" : "?"}${new URLSearchParams(given).toString()}`;
}

/** Where the URI leads, for people: its origin, or the scheme of an app. */
export function placeOf(uri: string): string {
  const { origin, protocol } = new URL(uri);
  return protocol === "https:" || protocol === "http:" ? origin : protocol;
}

/**
 * What a form may lead to in a content security policy besides https, which it may as a whole: many clients lead on from
 * their callback to another host. Only loopback addresses and schemes are named, which hold no letter of a policy's own.
 */
export function formTargetsOf(uri: string): string {
  const place = placeOf(uri);
  return place.startsWith("https:") ? "https:" : `https: ${place}`;
}

/** Who sets the fields, and of what. */
interface ClientEdit {
  /** Whether a super-admin sets them, or a partner. */
  readonly isPlatform: boolean;
  /** The client that is to be changed, if it is not a new one. */
  readonly before?: Pick<
    OAuthClient,
    "confidential" | "grantTypes" | "firstParty" | "redirectUris"
  >;
}

/** Rules of a new client and of changes to one that no schema can say (contract 5.6). */
export function clientErrors(fields: ValidParts<NewClientBody>, edit: ClientEdit): RuleErrors {
  const { isPlatform, before } = edit;
  const isClaimed = fields.first_party === true && !isPlatform && before?.firstParty !== true;
  return {
    redirect_uris: uselessError(fields, before),
    ...uriErrors(fields.redirect_uris ?? []),
    grant_types: grantError(fields, edit),
    first_party: isClaimed ? "is set by a super-admin only" : undefined,
  };
}

/** The code flow ends at a redirect URI: without one nobody can use it. A change of other fields leaves it as it was. */
function uselessError(
  fields: ValidParts<NewClientBody>,
  before: ClientEdit["before"],
): string | undefined {
  const isAsked = before === undefined || "redirect_uris" in fields || "grant_types" in fields;
  const isMalformed = "redirect_uris" in fields && fields.redirect_uris === undefined;
  const uris = fields.redirect_uris ?? before?.redirectUris ?? [];
  const grants = fields.grant_types ?? before?.grantTypes ?? DEFAULT_GRANTS;
  if (!isAsked || isMalformed || uris.length > 0 || !grants.includes("authorization_code"))
    return undefined;
  return "must have at least one for the authorization_code grant";
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

/** The password grant is for trusted servers of the service's own (contract 5.1), before and after a change. */
function grantError(fields: ValidParts<NewClientBody>, { isPlatform, before }: ClientEdit) {
  const grants = fields.grant_types ?? before?.grantTypes;
  if (!grants?.includes("password")) return undefined;
  if ((before ?? fields).confidential === false)
    return "has the password grant, which a public client cannot have";
  if (!isPlatform && !before?.grantTypes.includes("password"))
    return "has the password grant, which only a super-admin gives";
  const isMalformed = "first_party" in fields && fields.first_party === undefined;
  return isMalformed || (fields.first_party ?? before?.firstParty)
    ? undefined
    : "has the password grant, which is for first-party clients only";
}
