import type { SoundParts } from "../http/fields.ts";
import type { FieldFaults } from "../http/rules.ts";
import { DEFAULT_GRANTS, type NewClientBody, type OAuthClient } from "./model.ts";
import { isRegistrable } from "./redirect-uri.ts";

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
export function clientFaults(fields: SoundParts<NewClientBody>, edit: ClientEdit): FieldFaults {
  const { isPlatform, before } = edit;
  const isClaimed = fields.first_party === true && !isPlatform && before?.firstParty !== true;
  return {
    redirect_uris: uselessFault(fields, before),
    ...uriFaults(fields.redirect_uris ?? []),
    grant_types: grantFault(fields, edit),
    first_party: isClaimed ? "is set by a super-admin only" : undefined,
  };
}

/** The code flow ends at a redirect URI: without one nobody can use it. A change of other fields leaves it as it was. */
function uselessFault(
  fields: SoundParts<NewClientBody>,
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

function uriFaults(uris: readonly (string | undefined)[]): FieldFaults {
  const text =
    "must be an https URL, a loopback http URL or one of a private-use scheme with a dot, without fragment, wildcard or credentials";
  return Object.fromEntries(
    uris.flatMap((uri, i) =>
      uri === undefined || isRegistrable(uri) ? [] : [[`redirect_uris.${i}`, text]],
    ),
  );
}

/** The password grant is for trusted servers of the service's own (contract 5.1), before and after a change. */
function grantFault(fields: SoundParts<NewClientBody>, { isPlatform, before }: ClientEdit) {
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
