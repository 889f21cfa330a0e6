import { decodeJwt } from "jose";

import { findClientToken, revokeClientToken } from "../../auth/actions/inspect-token.ts";
import type { Call } from "../../http/call.ts";
import { invalidClient, type Credentials } from "../credentials.ts";
import { authenticateClient } from "./authenticate-client.ts";
import type { OAuthDeps } from "./deps.ts";

/** RFC 7009. A text that is no token of the client's changes nothing and is no error. */
export async function revokeToken(
  deps: OAuthDeps,
  token: string,
  { credentials, call }: { credentials: Credentials; call: Call },
): Promise<void> {
  const { clientId } = await authenticateClient(deps, credentials, call);
  const found = await findClientToken(deps, token, clientId);
  if (found !== undefined) await revokeClientToken(deps, found, call);
}

/** RFC 7662, for clients with a secret only: the id of a public client is no authentication (2.1). */
export async function introspectToken(
  deps: OAuthDeps,
  token: string,
  { credentials, call }: { credentials: Credentials; call: Call },
): Promise<Readonly<Record<string, unknown>>> {
  const client = await authenticateClient(deps, credentials, call);
  if (!client.confidential) throw invalidClient(credentials.isBasic);
  const found = await findClientToken(deps, token, client.clientId);
  if (found === undefined || found.isRedeemed) return { active: false };
  const { serverRoot } = deps.config;
  const { kind, claims } = found;
  return {
    active: true,
    ...claims,
    // `findClientToken` has verified the token.
    iat: decodeJwt(token).iat,
    iss: serverRoot,
    aud: `${serverRoot}/api`,
    ...(kind !== "refresh" && { token_type: "Bearer" }),
  };
}
