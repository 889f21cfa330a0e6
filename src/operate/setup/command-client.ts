import type { RawTx } from "../../../db/client.ts";
import { COMMAND_CLIENT } from "../../cli/oauth.ts";

/**
 * Creates the public OAuth client with which partners sign in through the command `reviewrelay`. Returns false if it
 * exists.
 */
export async function makeCommandClient({ sql }: RawTx, now: Date): Promise<boolean> {
  const { clientId, name, redirectUris, scopes, grantTypes } = COMMAND_CLIENT;
  const known = await sql`select from oauth_clients where client_id = ${clientId}`;
  if (known.length > 0) return false;
  await sql`
    insert into oauth_clients (client_id, name, confidential, first_party, redirect_uris, scopes, grant_types,
                               require_pkce, created_at, updated_at)
    values (${clientId}, ${name}, false, false, ${[...redirectUris]}, ${[...scopes]}, ${[...grantTypes]},
            true, ${now}, ${now})`;
  return true;
}
