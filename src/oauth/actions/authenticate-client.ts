import type { Call } from "../../http/call.ts";
import { hashSecret } from "../../lib/random-secret.ts";
import { equalInConstantTime } from "../../lib/secret-box.ts";
import { invalidClient, type Credentials } from "../credentials.ts";
import { findActiveClient, type ActiveClient } from "../queries/clients.ts";
import type { OAuthDeps } from "./deps.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The client with this id, which may be any text. Undefined too while its tenant is inactive. */
export async function lookUpClient(
  { db }: Pick<OAuthDeps, "db">,
  clientId: string,
): Promise<ActiveClient | undefined> {
  return UUID.test(clientId) ? findActiveClient(db, clientId) : undefined;
}

/**
 * A confidential client must show its secret, a public one none. Everything else is audited, and throws
 * `invalid_client`.
 */
export async function authenticateClient(
  deps: Pick<OAuthDeps, "db" | "failures">,
  { clientId, secret, isBasic }: Credentials,
  call: Call,
): Promise<ActiveClient> {
  const client = await lookUpClient(deps, clientId);
  const isRight =
    client?.secretHash == null
      ? secret === undefined
      : equalInConstantTime(hashSecret(secret ?? ""), client.secretHash);
  if (client !== undefined && isRight) return client;
  // Any other text may be a secret that was put in the wrong field.
  const details = { client_id: UUID.test(clientId) ? clientId : null };
  await deps.failures.record({ action: "CLIENT_AUTH_FAILED", details }, call);
  throw invalidClient(isBasic);
}
