import { OF_THE_SERVICE, type Authority } from "../auth/authority.ts";
import type { OAuthClient } from "./model.ts";

/**
 * What a client may do. Nobody is asked before a first-party client acts for them, and it may be shown passwords: it is
 * the service itself, and only a super-admin in person makes or changes one.
 */
export function authorityOfClient(client: OAuthClient): Authority {
  if (client.firstParty) return OF_THE_SERVICE;
  const { companyId: partnerId, scopes, createdBy } = client;
  return { partnerId, accountId: null, scopes, thirdParty: createdBy, inPerson: false };
}

/** What shows in a client: a tenant sees its own first-party clients, too. */
export function authorityToSee(client: OAuthClient): Authority {
  return { ...authorityOfClient(client), partnerId: client.companyId, inPerson: false };
}
